from . import compute_wecfs

__all__ = ["compute_wecfs"]
