"""From what other libraries and files hold to a :class:`~eulerscan.Complex`, and back. Libraries are loaded when needed."""

from .files import READABLE, read
from .gudhi import from_simplex_tree
from .images import from_image, from_images
from .networkx import from_networkx
from .pyg import from_pyg, to_pyg
from .several import shapes_in
from .triangulate import alpha_complex, delaunay
from .trimesh import from_trimesh
from .writing import WRITABLE, write

__all__ = [
    "READABLE",
    "WRITABLE",
    "alpha_complex",
    "delaunay",
    "from_image",
    "from_images",
    "from_networkx",
    "from_pyg",
    "from_simplex_tree",
    "from_trimesh",
    "read",
    "shapes_in",
    "to_pyg",
    "write",
]
