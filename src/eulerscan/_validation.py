"""Checks of arguments. Each names the argument, what it needs, and what came."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._torch_internals import is_vmapped

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def integer(n: int, name: str, *, least: int) -> int:
    """A whole number of Python or NumPy, as an int. A bool is rejected."""
    try:
        number = operator.index(None if isinstance(n, bool) else n)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an int, got {type(n).__name__}.") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}.")
    return number


def positive(n: int, name: str) -> int:
    """A count, at least 1, as an int."""
    return integer(n, name, least=1)


def number(value: float | None, name: str, *, least: float | None = None, finite: bool = False) -> float:
    """A real number of Python or NumPy, as a float. A bool is rejected."""
    if isinstance(value, bool) or not isinstance(value, Real | float | int):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.")
    if least is not None and not value >= least:  # NaN too
        raise ValueError(f"{name} must be at least {least:g}, got {value}.")
    if finite and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}.")
    return float(value)


def positive_number(value: float | None, name: str, *, finite: bool = False) -> float:
    """A number greater than 0, as a float."""
    found = number(value, name, finite=finite)
    if not found > 0:  # NaN too
        raise ValueError(f"{name} must be positive, got {value}.")
    return found


def plain(value: Any) -> Any:
    """A value with Python's numbers in place of NumPy's, which JSON does not know. Lists, tuples and dicts are searched."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def set_fields(config: object, **values: Any) -> None:
    """Set fields of a frozen dataclass, in its ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(config, name, value)


def check_bool(value: bool, name: str) -> None:
    """A switch. A number would pass for one, though whoever gives it means something else: a tolerance, say."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")


def check_choice(value: object, name: str, choices: Sequence[str], *, optional: bool = False) -> None:
    """One of a few words, or ``None`` where that is an option."""
    if value not in choices and not (optional and value is None):
        raise ValueError(f"{name} must be {'None or ' if optional else ''}one of {', '.join(choices)}, got {value!r}.")


def check_radius(radius: float | Tensor | None, *, optional: bool = False) -> None:
    """How far out thresholds reach, or ``None`` where that is an option."""
    if radius is None and optional:
        return
    if not 0 < number(radius.item() if isinstance(radius, Tensor) else radius, "radius") < math.inf:  # NaN too
        raise ValueError(f"radius must be positive and finite, got {radius}.")


def check_floating(tensor: Tensor, name: str) -> None:
    """A tensor of floating-point numbers. Values are not read."""
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
        got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise TypeError(f"{name} must be a torch.Tensor of floating point, got {got}.")


def check_finite(tensor: Tensor, name: str) -> None:
    """A tensor without infinity and NaN."""
    if not is_finite(tensor):
        raise ValueError(f"{name} must be finite, got {tensor[~torch.isfinite(tensor)][0].item()}.")


def check_directions(directions: Tensor, dim: int) -> None:
    """``[T, dim]`` with T at least 1. Values are not read."""
    check_floating(directions, "directions")
    if directions.ndim != 2 or directions.shape[1] != dim or not len(directions):
        raise ValueError(f"directions must have shape [T, {dim}] for dim={dim}, got {list(directions.shape)}.")


def ascending_error(thresholds: Tensor) -> ValueError:
    """What to raise for thresholds that are not finite or do not ascend."""
    finite = torch.isfinite(thresholds)
    if not bool(finite.all()):
        return ValueError(f"thresholds must be finite, got {thresholds[~finite][0].item()}.")
    j = int((thresholds[1:] < thresholds[:-1]).nonzero()[0, 0])
    return ValueError(
        f"thresholds must ascend, got {thresholds[j].item():g} before {thresholds[j + 1].item():g} at position {j}. "
        "Sort them: thresholds.sort().values"
    )


def as_tensor(array: Any, name: str) -> Tensor:
    """A NumPy array as a tensor, sharing memory where torch can. Tensors are returned unchanged."""
    if isinstance(array, Tensor):
        return array
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got an array of {array.dtype}.")
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def check_points(points: Tensor, *, values: bool = True) -> None:
    """Coordinates ``[V, dim]``; whether they are finite only if their values may be read."""
    if not isinstance(points, Tensor):
        raise TypeError(f"points must be a torch.Tensor [V, dim], got {type(points).__name__}. torch.as_tensor() makes one.")
    if not points.is_floating_point():
        raise TypeError(f"points must be floating point, got {points.dtype}. Use points.float().")
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"points must have shape [V, dim] with dim at least 1, got {list(points.shape)}.")
    if values and not is_finite(points):
        row = int((~torch.isfinite(points).all(dim=1)).nonzero()[0, 0])
        raise ValueError(f"points must be finite, got {points[row].tolist()} at row {row}.")


