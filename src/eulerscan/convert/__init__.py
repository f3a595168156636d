"""From what other libraries and files hold to a :class:`~eulerscan.Complex`. Libraries are loaded when needed."""

from .files import READABLE, read
from .gudhi import from_simplex_tree
from .images import from_image, from_images
from .networkx import from_networkx
from .pyg import from_pyg, to_pyg
from .triangulate import alpha_complex, delaunay
from .trimesh import from_trimesh

__all__ = [
    "READABLE",
    "alpha_complex",
    "delaunay",
    "from_image",
    "from_images",
    "from_networkx",
    "from_pyg",
    "from_simplex_tree",
    "from_trimesh",
    "read",
    "to_pyg",
]
