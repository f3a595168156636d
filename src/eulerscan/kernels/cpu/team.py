"""Call a function on several threads at once: on those of torch, where they can be had and are there in time.

After an operation the threads of torch, which are OpenMP's, keep their cores busy for some milliseconds in case there is more
to do. Threads of our own would wait for a core as long, and in a training loop they always would. So OpenMP calls the function,
in the very threads that torch uses. It waits for all of them, though. Where other programs keep the cores busy some come late,
and then workers of our own serve for a while: whoever of them wakes up when the work is done need not come.

The workers also serve where torch has no OpenMP, and in forked children, whose parent's threads OpenMP would wait for.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import torch

LATE = 0.001  # seconds beyond twice those of the shortest call: all end when there is nothing left to do
PAUSE = 0.1  # seconds without OpenMP after its threads were late
FORKED = 0x40  # Linux: this process was forked and has executed no program since

_Member = ctypes.CFUNCTYPE(None)
_jobs: SimpleQueue[Callable[[], None]]
_lock: Lock
_num_workers: int
_used_openmp = False
_pause_ends = 0.0


def together(work: Callable[[], None], num_threads: int) -> None:
    """Call ``work`` on up to so many threads, this one among them unless enough others come. Returns when all calls have.

    Raises what one of the calls raised.
    """
    if sys.is_finalizing():  # no other thread will ever run
        work()
        return
    outcomes: list[float | BaseException] = []
    calls = [_entered(work, outcomes) for _ in range(num_threads)]
    for call in calls:
        next(call)
    began = time.perf_counter()
    if _openmp is None or began < _pause_ends:
        _by_workers(calls)
    else:
        _by_openmp(calls)
        _judge(time.perf_counter() - began, outcomes)
    for call in calls:
        call.close()  # what a signal raises there is not lost either
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _entered(work: Callable[[], None], outcomes: list[float | BaseException]) -> Generator[None, None, None]:
    """A call that waits for its second ``next``: what a signal raises at its very beginning is caught as well.

    Its outcome is how long it took, or what it raised.
    """
    try:
        yield
        began = time.perf_counter()
        work()
        outcomes.append(time.perf_counter() - began)
    except GeneratorExit:  # nobody came
        return
    except BaseException as error:
        outcomes.append(error)


def _by_openmp(calls: list[Generator[None, None, None]]) -> None:
    global _used_openmp
    _used_openmp = True
    # No function of Python: in its first line a signal would raise what ctypes can only print. With fewer threads than torch
    # uses OpenMP would end the others, for torch to start them anew; so all come, and those without a call go at once.
    member = _Member(partial(next, map(next, calls), None))
    _openmp(member, max(len(calls), torch.get_num_threads()))


def _judge(seconds: float, outcomes: list[float | BaseException]) -> None:
    """Do without OpenMP for a while if its threads were late."""
    global _pause_ends
    shortest = min((outcome for outcome in outcomes if isinstance(outcome, float)), default=0.0)
    if seconds > 2 * shortest + LATE:
        _pause_ends = time.perf_counter() + PAUSE


def _find_openmp() -> Any:
    """What calls a function in each of so many threads of OpenMP, those that torch uses; ``None`` if that cannot be."""
    if sys.platform != "linux" or _is_fork():
        return None
    for library in (None, torch._C.__file__):  # another OpenMP may have been loaded before torch's, which then uses it too
        try:
            parallel = ctypes.CDLL(library).GOMP_parallel
        except (OSError, AttributeError):
            continue
        parallel.argtypes, parallel.restype = [_Member, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
        return lambda member, num_threads: parallel(member, None, num_threads, 0)
    return None


def _is_fork() -> bool:
    """Whether OpenMP may know threads of another process: it was loaded there, and forked."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return bool(int(fields[6]) & FORKED)
    except (OSError, ValueError, IndexError):
        return False


def _by_workers(calls: list[Generator[None, None, None]]) -> None:
    own, *open = calls
    helpers, done = len(open), SimpleQueue[None]()

    def assist() -> None:
        try:
            call = open.pop()
        except IndexError:
            return  # too late: the work is done
        next(call, None)
        done.put(None)

    _start_workers(helpers)
    for _ in range(helpers):
        _jobs.put(assist)
    next(own, None)
    while open:
        try:
            open.pop()
            helpers -= 1
        except IndexError:
            break
    for _ in range(helpers):
        done.get()


def _start_workers(count: int) -> None:
    """See to it that there are at least ``count`` workers. They wait for jobs until the process ends."""
    global _num_workers
    if _num_workers >= count:
        return
    with _lock:
        while _num_workers < count:
            Thread(target=_serve, args=(_jobs,), name=f"eulerscan-{_num_workers}", daemon=True).start()
            _num_workers += 1


def _serve(jobs: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        jobs.get()()


def _reset() -> None:
    """No workers yet, and no locks that others may hold."""
    global _jobs, _lock, _num_workers
    _jobs, _lock, _num_workers = SimpleQueue(), Lock(), 0


def _after_fork() -> None:
    """In the child, which has none of its parent's threads. OpenMP does not notice, and torch would wait for them for ever."""
    global _openmp
    _reset()
    _openmp = None
    if _used_openmp:
        torch.set_num_threads(1)


_reset()
_openmp = _find_openmp()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
