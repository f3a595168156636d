"""Reading and writing files."""

from .batch import Batch, read_many
from .cache import read_all
from .errors import ReadError
from .formats import READABLE
from .metadata import Metadata, read_metadata
from .read import read
from .walk import Failure, Listing, list_shapes
from .write import WRITABLE, write

__all__ = [
    "READABLE",
    "WRITABLE",
    "Batch",
    "Failure",
    "Listing",
    "Metadata",
    "ReadError",
    "list_shapes",
    "read",
    "read_all",
    "read_many",
    "read_metadata",
    "write",
]
