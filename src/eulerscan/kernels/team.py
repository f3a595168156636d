"""Call a function on several threads at once: on those of torch, where they can be had.

After an operation the threads of torch, which are OpenMP's, keep their cores busy for some milliseconds in case there is more
to do. Threads of our own would wait for a core as long, and in a training loop they always would. So ours is what there is
more to do: OpenMP calls the function in the threads that torch uses.

Without OpenMP there are a few workers of our own, and in a forked child, where the threads that it counts on are gone.
An executor of the standard library would wait for workers that wake up when the work is already done; here they need not come.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import torch

Work = Callable[[], None]  # what raises nothing

_Member = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_jobs: SimpleQueue[Work]
_lock: Lock
_num_workers: int
_met = False  # whether threads of OpenMP were used


def together(work: Work, num_threads: int) -> None:
    """Call ``work`` on up to so many threads, this one included if not enough others come; returns when all calls have."""
    global _met
    if _openmp is None:
        _by_workers(work, num_threads)
        return
    tickets = list(range(num_threads))

    def member(_: object) -> None:
        try:
            tickets.pop()
        except IndexError:
            return  # enough others came
        work()

    _met = True
    # With fewer threads than torch uses OpenMP would end the others, for torch to start them anew.
    _openmp(_Member(member), None, max(num_threads, torch.get_num_threads()), 0)


def _find_openmp() -> Any:
    """What calls a function in the threads of OpenMP that torch uses, if it does."""
    if sys.platform != "linux":
        return None
    try:
        parallel = ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (OSError, AttributeError):
        return None
    parallel.argtypes, parallel.restype = [_Member, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
    return parallel


def _by_workers(work: Work, num_threads: int) -> None:
    tickets = list(range(num_threads - 1))
    done: SimpleQueue[None] = SimpleQueue()

    def help() -> None:
        try:
            tickets.pop()
        except IndexError:
            return  # too late: the work is done
        work()
        done.put(None)

    _start_workers(len(tickets))
    for _ in range(num_threads - 1):
        _jobs.put(help)
    work()
    helpers = num_threads - 1
    while tickets:
        try:
            tickets.pop()
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


def _serve(jobs: SimpleQueue[Work]) -> None:
    while True:
        jobs.get()()


def _reset() -> None:
    """No workers yet, and no locks that others may hold."""
    global _jobs, _lock, _num_workers
    _jobs, _lock, _num_workers = SimpleQueue(), Lock(), 0


def _begin_fork() -> None:
    """A forked child has none of its parent's threads. OpenMP does not know, and torch would wait for them for ever."""
    global _openmp
    _reset()
    _openmp = None
    if _met:
        torch.set_num_threads(1)


_reset()
_openmp = _find_openmp()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_fork)
