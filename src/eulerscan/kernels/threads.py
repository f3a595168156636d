"""A few threads of our own for kernels that release the interpreter lock.

numba's ``parallel=True`` does not survive a fork, and forked DataLoader workers are everywhere; an executor of
the standard library waits for threads that wake up when the work is already done. Here a kernel is a plain sequential
function that asks :func:`claim` for its next task until there is none. What a task computes does not depend
on who does it, so neither does the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_jobs: SimpleQueue[Callable[[], None]]
_lock: Lock
_num_workers: int


@intrinsic
def claim(typing: Any, counters: Any, i: Any) -> Any:
    """Inside a kernel: the next number that nobody has claimed of those that ``counters[i]`` counts.

    Whoever gets a number sees all that was written before those below it were claimed.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        counter = builder.gep(array.data, [arguments[1]])
        return builder.atomic_rmw("add", counter, ir.Constant(ir.IntType(64), 1), "acq_rel")

    return types.int64(counters, types.intp), generate


def run(kernel: Callable[..., int], num_threads: int, *arguments: Any, kept: object = None) -> int:
    """Call ``kernel(counters, *arguments)`` on several threads, this one included. Returns the largest of what they return.

    ``counters`` are two zeros: one for the tasks that were begun, and one for those that are done, where that matters.

    ``kept`` is what addresses among the arguments belong to. It lives until the last thread is done, which after an error or
    Ctrl-C may be later than the caller.
    """
    counters = np.zeros(2, np.int64)
    if num_threads == 1:
        return kernel(counters, *arguments)
    tickets = list(range(num_threads - 1))
    outcomes: SimpleQueue[int | BaseException] = SimpleQueue()

    def help(kept: object = kept) -> None:
        try:
            tickets.pop()
        except IndexError:
            return  # too late: the work is done
        try:
            outcomes.put(kernel(counters, *arguments))
        except BaseException as error:  # belongs to the thread that asked for help
            outcomes.put(error)

    _start_workers(len(tickets))
    for _ in range(num_threads - 1):
        _jobs.put(help)
    worst = kernel(counters, *arguments)
    helpers = num_threads - 1
    while tickets:
        try:
            tickets.pop()
            helpers -= 1
        except IndexError:
            break
    for _ in range(helpers):
        outcome = outcomes.get()
        if isinstance(outcome, BaseException):
            raise outcome
        worst = max(worst, outcome)
    return worst


def useful(num_tasks: int) -> int:
    """How many threads to work with: as many as torch does, but no more than there are tasks."""
    return max(1, min(torch.get_num_threads(), num_tasks))


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
    """No workers yet. A forked child has none of its parent's threads, and its locks may be held by them."""
    global _jobs, _lock, _num_workers
    _jobs, _lock, _num_workers = SimpleQueue(), Lock(), 0


_reset()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
