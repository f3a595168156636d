"""Shapes from files and to files."""

from .landmarks import shapes_in
from .read import READABLE, read
from .write import WRITABLE, write

__all__ = ["READABLE", "WRITABLE", "read", "shapes_in", "write"]
