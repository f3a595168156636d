"""Shapes with a known transform, and assertions for properties that every transform of shapes should have.

The assertions take any function of a complex, so you can call them on your own layers and models:

    >>> from eulerscan import ECTLayer
    >>> assert_order_invariant(ECTLayer(dim=2), disc(7).complex)
"""

from .assertions import (
    assert_batch_independent,
    assert_equals_reference,
    assert_order_invariant,
    assert_rotation_consistent,
    assert_rotation_invariant,
    shuffle,
)
from .reference_shapes import KnownShape, cycle, disc, known_shapes, moebius, point, random_graph, segment, sphere, torus

__all__ = [
    "KnownShape",
    "assert_batch_independent",
    "assert_equals_reference",
    "assert_order_invariant",
    "assert_rotation_consistent",
    "assert_rotation_invariant",
    "cycle",
    "disc",
    "known_shapes",
    "moebius",
    "point",
    "random_graph",
    "segment",
    "shuffle",
    "sphere",
    "torus",
]
