"""The interface of the package ``pyect``, as far as its tests of numbers use it, by eulerscan."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import eulerscan as es


class Complex:
    """A container: coordinates and weights of the vertices, then vertices ``[n, rows]`` and weights of each dimension."""

    def __init__(self, *dimensions: tuple[Any, Any], device: Any = None, n_type: str = "simplicial") -> None:
        self.dimensions = [
            (torch.as_tensor(cells, dtype=torch.int64 if dim else torch.float32), torch.as_tensor(weights, dtype=torch.float32))
            for dim, (cells, weights) in enumerate(dimensions)
        ]
        self.n_type = n_type

    from_numpy = classmethod(lambda cls, *dimensions, **options: cls(*dimensions, **options))

    def __getitem__(self, dim: int) -> tuple[Tensor, Tensor]:
        return self.dimensions[dim]

    def __len__(self) -> int:
        return len(self.dimensions)

    def get_coords(self, dim: int) -> Tensor:
        return self[dim][0]

    def get_weights(self, dim: int) -> Tensor:
        return self[dim][1]

    def top_dim(self) -> int:
        return len(self) - 1

    def space_dim(self) -> int:
        return self.get_coords(0).shape[1]

    def to(self, device: Any) -> Complex:
        return self

    def center_(self) -> Complex:
        points, weights = self[0]
        self.dimensions[0] = (es.Complex(points).normalized("center").points, weights)
        return self


def to_eulerscan(data: Any) -> es.Complex:
    (points, weights), *levels = (data[dim] for dim in range(len(data)))
    all_weights = [weights, *(level[1] for level in levels)]
    return es.Complex(points, [level[0].T for level in levels], dims=range(1, 1 + len(levels)), weights=all_weights)


def from_eulerscan(complex: es.Complex, points: Tensor, n_type: str = "simplicial") -> Complex:
    weights = complex.weights or [torch.ones(n) for n in complex.counts]
    cells = [points, *(columns.T for columns in complex.simplices)]
    return Complex(*zip(cells, weights, strict=True), n_type=n_type)


def symmetric_thresholds(radius: Tensor, count: int) -> Tensor:
    """From -radius to radius; a little more, since heights may be rounded up."""
    return radius * (2 * torch.arange(count) / max(1, count - 1) - 1 + 1e-6)


class WECT(torch.nn.Module):
    def __init__(self, dirs: Tensor, num_heights: int) -> None:
        super().__init__()
        if num_heights <= 0:
            raise ValueError("num_heights must be positive.")
        self.register_buffer("dirs", torch.nn.functional.normalize(dirs))
        self.num_heights = num_heights

    def forward(self, data: Any) -> Tensor:
        complex = to_eulerscan(data)
        return es.ect(complex, self.dirs, symmetric_thresholds(complex.largest_norms()[0], self.num_heights))[0]


def compute_wecfs(data: Any, num_vals: int) -> Tensor:
    values = data[0][0].float()
    return es.ecc(to_eulerscan(data), values, symmetric_thresholds(values.abs().max(), num_vals))[0]


def compute_wecfs_general(data: Any, num_vals: int) -> Tensor:
    values = [level for level, _ in data]
    low, high = torch.cat(values).min(), torch.cat(values).max()
    thresholds = low + (high - low) * (torch.arange(num_vals) / max(1, num_vals - 1) + 1e-6)
    # Only the number of cells is known: all are attached to the first vertex.
    columns = [torch.zeros(1, len(level), dtype=torch.int64) for level in values[1:]]
    shape = es.Complex(torch.zeros(len(values[0]), 1), columns, dims=range(1, len(values)), weights=[w for _, w in data])
    return es.ecc(shape, values, thresholds, monotone="assume")[0]


class _ImageECF(torch.nn.Module):
    def __init__(self, num_vals: int) -> None:
        super().__init__()
        self.num_vals = num_vals

    @staticmethod
    def _cell_values(image: Tensor) -> list[Tensor]:
        return list(es.convert.filtration_from_image(image, pixels="vertices").values)

    cell_values_2D = cell_values_3D = _cell_values  # noqa: N815

    def forward(self, image: Tensor) -> Tensor:
        thresholds = torch.arange(self.num_vals) / (self.num_vals - 1)
        return es.ecc(*es.convert.filtration_from_image(image, pixels="vertices"), thresholds)[0, 0].int()


class Image_ECF_2D(_ImageECF):  # noqa: N801
    pass


class Image_ECF_3D(_ImageECF):  # noqa: N801
    pass


def sample_directions_2d(num_dirs: int, *, device: Any = None) -> Tensor:
    return es.directions.circle(num_dirs)


def sample_directions_3d(num_dirs: int, *, device: Any = None) -> Tensor:
    return es.directions.fibonacci(num_dirs)[:, [0, 2, 1]].contiguous()


def mesh_to_complex(path: str, device: Any, centering: bool = False) -> Complex:
    complex = es.read(path).normalized("center" if centering else None)
    return from_eulerscan(complex, complex.points)


def _centered(points: Tensor, image: Tensor) -> Tensor:
    height, width = image.shape
    return points + torch.tensor([-(width - 1) / 2, (height - 1) / 2])


def weighted_freudenthal(image: Tensor, device: Any = None) -> Complex:
    complex = es.convert.from_image(image, weighted=True, pixels="vertices")
    return from_eulerscan(complex, _centered(complex.points, image))


def weighted_cubical(image: Tensor, device: Any = None) -> Complex:
    """Edges and squares all of whose pixels are not zero."""
    lattice, lowest = es.convert.filtration_from_image(image, pixels="vertices", superlevel=True)
    kept = lowest[0] > 0
    number = kept.cumsum(dim=0) - 1
    cells = [number[columns[:, low > 0].long()] for columns, low in zip(lattice.simplices, lowest[1:], strict=True)]
    complex = es.Complex(lattice.points[kept], cells, dims=(1, 2)).with_weights(image.reshape(-1)[kept])
    return from_eulerscan(complex, _centered(complex.points, image), n_type="cubical")
