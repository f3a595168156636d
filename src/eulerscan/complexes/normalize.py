"""Where a shape is looked at: as it is, about its own centre, or in the unit ball."""

from __future__ import annotations

from .complex import Complex


def placed(complex: Complex, *, unit_ball: bool, centre: bool) -> Complex:
    """Each complex centred, or else in the unit ball, or else as it is. ``centre`` has the last word: it keeps sizes.

    >>> import torch
    >>> pair = Complex(torch.tensor([[5.0, 1.0], [9.0, 1.0]]))
    >>> placed(pair, unit_ball=True, centre=False).points.tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    >>> placed(pair, unit_ball=True, centre=True).points.tolist()
    [[-2.0, 0.0], [2.0, 0.0]]
    """
    if centre:
        return complex.centred()
    return complex.unit_ball() if unit_ball else complex
