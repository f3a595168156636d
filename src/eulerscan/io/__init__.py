"""Reading and writing files."""

from .batch import read_many
from .formats import READABLE
from .read import read
from .walk import Failure, Listing, list_shapes, read_all
from .write import WRITABLE, write

__all__ = ["READABLE", "WRITABLE", "Failure", "Listing", "list_shapes", "read", "read_all", "read_many", "write"]
