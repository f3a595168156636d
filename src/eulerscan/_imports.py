"""Libraries that some parts need and others do without."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

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

    There is none where nobody looks (standard error is no terminal), or where tqdm is not installed.
    """
    tqdm = _tqdm()
    if tqdm is None:
        return iter(items)
    return iter(tqdm(items, description, total=total, delay=2.0, disable=None, leave=False, dynamic_ncols=True))


class Bar(Protocol):
    """What is used of tqdm's progress bars."""

    def update(self, n: int = 1) -> Any: ...
    def set_postfix_str(self, s: str) -> Any: ...
    def close(self) -> Any: ...


class _Nothing:
    """The bar of those who do without."""

    def update(self, n: int = 1) -> None: ...
    def set_postfix_str(self, s: str) -> None: ...
    def close(self) -> None: ...


def progress_bar(total: int, description: str, *, initial: int = 0, hidden: bool = False) -> Bar:
    """As :func:`progress`, for a bar that is moved by hand; ``hidden`` ones are never seen."""
    tqdm = _tqdm()
    if tqdm is None:
        return _Nothing()
    # Without a thread that watches it, which would be in the way of processes that are forked.
    kind = type("Bar", (tqdm,), {"monitor_interval": 0})
    bar: Bar = kind(total=total, desc=description, initial=initial, disable=hidden or None, leave=False, dynamic_ncols=True)
    return bar


def _tqdm() -> Any:
    try:
        return require("tqdm.auto", extra="cli").tqdm
    except ModuleNotFoundError:
        return None
