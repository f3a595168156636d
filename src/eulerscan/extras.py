"""Libraries that some parts need and others do without."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def require(module: str, extra: str) -> Any:
    """Import ``module``, or say which command installs it.

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


def progress(items: Iterable[T], description: str, *, total: int | None = None) -> Iterator[T]:
    """The items, with a progress bar on standard error for work that takes longer than two seconds.

    Where tqdm is not installed there is no bar.
    """
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        return iter(items)
    return iter(tqdm(items, description, total=total, delay=2.0, leave=False, dynamic_ncols=True))
