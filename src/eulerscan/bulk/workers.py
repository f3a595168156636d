"""Jobs in this process, in several of this machine, or on the workers of a dask scheduler.

A job that fails, or that kills its process, is reported, and the others go on.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, TypeVar

import torch

from ..extras import require

Job = TypeVar("Job")
Work = Callable[[Job], object]
Outcome = tuple[Job, str | None]  # a job that ended, and why it failed if it did

ATTEMPTS = 3  # at a job whose process died: as many as dask allows


def here(work: Work[Job], jobs: Iterable[Job]) -> Iterator[Outcome[Job]]:
    """Do jobs one after the other in this process."""
    for job in jobs:
        try:
            work(job)
        except Exception as error:
            yield job, _reason(error)
        else:
            yield job, None


def in_processes(work: Work[Job], jobs: Iterable[Job], *, processes: int) -> Iterator[Outcome[Job]]:
    """Do jobs in several processes of this machine. No more jobs are taken than there are processes.

    Args:
        work: A function of a module, since other processes must find it.
        jobs: What it is called with.
        processes: How many. Each has a share of the cores.
    """
    if processes == 1:
        yield from here(work, jobs)
        return
    waiting = iter(jobs)
    threads = max(1, torch.get_num_threads() // processes)
    # Each its own pool: if a process dies, it is known which job it had, and the others do not notice.
    pools = {slot: _pool(threads) for slot in range(processes)}
    running: dict[Future[object], tuple[int, Job, int]] = {}

    def begin(slot: int, job: Job, attempt: int = 1) -> None:
        running[pools[slot].submit(work, job)] = (slot, job, attempt)

    try:
        for slot, job in zip(pools, islice(waiting, processes), strict=False):
            begin(slot, job)
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                slot, job, attempt = running.pop(future)
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    pools[slot].shutdown()
                    pools[slot] = _pool(threads)
                    if attempt < ATTEMPTS:
                        begin(slot, job, attempt + 1)
                        continue
                    error = RuntimeError(f"its process died {attempt} times: perhaps it ran out of memory")
                for following in islice(waiting, 1):
                    begin(slot, following)
                yield job, None if error is None else _reason(error)
    finally:
        for pool in pools.values():
            pool.shutdown(cancel_futures=True)


def on_dask(work: Work[Job], jobs: Iterable[Job], *, address: str) -> Iterator[Outcome[Job]]:
    """Do jobs on the workers of a dask scheduler. Only as many are handed out as keep the workers busy.

    What a worker had that died, dask gives to another, three times by default
    (its setting ``distributed.scheduler.allowed-failures``). Jobs that waited at workers that died are suspected too, so each
    suspect is tried once more at the end, alone.

    Args:
        work: A function of a module, since the workers must find it.
        jobs: What it is called with.
        address: Of the scheduler, such as ``tcp://node7:8786``.
    """
    distributed = require("distributed", extra="bulk")
    suspects: list[Job] = []
    with distributed.Client(address, set_as_default=False) as client:

        def room() -> int:
            return 2 * max(1, int(sum(client.nthreads().values())))  # asked each time: workers come and go

        for job, error in _handed_out(client, work, iter(jobs), room):
            if isinstance(error, distributed.KilledWorker):
                suspects.append(job)
            else:
                yield job, None if error is None else _reason(error)
        for job, error in _handed_out(client, work, iter(suspects), lambda: 1):
            killed = isinstance(error, distributed.KilledWorker)
            reason = "the workers that tried it died: perhaps they ran out of memory" if killed else None
            yield job, None if error is None else reason or _reason(error)


def _handed_out(
    client: Any, work: Work[Job], jobs: Iterator[Job], room: Callable[[], int]
) -> Iterator[tuple[Job, BaseException | None]]:
    """Jobs that ended and what they raised, with never more at the workers than there is room for."""
    completed = require("distributed", extra="bulk").as_completed(loop=client.loop)
    running: dict[Any, Job] = {}

    def fill() -> None:
        for job in islice(jobs, max(0, room() - len(running))):
            future = client.submit(work, job, pure=False)
            running[future] = job
            completed.add(future)

    fill()
    while running:
        future = next(completed)
        job = running.pop(future)
        error = None if future.status == "finished" else future.exception()
        fill()
        yield job, error


def _pool(threads: int) -> ProcessPoolExecutor:
    # Spawned: a fork would inherit locks of torch's threads.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=torch.set_num_threads, initargs=(threads,))


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
