"""A scikit-learn transformer: shapes in, a matrix of features out. No tensors needed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from . import directions as spheres
from ._devices import as_numpy
from ._imports import require
from ._validation import as_tensor, positive
from .complexes import Complex, as_complex
from .complexes.normalize import DivideBy, Normalize
from .config import ECTConfig
from .grid import soft_scale, with_margin
from .harmonics import GUARD, quadrature_degree
from .variants import Variant, power_spectrum

_base = require("sklearn.base", extra="sklearn")
_parallel = require("sklearn.utils.parallel", extra="sklearn")
_validation = require("sklearn.utils.validation", extra="sklearn")
_utils = require("sklearn.utils", extra="sklearn")

SHAPES_AT_ONCE = 256  # the same for any number of jobs

_Array = np.ndarray[Any, Any]


class ECTTransformer(_base.TransformerMixin, _base.BaseEstimator):  # type: ignore[misc, name-defined]
    """Euler characteristic transforms as features: ``[n_shapes, num_directions * num_thresholds]``.

    Row ``i`` is the transform of shape ``i``, direction after direction. It depends only on that shape and on what :meth:`fit`
    learned: the dimension of space and, if left to the data, the radius and the number of channels. Weighted shapes keep
    their weights.

    Shapes may come as an array of clouds ``[n_shapes, n_points, dim]``; a list of arrays ``[n_points, dim]`` of any sizes, of
    :class:`Complex`, or of objects of torch_geometric, trimesh or networkx, mixed as you like; or one
    :class:`Complex` that holds them all.

    Args:
        num_directions: Number of directions. Ignored if ``directions`` are given.
        num_thresholds: Number of thresholds at which each curve is sampled, from ``-radius`` to ``radius``.
        radius: A number; ``"max"``, the largest norm of a vertex in :meth:`fit`; or ``"quantile"``, the ``quantile`` of the
            largest norms of the shapes there. A learned radius gets a margin of a tenth.
        quantile: From 0 to 1.
        scale: Steepness of the sigmoid that replaces the step; ``inf`` is the exact transform. Default: exact, but with
            ``spectrum`` a soft scale, 8 for a radius of 1.1 (:func:`~eulerscan.grid.soft_scale`).
        variant: ``"ect"``; ``"sect"``, smoothed by integration; ``"superlevel"``, downward; or ``"channels"``, with vertices,
            edges and faces counted separately, up to the largest dimension in :meth:`fit`.
        derivative: Whether to take the difference of each curve from one threshold to the next.
        spectrum: Whether to take norms of the harmonics over directions, which hardly change if a shape is rotated: root of
            :func:`~eulerscan.variants.power_spectrum`. ``num_directions`` decides the largest degree, 3 for 32 in space and 15
            in the plane. The transform is computed in more directions, a :func:`~eulerscan.directions.quadrature` with a guard
            of 20 degrees. With the default scale, features of meshes then change by about a thousandth, those of clouds by
            less than a millionth; those of exact curves by several hundredths.
        normalize: ``"unit_ball"`` centers each shape and scales it to norm 1. Use ``"center"`` if size matters, and ``None`` if
            position does too; the radius is then in the units of the shapes, and ``radius="max"`` finds it.
        divide_by: Divide the transform of each shape by its number of ``"vertices"`` or ``"simplices"``, or by its largest
            absolute value (``"peak"``). The curve of a cloud grows with its number of points, so clouds of different sizes need
            ``"vertices"``.
        directions: ``"uniform"``, evenly spread; ``"random"``; or an array ``[num_directions, dim]``.
        dim: For a matrix ``[n_shapes, n_features]``: each row is a cloud of ``n_features / dim`` points, coordinates of the
            first point first.
        dtype: Of the calculation and the features, ``"float64"`` or ``"float32"``.
        n_jobs: Number of threads over batches of shapes; the features are bit-identical. One transform is multithreaded
            already, so it helps mostly if shapes take time to convert.
        random_state: Seed or generator of random directions.

    Attributes:
        dim_: Dimension of the ambient space.
        radius_: Largest height.
        directions_: ``[num_directions, dim]``.
        thresholds_: ``[num_thresholds]``.
        config_: The :class:`~eulerscan.ECTConfig` with these settings.

    Example:
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.svm import SVC
        >>> rng = np.random.default_rng(0)
        >>> clouds = [rng.normal(size=(20, 3)) * [1, 1, size] for size in (0.1, 3) * 10]
        >>> features = ECTTransformer(num_directions=8, num_thresholds=16, divide_by="vertices")
        >>> model = make_pipeline(features, SVC()).fit(clouds, ["flat", "long"] * 10)
        >>> model.predict([rng.normal(size=(500, 3)) * [1, 1, 0.1]])
        array(['flat'], dtype='<U4')
    """

    def __init__(
        self,
        num_directions: int = 32,
        num_thresholds: int = 32,
        *,
        radius: float | Literal["max", "quantile"] = 1.1,
        quantile: float = 0.95,
        scale: float | None = None,
        variant: Variant = "ect",
        derivative: bool = False,
        spectrum: bool = False,
        normalize: Normalize | None = "unit_ball",
        divide_by: DivideBy | None = None,
        directions: Any = "uniform",
        dim: int | None = None,
        dtype: Literal["float64", "float32"] = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.num_directions = num_directions
        self.num_thresholds = num_thresholds
        self.radius: Any = radius
        self.quantile = quantile
        self.scale = scale
        self.variant = variant
        self.derivative = derivative
        self.spectrum = spectrum
        self.normalize: Any = normalize
        self.divide_by = divide_by
        self.directions = directions
        self.dim = dim
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> ECTTransformer:  # noqa: N803
        """Learn the dimension of space and, if left to the data, the radius and the number of channels."""
        config = ECTConfig(
            num_directions=self.num_directions,
            num_thresholds=self.num_thresholds,
            scale=math.inf if self.scale is None else self.scale,
            variant=self.variant,
            derivative=self.derivative,
            normalize=self.normalize,
            divide_by=self.divide_by,
        )
        if self.dtype not in ("float64", "float32"):
            raise ValueError(f'dtype must be "float64" or "float32", got {self.dtype!r}.')
        norms, last, dim = [], 0, None
        for part in self._parts(X, reset=True):
            complex = self._complex(*part, dim)
            dim = complex.dim
            norms.append(as_numpy(complex.normalized(self.normalize).largest_norms()))
            last = max(last, complex.max_dim)
        if dim is None:
            raise ValueError("X has no shapes: 0 sample(s), while a minimum of 1 is required by ECTTransformer.")
        self.dim_ = dim
        self.radius_ = self._radius(np.concatenate(norms))
        scale = soft_scale(self.radius_) if self.spectrum and self.scale is None else config.scale
        max_dim = last if self.variant == "channels" else None
        self.config_ = replace(config, radius=self.radius_, scale=scale, max_dim=max_dim)
        self.directions_ = self._directions(config.num_directions, dim)
        if not self.spectrum:
            self.config_ = replace(self.config_, num_directions=len(self.directions_))
        self.thresholds_ = self.config_.thresholds().to(self._dtype).numpy()
        return self

    def transform(self, X: Any) -> _Array:  # noqa: N803
        """The features ``[n_shapes, n_features]`` of the shapes, in their order."""
        _validation.check_is_fitted(self)
        task = _parallel.delayed(self._features)
        found = _parallel.Parallel(n_jobs=self.n_jobs, prefer="threads")(task(*part) for part in self._parts(X, reset=False))
        return np.concatenate([np.empty((0, len(self._names())), dtype=self.dtype), *found])

    def get_feature_names_out(self, input_features: Any = None) -> _Array:
        """Names of the features: ``ect_d3_t17`` is direction 3 at threshold 17, ``channels_s1_d3_t17`` of the edges.

        With ``spectrum``, ``ect_l3_t17`` is degree 3.
        """
        _validation.check_is_fitted(self)
        if hasattr(self, "n_features_in_"):
            _validation._check_feature_names_in(self, input_features)
        return np.array(self._names(), dtype=object)

    def _names(self) -> list[str]:
        config = self.config_
        name = f"{config.variant}_derivative" if config.derivative else config.variant
        channels = range(config.num_channels(self.dim_))
        kinds = [f"{name}_s{k}" for k in channels] if config.variant == "channels" else [name]
        row, count = ("l", self._degree + 1) if self.spectrum else ("d", len(self.directions_))
        grid = [f"{row}{i}_t{j}" for i in range(count) for j in range(len(self.thresholds_))]
        return [f"{kind}_{place}" for kind in kinds for place in grid]

    @property
    def _degree(self) -> int:
        """The largest degree of a spectrum: that which ``num_directions`` could tell apart."""
        return quadrature_degree(self.config_.num_directions, self.dim_) // 2

    @property
    def _dtype(self) -> torch.dtype:
        return torch.float32 if self.dtype == "float32" else torch.float64

    def _parts(self, X: Any, *, reset: bool) -> Iterator[tuple[Any, int]]:  # noqa: N803
        """Batches of shapes, each with the index of its first shape."""
        shapes = self._shapes(X, reset=reset)
        for start in range(0, len(shapes), SHAPES_AT_ONCE):
            yield shapes[start : start + SHAPES_AT_ONCE], start

    def _shapes(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """The shapes as something that can be sliced."""
        if self.dim is not None:
            matrix = _validation.validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
            dim = positive(self.dim, "dim")
            if matrix.shape[1] % dim:
                raise ValueError(f"X must have rows of points in dimension {dim}, got {matrix.shape[1]} features.")
            return matrix.reshape(len(matrix), -1, dim)
        if isinstance(X, Complex | list | tuple):
            return X
        if isinstance(X, Tensor | np.ndarray) and X.dtype != object:
            if X.ndim != 3:
                raise ValueError(
                    f"X must be an array of clouds [n_shapes, n_points, dim], got {list(X.shape)}. Reshape it, put a single "
                    "cloud in a list, or give dim= if each row is a cloud."
                )
            return X
        return list(X) if isinstance(X, np.ndarray) else as_complex(X)

    def _complex(self, shapes: Any, start: int, dim: int | None) -> Complex:
        """One complex of a batch of shapes, of dimension ``dim`` if that is known."""
        if isinstance(shapes, list | tuple):
            shapes = [self._one(shape, start + i, dim) for i, shape in enumerate(shapes)]
        elif isinstance(shapes, np.ndarray):
            shapes = as_tensor(shapes, "X").to(self._dtype)
        complex = as_complex(shapes).to("cpu", self._dtype)
        if dim is not None and complex.dim != dim:
            raise ValueError(f"X must have points of dimension {dim} like the shapes in fit, got {complex.dim}.")
        return complex

    def _one(self, shape: Any, number: int, dim: int | None) -> Complex:
        """One shape of a list."""
        try:
            if isinstance(shape, np.ndarray | list | tuple):
                shape = as_tensor(np.asarray(shape), "shape").to(self._dtype)
            complex = as_complex(shape)
        except (TypeError, ValueError, IndexError) as error:
            raise type(error)(f"X[{number}]: {error}") from None
        if complex.num_complexes != 1 or dim not in (None, complex.dim):
            wanted = "one shape" if dim is None else f"one shape with points of dimension {dim}"
            raise ValueError(f"X[{number}] must be {wanted}, got {complex}.")
        return complex.to("cpu", self._dtype)  # before collating, so that no shape changes the dtype of another

    def _features(self, shapes: Any, start: int) -> _Array:
        complex = self._complex(shapes, start, self.dim_)
        grid = (torch.from_numpy(self.directions_), torch.from_numpy(self.thresholds_))
        with torch.no_grad():
            curves = self.config_.transform(complex, *grid)
            if self.spectrum:
                curves = power_spectrum(curves, grid[0], degree=self._degree).sqrt()
        features: _Array = curves.flatten(1).numpy()
        return features

    def _radius(self, norms: _Array) -> float:
        largest = float(norms.max())
        if self.radius in ("max", "quantile"):
            if not 0 <= self.quantile <= 1:
                raise ValueError(f"quantile must be from 0 to 1, got {self.quantile}.")
            reached = largest if self.radius == "max" else float(np.quantile(norms, self.quantile))
            return with_margin(reached)
        if not isinstance(self.radius, Real):
            raise ValueError(f'radius must be a number, "max" or "quantile", got {self.radius!r}.')
        if largest > self.radius:
            warnings.warn(
                f"{np.mean(norms > self.radius):.0%} of the shapes reach beyond radius={self.radius:g}, up to {largest:.4g}, "
                'and are cut off there. Use radius="max", or normalize="unit_ball".',
                stacklevel=3,
            )
        return float(self.radius)

    def _directions(self, count: int, dim: int) -> _Array:
        if self.spectrum:
            if not isinstance(self.directions, str) or self.directions != "uniform" or dim not in (2, 3):
                raise ValueError(
                    'spectrum needs directions="uniform" and shapes in the plane or in space, '
                    f"got {self.directions!r} in dimension {dim}."
                )
            return spheres.quadrature(2 * self._degree + GUARD, dim, dtype=self._dtype).directions.numpy()
        if isinstance(self.directions, str):
            if self.directions == "uniform":
                return spheres.uniform(count, dim, dtype=self._dtype).numpy()
            if self.directions != "random":
                raise ValueError(f'directions must be "uniform", "random" or an array, got {self.directions!r}.')
            seed = _utils.check_random_state(self.random_state).randint(2**31 - 1)
            return spheres.random(count, dim, torch.Generator().manual_seed(seed), dtype=self._dtype).numpy()
        given = np.array(self.directions, dtype=self.dtype)
        if given.ndim != 2 or given.shape[1] != dim or not len(given) or not np.isfinite(given).all():
            raise ValueError(f"directions must be finite and of shape [num_directions, {dim}], got {list(given.shape)}.")
        return given

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.dim is not None
        tags.input_tags.three_d_array = self.dim is None
        tags.transformer_tags.preserves_dtype = [self.dtype]
        return tags
