"""Triangulations of the pixels of binary images, for the data sets of digits."""

from __future__ import annotations

import torch
from torch import Tensor

from ..complexes import Complex


def triangulate(foreground: Tensor, *, dimension: int = 2) -> Complex:
    r"""The pixels of each mask, with edges between 8-neighbors, filled with triangles.

    This is the alpha complex of the pixels for any radius from half the diagonal of a pixel, :math:`\sqrt 2 / 2` sides, to less
    than one side. At such a radius only 2 x 2 pixels interact: four make a square of two triangles, three a triangle, two an
    edge. Either diagonal may divide a square. Here it goes from top left to bottom right; the transform is the same for both.

    Args:
        foreground: The masks, ``[n, height, width]`` bool.
        dimension: 0 for pixels only, 1 for pixels and edges, 2 for triangles too.

    Returns:
        One complex per mask in the square :math:`[-1/2, 1/2]^2`, with x to the right and y up, pixels row by row.

    Example:
        >>> ring = torch.tensor([[[1, 1, 1], [1, 0, 1], [1, 1, 1]]], dtype=torch.bool)
        >>> triangulate(ring)
        Complex(num_complexes=1, dim=2, points=8, simplices=(12 edges, 4 triangles))
        >>> triangulate(ring).euler_characteristic()
        tensor([0])
    """
    height, width = foreground.shape[1:]
    owner, row, column = foreground.nonzero(as_tuple=True)
    points = torch.stack([column / max(width - 1, 1) - 0.5, 0.5 - row / max(height - 1, 1)], dim=1)
    number = (foreground.reshape(-1).cumsum(dim=0) - 1).to(torch.int32).view(len(foreground), -1)

    # The 2 x 2 block that starts at each pixel:   a b
    #                                              c d
    padded = torch.nn.functional.pad(foreground, (0, 1, 0, 1))
    a, b, c, d = padded[:, :-1, :-1], padded[:, :-1, 1:], padded[:, 1:, :-1], padded[:, 1:, 1:]
    at = {"a": 0, "b": 1, "c": width, "d": width + 1}
    rising, falling = b & c & ~(a & d), a & d
    levels = [
        {"ab": a & b, "ac": a & c, "ad": falling, "bc": rising},
        {"abd": falling & b, "acd": falling & c, "abc": rising & a, "bcd": rising & d},
    ]
    simplices = []
    for level in levels[:dimension]:
        image, case, corner = torch.stack([*level.values()], dim=1).flatten(2).nonzero(as_tuple=True)
        vertices = torch.tensor([[at[letter] for letter in name] for name in level]).T  # [k + 1, cases]
        position = image * number.shape[1] + corner
        simplices.append(torch.stack([number.view(-1)[position + row[case]] for row in vertices]))
    return Complex(points, simplices, batch=owner, num_complexes=len(foreground))