def check_batch(batch: Tensor | None, num_complexes: int | None, points: Tensor) -> tuple[Tensor, int]:
    """``batch`` in int64, and the number of complexes."""
    num_complexes = None if num_complexes is None else integer(num_complexes, "num_complexes", least=0)
    if batch is None:
        batch = torch.zeros(len(points), dtype=torch.int64, device=points.device)
        num_complexes = 1 if num_complexes is None else num_complexes
    else:
        _check_integers("batch", batch, points)
        if batch.shape != (len(points),):
            raise ValueError(f"batch must have one entry per point, shape [{len(points)}], got {list(batch.shape)}.")
    low, high = (int(batch.min()), int(batch.max())) if len(batch) else (0, -1)
    num_complexes = high + 1 if num_complexes is None else num_complexes
    if num_complexes == 0 and len(points):
        raise ValueError(f"num_complexes must be at least 1, since there are {len(points)} points, got 0.")
    if low < 0 or high >= num_complexes:
        bad = low if low < 0 else high
        raise IndexError(f"batch must hold numbers from 0 to num_complexes - 1 = {num_complexes - 1}, got {bad}.")
    return batch.long(), num_complexes


def check_simplices(
    simplices: Iterable[Tensor], points: Tensor, batch: Tensor, dims: Sequence[int] | None = None
) -> tuple[Tensor, ...]:
    """The simplices, or cells of the given dimensions, in 32 or 64 bits."""
    if isinstance(simplices, Tensor):
        raise TypeError(
            f"simplices must be a list of tensors, one for each dimension, got one tensor of shape {list(simplices.shape)}. "
            "Put it in brackets: [simplices]"
        )
    simplices = tuple(simplices)
    _check_dims(dims, len(simplices))
    kinds: list[tuple[int, int]] = []
    for i, columns in enumerate(simplices):
        name = f"simplices[{i}]"
        _check_integers(name, columns, points)
        if columns.ndim != 2 or len(columns) < (2 if dims is None else 1):
            hint = " The points are its vertices already." if columns.ndim == 2 and len(columns) == 1 else ""
            raise ValueError(f"{name} must have shape [k + 1, count] with k at least 1, got {list(columns.shape)}.{hint}")
        kind = (len(columns) - 1 if dims is None else dims[i], len(columns))
        if kind in kinds:
            what = f"{kind[0]}-simplices" if dims is None else f"{kind[0]}-cells of {kind[1]} vertices"
            raise ValueError(f"{name} holds {what}, and so does an earlier one. Join them: torch.cat(..., dim=1)")
        kinds.append(kind)
    # torch takes 8 bits for a mask, where indices are meant.
    indices = tuple(columns if columns.dtype in (torch.int32, torch.int64) else columns.long() for columns in simplices)
    dimensions = [0, *(dim for dim, _ in kinds)]
    for i, columns in enumerate(indices):
        # A list of edges [n, 2] would be two simplices of dimension n - 1, without any of their faces.
        faceless = dims is None and len(columns) - 2 not in dimensions
        _check_columns(f"simplices[{i}]", columns, len(points), batch, faceless)
    return indices


def _check_dims(dims: Sequence[int] | None, count: int) -> None:
    """Dimensions of cells, one for each entry of simplices."""
    if dims is None:
        return
    if len(dims) != count:
        raise ValueError(f"dims must have one entry for each of the {count} entries of simplices, got {len(dims)}.")
    for dim in dims:
        positive(dim, "dims")


