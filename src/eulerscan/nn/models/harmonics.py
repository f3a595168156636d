"""Convolutions on the harmonics of the transform, which rotate with the shape, and their norms, which do not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..._validation import integer
from ...complexes import Complex, Shape, as_complex
from ...complexes.normalize import relative
from ...complexes.principal_axes import along_axes, principal_frames
from ...directions import quadrature
from ...harmonics import GUARD, degrees, harmonics, projection
from ..heads import check_sizes, halved, linear_blocks
from ..layers import ECTLayer
from .classifier import Classifier
from .curves import KERNEL, CurveChannels

MOMENTUM = 0.1
NEGLIGIBLE = 1e-6  # share of the power that is not normalized: rounding
LARGEST_DEGREE = 32  # of a network: 3,655 directions


class ECTHarmonics(Classifier):
    """Rotation-invariant: the harmonics of the transform over directions, equivariant convolutions, then their norms.

    The curves in all directions become coefficients of harmonics, in the plane a Fourier series, in space spherical harmonics.
    If a shape is rotated, the coefficients of each degree are rotated among themselves. Convolutions along the thresholds treat
    all orders of a degree alike, and products of channels are taken in each direction. So everything rotates with the shape, up
    to the norms of the coefficients of each degree, which stay. Fully connected layers classify these.

    What lies beyond the degree of the quadrature is not invariant by itself. So shapes are rotated to their principal axes, and
    the directions of :meth:`initial_directions` are the same for either sign of an axis. Logits then change by rounding only,
    unless two axes have the same second moment, as those of a vase. There they hardly change if the layer has more directions
    than its degree needs and a soft scale (:func:`~eulerscan.grid.soft_scale`): on average by less than 1e-4 for clouds, and by
    half a percent for meshes and graphs, which have kinks where the highest vertex of a simplex changes. Center the shapes,
    such as by ``normalize="unit_ball"``. Mirror images have the same logits.

    Args:
        layer: The transform, in the fixed directions of a :func:`~eulerscan.directions.quadrature`: :meth:`initial_directions`,
            or another one of odd degree.
        num_classes: Number of logits.
        degree: Largest degree of the harmonics.
        channels: Output channels of the convolutions. Each halves the number of thresholds.
        hidden: Sizes of the hidden layers.
        dropout: Dropout probability before each layer after the norms.

    Example:
        >>> directions = ECTHarmonics.initial_directions(dim=3, degree=4)
        >>> layer = ECTLayer(3, num_thresholds=24, scale=8.0, directions=directions, learn_directions=False)
        >>> model = ECTHarmonics(layer, num_classes=40, degree=4)
        >>> model(torch.rand(8, 100, 3)).shape
        torch.Size([8, 40])
    """

    def __init__(
        self,
        layer: ECTLayer,
        num_classes: int,
        *,
        degree: int = 6,
        channels: Sequence[int] = (16, 32, 64),
        hidden: Sequence[int] = (128,),
        dropout: float = 0.3,
    ) -> None:
        check_sizes(channels=channels, hidden=hidden)
        width = halved(layer.config.num_thresholds, len(channels))
        if layer.weight.requires_grad:
            raise ValueError("layer must have learn_directions=False, since learned directions are no quadrature.")
        inputs, dim = 2 * layer.num_channels, layer.dim
        blocks: list[nn.Module] = [CurveChannels(), Coefficients(layer.directions, degree), DegreeNorm(inputs, degree, dim)]
        for before, after in itertools.pairwise((inputs, *channels[:-1])):
            blocks += [DegreeConvolution(before, 2 * after, degree, dim), DegreeNorm(2 * after, degree, dim)]
            blocks += [Product(degree, dim)]
        last = channels[-2] if len(channels) > 1 else inputs
        blocks += [DegreeConvolution(last, channels[-1], degree, dim), DegreeNorm(channels[-1], degree, dim)]
        sizes = ((degree + 1) * channels[-1] * width, *hidden)
        classify = [nn.Dropout(dropout), *linear_blocks(sizes, dropout, batch_norm=True), nn.Linear(sizes[-1], num_classes)]
        super().__init__(layer, nn.Sequential(*blocks, Norms(degree, dim), *classify))

    def oriented(self, shape: Shape) -> Complex:
        """The shapes, rotated to their principal axes."""
        complex = as_complex(shape)
        axes = principal_frames(complex)
        if self.layer.config.normalize is not None:  # so that shapes far from the origin lose no digits
            points = complex.points.to(torch.promote_types(complex.points.dtype, torch.float32))
            complex = complex.with_points(relative(points, complex.offsets[0], complex.batch))
        return along_axes(complex, axes)

    @staticmethod
    def initial_directions(dim: int, degree: int = 6, guard: int = GUARD) -> Tensor:
        """Directions ``[T, dim]`` for the layer: the quadrature of degree ``2 * degree + guard``, or one more if that is even.

        The guard is for harmonics of the transform beyond the degree of the network. A quadrature of odd degree is the same for
        either sign of the principal axes.
        """
        degree, guard = integer(degree, "degree", least=0), integer(guard, "guard", least=0)
        if degree > LARGEST_DEGREE:
            raise ValueError(f"degree must be at most {LARGEST_DEGREE}, got {degree}.")
        return quadrature((2 * degree + guard) | 1, dim, dtype=torch.float64).directions


class Coefficients(nn.Module):
    """Coefficients of harmonics, ``[B, C, T, H]`` to ``[M, B, H, C]``: first the axis that rotations mix."""

    matrix: Tensor

    def __init__(self, directions: Tensor, degree: int) -> None:
        super().__init__()
        matrix = projection(directions.detach(), degree)
        self.register_buffer("matrix", matrix.to(torch.get_default_dtype()), persistent=False)

    def forward(self, curves: Tensor) -> Tensor:
        return torch.einsum("mt,bcth->mbhc", self.matrix, curves)


class DegreeConvolution(nn.Module):
    """Convolutions along thresholds, with weights for each degree: ``[M, B, H, C]`` to ``[M, B, H // 2, D]``."""

    degrees: Tensor

    def __init__(self, inputs: int, outputs: int, degree: int, dim: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(KERNEL * inputs)
        self.weight = nn.Parameter(torch.empty(degree + 1, KERNEL * inputs, outputs).uniform_(-bound, bound))
        self.register_buffer("degrees", degrees(degree, dim), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        windows = nn.functional.pad(values, (0, 0, KERNEL // 2 - 1, KERNEL // 2 - 1)).unfold(
            2, KERNEL, 2
        )  # [M, B, H, C, KERNEL]
        flat = windows.flatten(3).flatten(1, 2)
        convolved: Tensor = torch.bmm(flat, self.weight[self.degrees]).unflatten(1, windows.shape[1:3])
        return convolved


class DegreeNorm(nn.Module):
    """Batch normalization of ``[M, B, H, C]``: mean 0, and power 1 for each degree and channel.

    Coefficients of a degree share one factor, so they still rotate. A batch of one has the running statistics.
    """

    degrees: Tensor
    running_mean: Tensor
    running_power: Tensor
    num_batches: Tensor

    def __init__(self, channels: int, degree: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(degree + 1, channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("degrees", degrees(degree, dim), persistent=False)
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_power", torch.ones(degree + 1, channels))
        self.register_buffer("num_batches", torch.zeros((), dtype=torch.int64))

    def forward(self, values: Tensor) -> Tensor:
        mean, power = self.running_mean, self.running_power
        if self.training and values.shape[1] > 1:
            mean = values[0].mean(dim=(0, 1))
            squares = torch.cat([values[:1] - mean, values[1:]]).square().mean(dim=(1, 2))
            power = torch.zeros_like(power).index_add(0, self.degrees, squares)
            with torch.no_grad():
                self.num_batches += 1
                # The power of degrees differs by orders of magnitude: the first batch counts fully, not the initial value.
                share = (1 / self.num_batches).clamp(min=MOMENTUM).to(mean)
                self.running_mean.lerp_(mean, share)
                self.running_power.lerp_(power, share)
        floor = NEGLIGIBLE * power.sum(dim=0) + torch.finfo(power.dtype).tiny
        factors = (self.weight * (power + floor).rsqrt())[self.degrees]
        scaled = values * factors[:, None, None]
        return torch.cat([scaled[:1] + (self.bias - mean * factors[0]), scaled[1:]])


class Product(nn.Module):
    """Products of the first and second half of the channels as functions of direction, ``[M, B, H, 2 C]`` to ``[M, B, H, C]``.

    The first half is added. Products have twice the degree, so their coefficients up to the degree are exact on a quadrature of
    three times the degree: no other activation is as exactly equivariant.
    """

    matrix: Tensor
    values: Tensor

    def __init__(self, degree: int, dim: int) -> None:
        super().__init__()
        directions = quadrature(3 * degree, dim, device="cpu", dtype=torch.float64).directions
        dtype = torch.get_default_dtype()
        self.register_buffer("values", harmonics(directions, degree).to(dtype), persistent=False)
        self.register_buffer("matrix", projection(directions, degree).to(dtype), persistent=False)

    def forward(self, coefficients: Tensor) -> Tensor:
        first, second = coefficients.chunk(2, dim=-1)
        products = (self.values @ first.flatten(1)) * (self.values @ second.flatten(1))
        added: Tensor = (self.matrix @ products).unflatten(1, first.shape[1:])
        return first + added


class Norms(nn.Module):
    """What rotations keep of ``[M, B, H, C]``: coefficients of degree 0, and norms of the others, ``[B, (L + 1) H C]``."""

    degrees: Tensor

    def __init__(self, degree: int, dim: int) -> None:
        super().__init__()
        self.degree = degree
        self.register_buffer("degrees", degrees(degree, dim), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        power = values.new_zeros(self.degree + 1, *values.shape[1:]).index_add(0, self.degrees, values.square())
        # The square root has no derivative at 0.
        return torch.cat([values[:1], (power[1:] + 1e-6).sqrt()]).transpose(0, 1).flatten(1)
