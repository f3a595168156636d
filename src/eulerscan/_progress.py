"""Progress bars on standard error: tqdm where it is installed, else none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

from ._imports import require

T = TypeVar("T")


def progress(items: Iterable[T], description: str, *, total: int | None = None) -> Iterator[T]:
    """Iterate with a progress bar, which appears after two seconds.

    There is no bar if standard error is not a terminal.
    """
    tqdm = _tqdm()
    if tqdm is None:
        return iter(items)
    return iter(tqdm(items, description, total=total, delay=2.0, disable=None, leave=False, dynamic_ncols=True))


class Bar(Protocol):
    """The methods of tqdm's progress bars that we use."""

    def update(self, n: int = 1) -> Any: ...
    def set_postfix_str(self, s: str) -> Any: ...
    def close(self) -> Any: ...


class _NoBar:
    """A progress bar that shows nothing."""

    def update(self, n: int = 1) -> None: ...
    def set_postfix_str(self, s: str) -> None: ...
    def close(self) -> None: ...


def progress_bar(total: int, description: str, *, initial: int = 0, hidden: bool = False) -> Bar:
    """A progress bar to update by hand."""
    tqdm = _tqdm()
    if tqdm is None:
        return _NoBar()
    # Without tqdm's monitor thread, which is unsafe in processes that fork.
    kind = type("Bar", (tqdm,), {"monitor_interval": 0})
    bar: Bar = kind(total=total, desc=description, initial=initial, disable=hidden or None, leave=False, dynamic_ncols=True)
    return bar


def _tqdm() -> Any:
    try:
        return require("tqdm.auto", extra="cli").tqdm
    except ModuleNotFoundError:
        return None
