"""Simplicial complexes, one or many in a batch."""

from .coerce import Shape, as_complex
from .complex import Complex, collate

__all__ = ["Complex", "Shape", "as_complex", "collate"]
