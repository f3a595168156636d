"""Conversion of objects of other libraries to a :class:`~eulerscan.Complex` and back. Libraries are imported on use."""

from .delaunay import alpha_complex, alpha_filtration, delaunay
from .gudhi import filtration_from_simplex_tree, from_simplex_tree
from .images import from_image, from_images
from .intensity import filtration_from_image, filtration_from_images
from .networkx import from_networkx
from .outlines import from_outline
from .pyg import AddLocalECT, from_pyg, to_pyg
from .trimesh import from_trimesh

__all__ = [
    "AddLocalECT",
    "alpha_complex",
    "alpha_filtration",
    "delaunay",
    "filtration_from_image",
    "filtration_from_images",
    "filtration_from_simplex_tree",
    "from_image",
    "from_images",
    "from_networkx",
    "from_outline",
    "from_pyg",
    "from_simplex_tree",
    "from_trimesh",
    "to_pyg",
]
