"""What several commands have in common: options of the form key=value, and files that could not be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from ..folders import Failure


def parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """``("form=meshes", "seed=3", "weighted=true")`` as a dictionary with values of the right types.

    >>> parse_pairs(("form=meshes", "seed=3", "weighted=true"))
    {'form': 'meshes', 'seed': 3, 'weighted': True}
    """
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"An option must have the form name=value, got {pair!r}.")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = {"True": True, "False": False, "None": None}.get(value, value)
    return options


def report_failures(failures: Sequence[Failure]) -> int:
    """Say on standard error what could not be read; the exit code for it."""
    for failure in failures:
        print(f"skipped {failure.path}: {failure.reason}", file=sys.stderr)
    return 1 if failures else 0
