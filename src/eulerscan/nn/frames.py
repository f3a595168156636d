"""Frame averaging: any model becomes invariant to rotation."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from ..complexes import Shape, as_complex
from ..complexes.principal_axes import along_axes, principal_frames


class FrameAveraging(nn.Module):
    """A model of shapes in the frames of their principal axes, averaged over the signs of the axes.

    The principal axes rotate with a shape, so the result does not depend on its rotation, except where two second moments are
    equal and the axes are arbitrary. Nor do the axes depend on the mesh: moments are those of lengths, areas or volumes, or of
    the points of a cloud. Each axis has two signs: the model is evaluated for all of them that make a
    rotation, 2 in the plane and 4 in space, and the results are averaged (Puny et al., "Frame Averaging for Invariant and
    Equivariant Network Design", 2022). In training, each shape is in one random frame instead, which takes less time.

    Args:
        model: A module from a :class:`Complex` to ``[B, ...]``.

    Example:
        >>> from eulerscan.nn import ECTLayer
        >>> layer = FrameAveraging(ECTLayer(dim=3)).eval()
        >>> cloud = torch.randn(1, 9, 3)
        >>> torch.allclose(layer(cloud), layer(cloud[..., [1, 2, 0]]), atol=1e-3)  # rotated
        True
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, shape: Shape) -> Tensor:
        """The mean over the frames of each shape, or the result in a random one in training."""
        complex = as_complex(shape)
        axes = principal_frames(complex)
        signs = torch.tensor(list(itertools.product((1.0, -1.0), repeat=complex.dim))).to(axes)
        signs = signs[signs.prod(dim=1) > 0]
        if self.training:
            # From torch's global generator, as in dropout.
            signs = signs[torch.randint(len(signs), (1, complex.num_complexes))]
        else:
            signs = signs[:, None].expand(-1, complex.num_complexes, -1)
        results = [self.model(along_axes(complex, axes * sign[:, None, :])) for sign in signs]
        return torch.stack(results).mean(dim=0)
