"""Checkpoint of pairwise distances: an append-only file with one line per pair."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._storage import naming, write_text

Pair = tuple[int, int]


class PairwiseCheckpoint:
    """Finished pairs of an interrupted computation, in a hidden file beside the output until that is written.

    A process that is killed leaves all finished pairs, and perhaps an incomplete line, which is ignored. Every line carries a
    hash of the inputs, so concurrent calls with the same output do not read each other's values.

    Args:
        output: File of the final result.
        inputs: Everything that the values depend on, JSON-serializable. Values from other inputs are discarded.

    Attributes:
        values: Finished pairs.
    """

    def __init__(self, output: Path, inputs: Mapping[str, Any]) -> None:
        self.path = output.with_name(f".{output.name}.pairs")
        self._hash = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
        self.values: dict[Pair, float] = self._read()
        write_text(self.path, "".join(map(self._line, self.values, self.values.values())))

    def add(self, pair: Pair, value: float) -> None:
        """Append a finished pair."""
        self.values[pair] = value
        with naming(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(self._line(pair, value))

    def remove(self) -> None:
        """Delete the file, once the result is written."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> dict[Pair, float]:
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except (FileNotFoundError, UnicodeDecodeError):
            return {}
        values: dict[Pair, float] = {}
        for line in lines[:-1]:  # the last one is empty or incomplete
            try:
                hash, i, j, value = line.split()
                if hash == self._hash:
                    values[int(i), int(j)] = float.fromhex(value)
            except ValueError:  # interrupted while writing
                continue
        return values

    def _line(self, pair: Pair, value: float) -> str:
        return f"{self._hash} {pair[0]} {pair[1]} {value.hex()}\n"  # hexadecimal: exact to the last bit
