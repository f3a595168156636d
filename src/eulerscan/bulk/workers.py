"""Jobs in this process, in several of this machine, or on the workers of a dask scheduler.

A job that fails, or that kills its process, is reported, and the others go on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

import torch

from .._imports import require

Job = TypeVar("Job")
Work = Callable[[Job], object]
Outcome = tuple[Job, str | None]  # a job that ended, and why it failed if it did

ATTEMPTS = 3  # at a job whose process died: as many as dask allows


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Torch works on one thread meanwhile: a fork could not use the others, and would wait for them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def here(work: Work[Job], jobs: Iterable[Job]) -> Iterator[Outcome[Job]]:
    """Do jobs one after the other in this process."""
    for job in jobs:
        try:
            work(job)
        except Exception as error:
            yield job, _reason(error)
        else:
            yield job, None


def in_processes(work: Work[Job], jobs: Iterable[Job], *, processes: int, fork: bool = False) -> Iterator[Outcome[Job]]:
    """Do jobs in several processes of this machine. No more jobs are taken than there are processes.

    Args:
        work: A function of a module, since other processes must find it.
        jobs: What it is called with.
        processes: How many. Each has a share of the cores.
        fork: Whether they are copies of this one, which have imported at once what it has. Only for those who know that torch
            has not yet worked on several threads here, and that no thread holds a lock: their copies would wait for ever.
            Otherwise they are started anew.
    """
    if processes == 1:
        yield from here(work, jobs)
        return
    waiting = iter(jobs)
    threads = max(1, torch.get_num_threads() // processes)
    # No pool of the standard library: its threads would be in the way of a fork, and of a process that dies it would not be
    # known which job it had.
    running: dict[Connection, tuple[BaseProcess, Job, int]] = {}

    def take(job: Job, attempt: int = 1, idle: tuple[Connection, BaseProcess] | None = None) -> Connection:
        ours, process = idle or _start(work, threads, list(running) if fork else None)
        running[ours] = (process, job, attempt)
        return ours

    def send(ours: Connection) -> None:
        with contextlib.suppress(OSError):  # it died meanwhile, which is noticed below
            ours.send(running[ours][1])

    try:
        # All are started before the first job is sent: a large one waits until its process has imported everything.
        for ours in [take(job) for job in islice(waiting, processes)]:
            send(ours)
        while running:
            for ours in cast("list[Connection]", wait(list(running))):
                process, job, attempt = running.pop(ours)
                idle: tuple[Connection, BaseProcess] | None = (ours, process)
                try:
                    problem: str | None = ours.recv()
                except (EOFError, OSError):
                    _end(ours, process)
                    if attempt < ATTEMPTS:
                        send(take(job, attempt + 1))
                        continue
                    idle, problem = None, f"its process died {attempt} times: perhaps it ran out of memory"
                for following in islice(waiting, 1):
                    send(take(following, idle=idle))
                    break
                else:
                    if idle is not None:
                        _end(*idle)
                yield job, problem
    finally:
        for ours, (process, _, _) in running.items():
            _end(ours, process)


def _start(work: Work[Job], threads: int, others: list[Connection] | None) -> tuple[Connection, BaseProcess]:
    """A process and the way to it. A fork is told the ways to ``others``, which it must not hold open."""
    context: Any = multiprocessing.get_context("spawn" if others is None else "fork")
    ours, theirs = context.Pipe()
    inherited = [] if others is None else [*others, ours]
    process = context.Process(target=_serve, args=(theirs, inherited, work, threads), daemon=True)
    with warnings.catch_warnings():
        # Python counts the threads of BLAS, which see to forks themselves.
        warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
        process.start()
    theirs.close()  # so that ours ends when the process does
    return ours, process


def _end(ours: Connection, process: BaseProcess) -> None:
    """Close the way to a process, which ends when it has done what it is at."""
    ours.close()
    process.join()


def _serve(jobs: Connection, inherited: list[Connection], work: Work[Job], threads: int) -> None:
    """What a process does: the jobs that come, until there are no more."""
    for connection in inherited:
        connection.close()
    torch.set_num_threads(threads)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            job = jobs.recv()
            [(_, problem)] = here(work, [job])
            jobs.send(problem)


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


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
