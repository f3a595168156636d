"""Interactive HTML page of one shape: change direction and height, and watch the curve and the counts."""

from .webpage import MAX_SIMPLICES, ColorMap, describe, page, write_page

__all__ = ["MAX_SIMPLICES", "ColorMap", "describe", "page", "write_page"]
