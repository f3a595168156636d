"""Run a kernel on several threads: those of torch if possible, else workers of our own.

A kernel is a sequential function that releases the GIL and claims tasks by :func:`fetch_add` until none is left. What a task
computes does not depend on its thread, so neither does the result. (``parallel=True`` of numba does not survive a fork,
and DataLoader workers are forked.)

After an operation, the OpenMP threads of torch spin for some milliseconds in case there is more to do. Our own workers would
wait for a free core all that time, in every step of a training loop. So OpenMP calls the kernel, on the threads of torch.
But OpenMP waits for all its threads, and some are late if other programs keep the cores busy. Then our workers take over for
a while: nobody waits for a worker that wakes up after the work is done. Workers also serve if torch has no OpenMP, and in
forked processes, where OpenMP would wait for the threads of the parent. ``EULERSCAN_OPENMP=0`` in the environment turns
OpenMP off, so that only the workers serve.
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

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..._torch_internals import library_path

LATE = 0.001  # seconds beyond twice the shortest call; calls end together, when no task is left
PAUSE = 0.1  # seconds without OpenMP after its threads were late
FORKED = 0x40  # Linux process flag: forked, and no program executed since

_Callback = ctypes.CFUNCTYPE(None)
_jobs: SimpleQueue[Callable[[], None]]
_lock: Lock
_num_workers: int
_used_openmp = False
_pause_ends = 0.0


@intrinsic
def fetch_add(typing: Any, counters: Any, i: Any) -> Any:
    """In a kernel: atomically increment ``counters[i]`` and return its old value.

    A thread that gets a number sees everything that was written before smaller numbers were handed out.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        counter = builder.gep(array.data, [arguments[1]])
        return builder.atomic_rmw("add", counter, ir.Constant(ir.IntType(64), 1), "acq_rel")

    return types.int64(counters, types.intp), generate


def num_useful_threads(num_tasks: int) -> int:
    """The number of threads of torch, but no more than there are tasks."""
    return max(1, min(torch.get_num_threads(), num_tasks))


def run(kernel: Callable[..., int], num_threads: int, *arguments: Any, keep_alive: object = None) -> int:
    """Call ``kernel(counters, *arguments)`` on several threads. Returns the largest status.

    ``counters`` are two zeros: for tasks that were begun, and for tasks that are done.

    ``keep_alive`` owns the memory behind the addresses among the arguments. After Ctrl-C, the last thread may finish later
    than the caller.
    """
    counters = np.zeros(2, np.int64)
    if num_threads == 1:
        return kernel(counters, *arguments)
    statuses: list[int] = []

    def work(keep_alive: object = keep_alive) -> None:
        statuses.append(kernel(counters, *arguments))

    _call_on_threads(work, num_threads)
    return max(statuses)


def _call_on_threads(work: Callable[[], None], num_threads: int) -> None:
    """Call ``work`` up to ``num_threads`` times at once, and wait until all calls return. Raises what a call raised."""
    if sys.is_finalizing():  # no other Python thread runs anymore
        work()
        return
    outcomes: list[float | BaseException] = []
    calls = [_suspended_call(work, outcomes) for _ in range(num_threads)]
    for call in calls:
        next(call)
    began = time.perf_counter()
    if _openmp is None or began < _pause_ends:
        _call_by_workers(calls)
    else:
        _call_by_openmp(calls)
        _pause_openmp_if_late(time.perf_counter() - began, outcomes)
    for call in calls:
        call.close()  # what a signal raises here is not lost either
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _suspended_call(work: Callable[[], None], outcomes: list[float | BaseException]) -> Generator[None, None, None]:
    """A call that starts at the second ``next``, so that an exception from a signal at its very beginning is caught too.

    Appends its duration, or what it raised.
    """
    try:
        yield
        began = time.perf_counter()
        work()
        outcomes.append(time.perf_counter() - began)
    except GeneratorExit:  # never started
        return
    except BaseException as error:
        outcomes.append(error)


# OpenMP


def _find_openmp() -> Callable[[Any, int], None] | None:
    """A function that calls a callback on each of a number of OpenMP threads, shared with torch. ``None`` if unavailable."""
    setting = os.environ.get("EULERSCAN_OPENMP", "1")
    if setting not in ("0", "1"):
        raise ValueError(f"EULERSCAN_OPENMP must be 0 or 1, got {setting!r}.")
    if setting == "0" or sys.platform != "linux" or _is_fork():
        return None
    for library in (None, library_path()):  # torch uses another OpenMP if that was loaded first
        try:
            parallel = ctypes.CDLL(library).GOMP_parallel
        except (OSError, AttributeError):
            continue
        parallel.argtypes, parallel.restype = [_Callback, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
        return lambda callback, num_threads: parallel(callback, None, num_threads, 0)
    return None


def _is_fork() -> bool:
    """Whether OpenMP may have been loaded, with threads, before this process was forked."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return bool(int(fields[6]) & FORKED)
    except (OSError, ValueError, IndexError):
        return False


def _call_by_openmp(calls: list[Generator[None, None, None]]) -> None:
    global _used_openmp
    assert _openmp is not None
    _used_openmp = True
    # Not a Python function: ctypes could only print what a signal raises in its first line. And always as many threads
    # as torch uses: OpenMP would end the others, and torch start them again. Those without a call return at once.
    callback = _Callback(partial(next, map(next, calls), None))
    _openmp(callback, max(len(calls), torch.get_num_threads()))


def _pause_openmp_if_late(seconds: float, outcomes: list[float | BaseException]) -> None:
    global _pause_ends
    shortest = min((outcome for outcome in outcomes if isinstance(outcome, float)), default=0.0)
    if seconds > 2 * shortest + LATE:
        _pause_ends = time.perf_counter() + PAUSE


# Workers


def _call_by_workers(calls: list[Generator[None, None, None]]) -> None:
    own, *pending = calls
    num_helpers, done = len(pending), SimpleQueue[None]()

    def help() -> None:
        try:
            call = pending.pop()
        except IndexError:
            return  # too late: the work is done
        next(call, None)
        done.put(None)

    _start_workers(num_helpers)
    for _ in range(num_helpers):
        _jobs.put(help)
    next(own, None)
    while pending:
        try:
            pending.pop()
            num_helpers -= 1
        except IndexError:
            break
    for _ in range(num_helpers):
        done.get()


def _start_workers(count: int) -> None:
    """Make sure that at least ``count`` workers exist. They wait for jobs until the process ends."""
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


def _reset_workers() -> None:
    """Forget all workers, and locks that they may hold."""
    global _jobs, _lock, _num_workers
    _jobs, _lock, _num_workers = SimpleQueue(), Lock(), 0


def _after_fork() -> None:
    """In the child, which has no threads of its parent. OpenMP does not notice, and torch would wait for them forever."""
    global _openmp
    _reset_workers()
    _openmp = None
    if _used_openmp:
        torch.set_num_threads(1)


_reset_workers()
_openmp = _find_openmp()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
