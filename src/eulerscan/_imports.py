"""Optional dependencies, imported on use."""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, extra: str) -> Any:
    """Import ``module``, or raise an error with the command that installs it.

    >>> require("json", extra="mesh").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f'This needs {error.name}, which is not installed: pip install "eulerscan[{extra}]"', name=error.name
        ) from None
