"""Distances of pairs that outlive an interruption: a line each, in a file that only grows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._storage import replacing

Pair = tuple[int, int]


class KeptPairs:
    """What was found for pairs of shapes, kept in a hidden file beside the output until that is written.

    Whoever is killed half-way leaves the pairs that were finished, and perhaps a piece of a line, which does not count. Every
    line says where it is from: two calls for one output may run at once, and what one of them finds is not for the other.

    Args:
        output: The file that will hold the result.
        origin: All that the values depend on, as JSON has it. What is of another origin is dropped.

    Attributes:
        values: By pair, as far as they are known.
    """

    def __init__(self, output: Path, origin: Mapping[str, Any]) -> None:
        self.path = output.with_name(f".{output.name}.pairs")
        self._origin = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()
        self.values: dict[Pair, float] = self._read()
        with replacing(self.path) as partial:
            partial.write_text("".join(map(self._line, self.values, self.values.values())), encoding="utf-8")

    def add(self, pair: Pair, value: float) -> None:
        """Keep one more."""
        self.values[pair] = value
        with self.path.open("a", encoding="utf-8") as file:
            file.write(self._line(pair, value))

    def remove(self) -> None:
        """The result is written: leave nothing behind."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> dict[Pair, float]:
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except (FileNotFoundError, UnicodeDecodeError):
            return {}
        values: dict[Pair, float] = {}
        for line in lines[:-1]:  # what follows the last end of a line is a piece of one
            try:
                origin, i, j, value = line.split()
                if origin == self._origin:
                    values[int(i), int(j)] = float.fromhex(value)
            except ValueError:  # the machine stopped while it wrote
                continue
        return values

    def _line(self, pair: Pair, value: float) -> str:
        return f"{self._origin} {pair[0]} {pair[1]} {value.hex()}\n"  # to the last bit