def _check_columns(name: str, columns: Tensor, num_points: int, batch: Tensor, faceless: bool) -> None:
    """Values of the simplices of one level; ``faceless`` if none of their faces are listed."""
    rows, count = columns.shape
    if faceless and rows > 4 and count > 1:  # a transposed list has two columns at least
        raise ValueError(
            f"{name} holds {rows - 1}-simplices, so it needs shape [{rows}, count] and their faces in other entries, got "
            f"{[rows, count]} and no {rows - 2}-simplices. Did you pass it transposed? If not, list the faces, or give the "
            f"dimension of every entry, as for hyperedges and other cells: dims=[{rows - 1}]"
        )
    if count == 0:
        return
    hint = " Did you pass it transposed?" if faceless and rows > max(count, 2) else ""
    low, high = int(columns.min()), int(columns.max())
    if low < 0 or high >= num_points:
        bad = low if low < 0 else high
        raise IndexError(
            f"{name} must hold indices from 0 to {num_points - 1} (there are {num_points} points), got {bad}.{hint}"
        )
    repeated = torch.zeros(count, dtype=torch.bool, device=columns.device)
    # Comparing all pairs takes a fraction of sorting, for as few vertices as simplices usually have.
    pairs = itertools.combinations(columns, 2) if rows <= 4 else itertools.pairwise(columns.sort(dim=0).values)
    for one, other in pairs:
        repeated |= one == other
    if bool(repeated.any()):
        column = int(repeated.nonzero()[0, 0])
        raise ValueError(
            f"{name} must hold different vertices in every column, got {_some(columns[:, column])} in column {column}.{hint}"
        )
    owner = batch[columns[0]]
    for row in columns[1:]:
        crossing = batch[row] != owner
        if bool(crossing.any()):
            column = int(crossing.nonzero()[0, 0])
            vertices = columns[:, column].long()
            raise ValueError(
                f"{name} must join vertices of one complex, got {_some(vertices)} of the complexes "
                f"{_some(batch[vertices])} in column {column}.{hint}"
            )


def _some(values: Tensor) -> str:
    """A few of the values, for an error text."""
    return f"[{', '.join(str(v) for v in values[:6].tolist())}{', ...' if len(values) > 6 else ''}]"


def check_vertex_weights(weights: Any, points: Tensor) -> Tensor:
    """Weights ``[V]`` of the vertices, in the dtype of the points."""
    weights, count = as_tensor(weights, "weights"), len(points)
    hint = " Give those of simplices in a tuple, a tensor a level." if weights.ndim == 1 and len(weights) > count else ""
    hint = " Use weights.reshape(-1)." if weights.numel() == count else hint
    return _check_weight("weights", weights, points, count, "vertex", hint)


def check_weights(
    weights: Sequence[Tensor | None] | Tensor | None, points: Tensor, simplices: Sequence[Tensor]
) -> tuple[Tensor, ...] | None:
    """One tensor a level in the dtype of the points, or ``None`` where all weights are one."""
    if weights is None:
        return None
    if isinstance(weights, Tensor) or len(weights) != 1 + len(simplices):
        got = f"a tensor of shape {list(weights.shape)}" if isinstance(weights, Tensor) else f"{len(weights)} entries"
        raise ValueError(
            f"weights must have an entry for the vertices and one for each of the {len(simplices)} entries of simplices "
            f"({1 + len(simplices)} in all, None for all ones), got {got}."
        )
    if all(entry is None for entry in weights):
        return None
    counts = [len(points), *(columns.shape[1] for columns in simplices)]
    return tuple(
        points.new_ones(count) if entry is None else _check_weight(f"weights[{i}]", entry, points, count, "simplex")
        for i, (entry, count) in enumerate(zip(weights, counts, strict=True))
    )


def _check_weight(name: str, weights: Tensor, points: Tensor, count: int, what: str, hint: str = "") -> Tensor:
    """One number for each vertex or simplex, in the dtype of the points."""
    if not isinstance(weights, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor or None, got {type(weights).__name__}.")
    if weights.shape != (count,):
        raise ValueError(f"{name} must have one entry per {what}, shape [{count}], got {list(weights.shape)}.{hint}")
    if weights.device != points.device:
        raise ValueError(f"{name} must be on {points.device} like points, got {weights.device}.")
    if weights.is_complex():
        raise TypeError(f"{name} must be real, got {weights.dtype}.")
    converted = weights.to(points.dtype)
    if not is_finite(converted):
        bad = weights[~torch.isfinite(converted)][0].item()
        raise ValueError(f"{name} must be finite in the dtype of the points, {points.dtype}, got {bad}.")
    return converted


def is_finite(tensor: Tensor) -> bool:
    """Whether all numbers are finite, as far as they can be read."""
    # A finite sum has finite terms, and takes a fraction of the time.
    return is_vmapped(tensor) or bool(torch.isfinite(tensor.detach().sum())) or bool(torch.isfinite(tensor).all())


def _check_integers(name: str, tensor: Tensor, points: Tensor) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor of integers, got {type(tensor).__name__}.")
    if tensor.dtype not in INTEGERS:
        raise TypeError(f"{name} must hold integers, got {tensor.dtype}.")
    if tensor.device != points.device:
        raise ValueError(f"{name} must be on {points.device} like points, got {tensor.device}.")
