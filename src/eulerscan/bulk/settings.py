"""Settings of bulk transforms: the configuration, the ambient dimension, and the options of the readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._validation import plain, positive, set_fields
from ..config import ECTConfig


@dataclass(frozen=True)
class Settings:
    """Everything the transform of a file depends on, besides the file. Transforms with equal settings are comparable.

    Args:
        dim: Dimension of the ambient space. Default: that of the first shape, once it is read.
        ect: How shapes are transformed.
        reading: Options of :func:`eulerscan.read`.

    Example:
        >>> Settings(2, ECTConfig(num_directions=1, num_thresholds=3)).columns()
        ['d0_t0', 'd0_t1', 'd0_t2']
    """

    dim: int | None = None
    ect: ECTConfig = field(default_factory=ECTConfig)
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_fields(
            self,
            dim=None if self.dim is None else positive(self.dim, "dim"),
            ect=replace(self.ect, radius=self.ect.largest_height),  # files record the default too
        )
        if "dtype" in self.reading:
            raise ValueError("reading must not have a dtype: shapes are transformed in float64 and stored in float32.")

    @property
    def known_dim(self) -> int:
        """The ambient dimension, which must be known."""
        if self.dim is None:
            raise ValueError("dim must be given, or found by reading a shape.")
        return self.dim

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one transform: ``[T, H]``, or ``[K, T, H]`` with channels."""
        return self.ect.shape(self.known_dim)

    def columns(self) -> list[str]:
        """The column names of a table: ``d0_t0`` is the first direction and threshold, ``s1_d0_t0`` the same for edges."""
        names = [f"d{i}_t{j}" for i in range(self.ect.num_directions) for j in range(self.ect.num_thresholds)]
        return [f"s{k}_{name}" for k in range(self.shape[0]) for name in names] if len(self.shape) == 3 else names

    def as_dict(self) -> dict[str, Any]:
        """The settings as JSON can hold them."""
        return {"dim": self.dim, **self.ect.as_dict(), "reading": plain(dict(self.reading))}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Settings:
        """The inverse of :meth:`as_dict`."""
        try:
            rest = {name: value for name, value in values.items() if name not in ("dim", "reading")}
            return Settings(values["dim"], ECTConfig.from_dict(rest), values["reading"])
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"values must be those of Settings.as_dict, got {values!r}.") from error
