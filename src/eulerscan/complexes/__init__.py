"""The noun of the library: one or many embedded simplicial complexes."""

from .coerce import Shape, as_complex
from .complex import Complex, collate

__all__ = ["Complex", "Shape", "as_complex", "collate"]
