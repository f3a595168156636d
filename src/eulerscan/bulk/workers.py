"""Running jobs in this process, in several processes, or on the workers of a dask scheduler.

A job that fails, or that kills its process, is reported, and the others go on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, TypeVar

import torch

from .._imports import require

Job = TypeVar("Job")
Work = Callable[[Job], object]
Result = tuple[Job, BaseException | None]  # a job that ended, and its error
Outcome = tuple[Job, str | None]  # a job that ended, and the reason if it failed

ATTEMPTS = 3  # at a job that kills its process: as many as dask makes


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread: a forked process would wait forever for the others."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def in_sequence(work: Work[Job], jobs: Iterable[Job]) -> Iterator[Outcome[Job]]:
    """Run jobs one after the other in this process."""
    for job in jobs:
        try:
            work(job)
        except Exception as error:
            yield job, _reason(error)
        else:
            yield job, None


def in_processes(work: Work[Job], jobs: Iterable[Job], *, processes: int, fork: bool = False) -> Iterator[Outcome[Job]]:
    """Run jobs in several processes of this machine. Jobs are taken from the iterable when a process is free.

    Args:
        work: A function at the top level of a module.
        jobs: The arguments of its calls.
        processes: Number of processes, which share the cores.
        fork: Fork this process, so that everything it has imported is there at once. Safe only if torch has not used several
            threads here and no thread holds a lock. By default, processes are spawned.
    """
    if processes == 1:
        yield from in_sequence(work, jobs)
        return
    pool = (processes, max(1, torch.get_num_threads() // processes), fork)

    def run() -> Iterator[Result[Job]]:
        waiting = iter(jobs)
        for job in waiting:  # again if a process died, which breaks its pool
            yield from _in_pool(work, chain([job], waiting), *pool)

    def retry(job: Job) -> BaseException | None:
        for _ in range(ATTEMPTS - 1):
            [(_, error)] = _in_pool(work, iter([job]), 1, *pool[1:])
            if not isinstance(error, BrokenProcessPool):
                break
        return error

    yield from _outcomes(run(), retry, BrokenProcessPool)


def _in_pool(work: Work[Job], jobs: Iterator[Job], processes: int, threads: int, fork: bool) -> Iterator[Result[Job]]:
    """Jobs that ended, and their errors, until there are no more jobs or a process dies."""
    context = multiprocessing.get_context("fork" if fork else "spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start_worker, initargs=(threads,)) as pool:
        running: dict[Future[object], Job] = {}
        broken = False
        while True:
            for job in islice(jobs, 0 if broken else processes - len(running)):
                running[_submit(pool, work, job)] = job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                broken = broken or isinstance(error, BrokenProcessPool)
                yield running.pop(future), error


def _submit(pool: ProcessPoolExecutor, work: Work[Job], job: Job) -> Future[object]:
    with warnings.catch_warnings():
        # Python counts the threads of BLAS, which are safe to fork.
        warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
        try:
            return pool.submit(work, job)
        except BrokenProcessPool as error:
            future: Future[object] = Future()
            future.set_exception(error)
            return future


def _start_worker(threads: int) -> None:
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # without a traceback after Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Workers of a pool would wait forever for a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def on_dask(work: Work[Job], jobs: Iterable[Job], *, address: str) -> Iterator[Outcome[Job]]:
    """Run jobs on the workers of a dask scheduler. Only as many are submitted as keep the workers busy.

    If a worker dies, dask gives its jobs to others, three times by default
    (``distributed.scheduler.allowed-failures``). Jobs that were queued at dying workers are suspects too, so each suspect is
    tried once more at the end, alone.

    Args:
        work: A function at the top level of a module.
        jobs: The arguments of its calls.
        address: Address of the scheduler, such as ``tcp://node7:8786``.
    """
    distributed = require("distributed", extra="bulk")
    with distributed.Client(address, set_as_default=False) as client:

        def room() -> int:
            return 2 * max(1, int(sum(client.nthreads().values())))  # asked each time: workers come and go

        def retry(job: Job) -> BaseException | None:
            [(_, error)] = _in_client(client, work, iter([job]), lambda: 1)
            return error

        yield from _outcomes(_in_client(client, work, iter(jobs), room), retry, distributed.KilledWorker)


def _in_client(client: Any, work: Work[Job], jobs: Iterator[Job], room: Callable[[], int]) -> Iterator[Result[Job]]:
    """Jobs that ended, and their errors. No more are submitted than there is room for."""
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


def _outcomes(
    results: Iterator[Result[Job]], retry: Callable[[Job], BaseException | None], killed: type[BaseException]
) -> Iterator[Outcome[Job]]:
    """The reasons of failures. Jobs whose process died are retried alone, since it may have died of another job."""
    suspects: list[Job] = []
    for job, error in results:
        if isinstance(error, killed):
            suspects.append(job)
        else:
            yield job, _reason(error)
    for job in suspects:
        error = retry(job)
        yield job, "its process died every time, perhaps for lack of memory" if isinstance(error, killed) else _reason(error)


def _reason(error: BaseException | None) -> str | None:
    return None if error is None else str(error) or type(error).__name__
