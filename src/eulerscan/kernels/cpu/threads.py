"""One kernel on several threads.

numba's ``parallel=True`` does not survive a fork, and forked DataLoader workers are everywhere. Here a kernel is a plain
sequential function that releases the interpreter lock and asks :func:`claim` for its next task until there is none. What a task
computes does not depend on who does it, so neither does the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .team import together


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
    """Call ``kernel(counters, *arguments)`` on several threads. Returns the largest of what the calls return.

    ``counters`` are two zeros: one for the tasks that were begun, and one for those that are done, where that matters.

    ``kept`` is what addresses among the arguments belong to. It lives until the last thread is done, which after Ctrl-C may be
    later than the caller.
    """
    counters = np.zeros(2, np.int64)
    if num_threads == 1:
        return kernel(counters, *arguments)
    flaws: list[int] = []

    def work(kept: object = kept) -> None:
        flaws.append(kernel(counters, *arguments))

    together(work, num_threads)
    return max(flaws)


def useful(num_tasks: int) -> int:
    """How many threads to work with: as many as torch does, but no more than there are tasks."""
    return max(1, min(torch.get_num_threads(), num_tasks))
