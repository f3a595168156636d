"""Kernels on several threads: those of torch by OpenMP, workers of our own, forked and spawned processes."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_all_start_methods

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels.cpu import threads


@pytest.fixture(params=["of torch", "our own"])
def whose_threads(request, monkeypatch):
    monkeypatch.setattr(threads, "_pause_ends", 0.0)
    monkeypatch.setattr(threads, "PAUSE", 0.0)  # late or not
    if request.param == "our own":
        monkeypatch.setattr(threads, "_openmp", None)
    elif threads._openmp is None:
        pytest.skip("torch without OpenMP")


def large_and_small():
    generator = torch.Generator().manual_seed(0)
    large = testing.sphere(5, dtype=torch.float32).complex
    graphs = [testing.random_graph(30, 60, 3, generator=generator, dtype=torch.float32).complex for _ in range(200)]
    return {"one large": large, "many small": es.collate(graphs)}


@pytest.mark.parametrize("kind", ["one large", "many small"])
def test_any_number_of_threads_gives_the_same_bits(kind, whose_threads):
    complex = large_and_small()[kind]
    before = torch.get_num_threads()
    results = []
    try:
        for num_threads in (1, 2, 3, 7):
            torch.set_num_threads(num_threads)
            inputs = [t.requires_grad_() for t in (complex.points.clone(), es.directions.fibonacci(37), es.thresholds(24))]
            scale = torch.tensor(30.0, requires_grad=True)
            result = es.ect(complex.with_points(inputs[0]), *inputs[1:], scale=scale)
            upstream = torch.linspace(-1, 1, result.numel()).view_as(result)
            results.append([result, *torch.autograd.grad(result, [*inputs, scale], upstream)])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_several_python_threads_may_call_at_once(whose_threads):
    shapes = [torch.rand(3000 + 100 * i, 3) for i in range(4)]
    directions, thresholds = es.directions.fibonacci(40), es.thresholds(16)

    def values_and_gradient(shape):
        points = shape.clone().requires_grad_()
        result = es.ect(points, directions, thresholds, scale=50.0)
        return [result.detach(), *torch.autograd.grad(result, points, torch.ones_like(result))]

    expected = [values_and_gradient(shape) for shape in shapes]
    before, seen = threads.run, set()

    def watched(kernel, num_threads, *arguments, **options):
        seen.add(num_threads)
        return before(kernel, num_threads, *arguments, **options)

    try:
        threads.run = watched
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(values_and_gradient, shapes[i % 4]) for i in range(60)]
            for i, job in enumerate(jobs):
                assert all(torch.equal(a, b) for a, b in zip(job.result(), expected[i % 4], strict=True))
    finally:
        threads.run = before
    assert max(seen) == max(2, torch.get_num_threads()) or torch.get_num_threads() == 1


def test_an_error_in_a_helping_thread_reaches_the_caller(whose_threads):
    caller, helping = threading.current_thread(), threading.Event()

    def kernel(counter):
        if threading.current_thread() is caller:
            assert helping.wait(timeout=60)
            return 0
        helping.set()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.run(kernel, 2)


def test_an_interrupted_caller_is_told_when_all_are_done(whose_threads):
    caller, helping, done = threading.current_thread(), threading.Event(), []

    def kernel(counter):
        if threading.current_thread() is caller:
            assert helping.wait(timeout=60)
            raise KeyboardInterrupt
        helping.set()
        threading.Event().wait(0.1)
        done.append(True)
        return 0

    with pytest.raises(KeyboardInterrupt):
        threads.run(kernel, 2)
    assert done == [True]


@pytest.mark.parametrize("num_threads", [2, 3, 5])
def test_no_more_threads_come_than_were_asked_for(whose_threads, num_threads):
    before = torch.get_num_threads()
    came = []
    try:
        torch.set_num_threads(4)  # more than some need: the rest of torch's threads have nothing to do
        for _ in range(10):
            came.clear()
            threads.run(lambda counters: came.append(threading.get_ident()) or 7, num_threads)
            assert 1 <= len(came) <= num_threads
    finally:
        torch.set_num_threads(before)


def succeeds(code):
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="looked for on Linux only")
def test_openmp_is_found_where_torch_has_it(monkeypatch):
    monkeypatch.delenv("EULERSCAN_OPENMP", raising=False)
    assert (threads._find_openmp() is not None) == torch.backends.openmp.is_available()


def uses_of_openmp(setting):
    """A hash of values and gradients, how often OpenMP was called and looked up, and the number of workers."""
    code = """
        import ctypes, hashlib, torch
        import eulerscan as es, numba
        names = []

        class Library(ctypes.CDLL):
            def __getattr__(self, name):
                names.append(name)
                return super().__getattr__(name)

        ctypes.CDLL = Library
        from eulerscan.kernels.cpu import threads
        calls, openmp, threads.PAUSE = [], threads._openmp, 0.0
        if openmp is not None:
            threads._openmp = lambda *arguments: calls.append(arguments) or openmp(*arguments)
        torch.set_num_threads(2)
        cloud = torch.rand(3000, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
        result = es.ect(cloud, es.directions.fibonacci(64), es.thresholds(32), scale=50.0)
        (gradient,) = torch.autograd.grad(result, cloud, result.detach())
        bits = hashlib.sha256(result.detach().numpy().tobytes() + gradient.numpy().tobytes())
        print(bits.hexdigest(), len(calls), names.count("GOMP_parallel"), threads._num_workers)
    """
    environment = {**os.environ, "EULERSCAN_OPENMP": setting}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100, env=environment
    )
    assert result.returncode == 0, result.stderr
    bits, *counts = result.stdout.split()
    return bits, [int(count) for count in counts]


def test_openmp_turned_off_leaves_the_work_to_our_workers_and_changes_no_bit():
    bits, counts = uses_of_openmp("0")
    assert counts == [0, 0, 1]
    bits_with_openmp, (calls, lookups, workers) = uses_of_openmp("1")
    assert bits_with_openmp == bits
    if threads._openmp is not None:
        assert (calls, workers) == (2, 0)
        assert lookups >= 1


def test_another_setting_of_openmp_is_named(monkeypatch):
    monkeypatch.setenv("EULERSCAN_OPENMP", "off")
    with pytest.raises(ValueError, match=r"EULERSCAN_OPENMP.*'off'"):
        threads._find_openmp()


@pytest.mark.skipif(threads._openmp is None, reason="torch without OpenMP")
def test_threads_of_torch_help_and_stay():
    succeeds("""
        import os, threading, torch
        from eulerscan.kernels.cpu import threads
        torch.set_num_threads(3)
        torch.rand(1_000_000).add(1)
        before, meet = set(os.listdir("/proc/self/task")), threading.Barrier(2)
        threads.run(lambda counters: meet.wait(timeout=60) * 0, 2)
        assert set(os.listdir("/proc/self/task")) == before  # none has come, and none was ended
    """)


def test_what_a_signal_raises_is_never_lost(whose_threads):
    """However early it comes. More threads than cores are slow to gather, so that many signals come before the first call."""

    class SignalError(Exception):
        pass

    def handle(number, frame):
        raise SignalError

    torch_threads, caught = torch.get_num_threads(), 0
    before = signal.signal(signal.SIGALRM, handle)
    torch.set_num_threads(8)
    gc.disable()  # Python drops what a signal raises while it collects the garbage of others
    threads.run(lambda counters: 0, 8)  # Python's own Thread.start is not made for signals
    try:
        for i in range(100):
            try:
                end = time.monotonic() + 5
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + 1e-5 * i)
                while time.monotonic() < end:
                    threads.run(lambda counters: 0, 8)
            except SignalError:
                caught += 1
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        torch.set_num_threads(torch_threads)
    assert caught == 100


def test_late_threads_are_done_without_for_a_while(monkeypatch):
    came = []

    def late(member, num_threads):
        came.append(num_threads)
        member()
        time.sleep(0.01)

    monkeypatch.setattr(threads, "_openmp", late)
    monkeypatch.setattr(threads, "_pause_ends", 0.0)
    assert threads.run(lambda counters: 5, 2) == 5
    assert threads.run(lambda counters: 6, 2) == 6
    assert len(came) == 1
    monkeypatch.setattr(threads, "_pause_ends", 0.0)
    threads.run(lambda counters: 7, 2)
    assert len(came) == 2


def test_at_the_end_of_the_program_nobody_waits_for_threads(whose_threads):
    """Then no thread of Python runs but one."""
    succeeds(f"""
        import torch
        from eulerscan.kernels.cpu import threads
        if {threads._openmp is None}:
            threads._openmp = None
        class Last:
            def __del__(self, run=threads.run):
                assert run(lambda counters: 4, 2) == 4
        last = Last()
        threads.run(lambda counters: 4, 2)
    """)


class Transforms(Dataset):
    """Computes a transform in whatever process asks for an item."""

    def __init__(self, num_threads):
        self.num_threads = num_threads
        self.complex = large_and_small()["one large"]

    def __len__(self):
        return 4

    def __getitem__(self, i):
        torch.set_num_threads(self.num_threads)
        return es.ect(self.complex, es.directions.fibonacci(16), es.thresholds(8), scale=10.0 + i)[0]


@pytest.mark.parametrize("method", [method for method in ("fork", "spawn") if method in get_all_start_methods()])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_loader_workers_compute_transforms(method):
    data = Transforms(num_threads=2)
    expected = torch.stack([data[i] for i in range(4)])  # the parent has its threads before the fork
    loader = DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context=method, timeout=100)
    assert torch.equal(torch.cat(list(loader)), expected)


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="no fork")
@pytest.mark.parametrize("transforms_first", [True, False])
def test_a_forked_child_does_not_wait_for_threads_of_its_parent(transforms_first):
    succeeds(f"""
        import os, warnings, torch, eulerscan as es
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        torch.set_num_threads(2)
        cloud, grid = torch.rand(3000, 3), (es.directions.fibonacci(64), es.thresholds(32))
        if {transforms_first}:
            es.ect(cloud, *grid, scale=50.0)
        else:
            torch.ones(1_000_000).add(1)
        if child := os.fork():
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if {transforms_first}:
            torch.ones(1_000_000).add(1)  # else torch itself would wait
        es.ect(cloud, *grid, scale=50.0)
        os._exit(0)
    """)


@pytest.fixture
def interruptible():
    """Programs that a shell starts in the background ignore Ctrl-C, and so would the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_memory_outlives_a_caller_who_is_interrupted(monkeypatch):
    monkeypatch.setattr(threads, "_openmp", None)  # who returns when all are done
    caller, helping, release = threading.current_thread(), threading.Event(), threading.Event()
    alive = []

    def kernel(counter):
        if threading.current_thread() is caller:
            assert helping.wait(timeout=60)
            return 0
        helping.set()
        while not interrupted:
            signal.pthread_kill(caller.ident, signal.SIGINT)  # while it waits for us
            threading.Event().wait(0.1)
        assert release.wait(timeout=60)
        alive.append(memory() is not None)
        return 0

    kept, interrupted = np.zeros(3), []
    memory = weakref.ref(kept)
    with pytest.raises(KeyboardInterrupt):
        threads.run(kernel, 2, keep_alive=(kept,))
    interrupted.append(True)
    del kept
    gc.collect()
    release.set()
    while not alive:
        threading.Event().wait(0.01)
    assert alive == [True]
