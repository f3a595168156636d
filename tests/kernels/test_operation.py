"""The operation behaves like one of torch's own, and lets nothing dangerous through."""

import gc
import math
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_all_start_methods

import numpy as np
import pytest
import torch
from drawing import random_complex
from torch.utils.data import DataLoader, Dataset

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels.cpu import team, threads


def example(scale=20.0, *, weighted=True, dtype=torch.float64):
    complex = es.collate([random_complex(np.random.default_rng(s), num_points=6 + s, weighted=weighted) for s in range(3)])
    tensors = [complex.points, es.directions.circle(5), es.thresholds(6), torch.tensor(scale), complex.packed.weights]
    tensors = [t if t is None else t.to(dtype) for t in tensors]
    return [*tensors, complex.packed.simplices, complex.offsets, list(complex.rows)]


@pytest.mark.parametrize("scale", [20.0, math.inf])
@pytest.mark.parametrize("weighted", [True, False])
def test_opcheck(scale, weighted, dtype):
    inputs = example(scale, weighted=weighted, dtype=dtype)
    torch.library.opcheck(torch.ops.eulerscan.ect.default, inputs)
    tracked = [t.requires_grad_() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in inputs]
    torch.library.opcheck(torch.ops.eulerscan.ect.default, tracked)
    with torch.no_grad():
        torch.library.opcheck(torch.ops.eulerscan.ect_backward.default, [torch.rand(3, 5, 6, dtype=dtype), *inputs, [True] * 5])


@pytest.mark.parametrize("dynamic", [False, None])
def test_a_model_compiles_without_a_break(dynamic):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = es.ECTLayer(2, 5, 6, learn_scale=True, learn_thresholds=True, unit_ball=True, divide_by="peak")
            self.head = torch.nn.Linear(30, 3)

        def forward(self, shape):
            return self.head(torch.relu(self.layer(shape)).flatten(1))

    model = Model()
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic)
    for size in (7, 11):
        complexes = [random_complex(np.random.default_rng(s), num_points=size + s, dtype=torch.float32) for s in range(3)]
        batch = es.collate(complexes)
        for shape in (batch, torch.rand(2, size, 2)):
            torch.testing.assert_close(compiled(shape), model(shape))
            results = []
            for function in (compiled, model):
                model.zero_grad()
                function(shape).square().sum().backward()
                results.append([p.grad.clone() for p in model.parameters()])
            torch.testing.assert_close(*results)
    torch._dynamo.reset()


def test_vertices_and_edges_apart_compile_without_a_break():
    layer = es.ECTLayer(2, 3, 4, max_dim=1)
    compiled = torch.compile(layer, fullgraph=True)
    for size in (6, 9):
        graph = random_complex(np.random.default_rng(size), num_points=size, top=1, dtype=torch.float32)
        assert graph.rows == (2,)
        for shape in (graph, torch.rand(2, size, 2)):
            torch.testing.assert_close(compiled(shape), layer(shape))
    torch._dynamo.reset()


def test_strided_directions_compile():
    complex = random_complex(np.random.default_rng(0), dtype=torch.float32)
    directions = torch.rand(2, 5).T.requires_grad_()
    function = torch.compile(lambda d: es.ect(complex, 2 * d, es.thresholds(4), scale=20.0).sum(), fullgraph=True)
    gradients = [torch.autograd.grad(f(directions), directions)[0] for f in (function, function._torchdynamo_orig_callable)]
    torch.testing.assert_close(*gradients)
    torch._dynamo.reset()


def test_compiled_programs_check_values_too():
    compiled = torch.compile(lambda p, t: es.ect(p, es.directions.circle(3), t, scale=2.0), fullgraph=True)
    compiled(torch.rand(4, 2), es.thresholds(3))
    with pytest.raises(ValueError, match="thresholds must ascend"):
        compiled(torch.rand(4, 2), es.thresholds(3).flip(0))
    torch._dynamo.reset()


def test_forward_mode_is_refused_in_compiled_programs_too():
    points = torch.rand(4, 2)
    compiled = torch.compile(lambda p: es.ect(p, es.directions.circle(3), es.thresholds(3), scale=2.0))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(points, torch.ones_like(points))
        with pytest.raises(NotImplementedError, match="jvp"):
            compiled(dual)
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore")
def test_a_traced_program_computes_the_transform():
    complex = random_complex(np.random.default_rng(0), dtype=torch.float32)

    def function(points):
        return es.ect(complex.with_points(points), es.directions.circle(3), es.thresholds(4), scale=2.0)

    traced = torch.jit.trace(function, (complex.points,), check_trace=False)
    other = complex.points + 0.1
    torch.testing.assert_close(traced(other), function(other))


def test_the_default_device_of_the_first_call_does_not_stay():
    code = """
        import torch, eulerscan as es
        shape, grid = torch.zeros(3, 2), (es.directions.circle(1), es.thresholds(1))
        with torch.device("meta"):
            print(es.ect(shape, *grid).item(), end=" ")
        print(es.ect(shape, *grid).item())
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert result.stdout.split() == ["3.0", "3.0"], result.stderr


def test_autocast_leaves_the_transform_in_float32():
    layer = es.ECTLayer(2, 8, 8)
    head = torch.nn.Linear(64, 2)
    points = torch.rand(4, 10, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        transform = layer(points)
        logits = head(transform.flatten(1))
    assert (transform.dtype, logits.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(transform, layer(points))
    logits.sum().backward()
    assert layer.weight.grad.isfinite().all()


# Threads and processes


@pytest.fixture(params=["of torch", "our own"])
def whose_threads(request, monkeypatch):
    monkeypatch.setattr(team, "_pause_ends", 0.0)
    monkeypatch.setattr(team, "PAUSE", 0.0)  # late or not
    if request.param == "our own":
        monkeypatch.setattr(team, "_openmp", None)
    elif team._openmp is None:
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
def test_openmp_is_found_where_torch_has_it():
    assert (team._openmp is not None) == torch.backends.openmp.is_available()


@pytest.mark.skipif(team._openmp is None, reason="torch without OpenMP")
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

    monkeypatch.setattr(team, "_openmp", late)
    monkeypatch.setattr(team, "_pause_ends", 0.0)
    assert threads.run(lambda counters: 5, 2) == 5
    assert threads.run(lambda counters: 6, 2) == 6
    assert len(came) == 1
    monkeypatch.setattr(team, "_pause_ends", 0.0)
    threads.run(lambda counters: 7, 2)
    assert len(came) == 2


def test_at_the_end_of_the_program_nobody_waits_for_threads(whose_threads):
    """Then no thread of Python runs but one."""
    succeeds(f"""
        import torch
        from eulerscan.kernels.cpu import team, threads
        if {team._openmp is None}:
            team._openmp = None
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


# No index reaches a kernel unchecked


def one_pass(inputs, backward):
    """The operation, or the one that propagates its gradient."""
    if not backward:
        return torch.ops.eulerscan.ect(*inputs)
    points, directions, thresholds, offsets = inputs[0], inputs[1], inputs[2], inputs[6]
    gradient = points.new_ones(offsets.shape[1] - 1, len(directions), len(thresholds))
    return torch.ops.eulerscan.ect_backward(gradient, *inputs, [True] * 5)


@pytest.mark.parametrize("bad", [-1, 100, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("level", [0, 20, -1])
def test_a_tampered_index_is_found(bad, backward, level):
    inputs = example()
    inputs[5] = inputs[5].clone()
    inputs[5][level] = bad
    with pytest.raises(IndexError, match="indices of points of their own complex"):
        one_pass(inputs, backward)


def test_an_index_into_a_neighbouring_complex_is_found():
    inputs = example()
    inputs[5] = inputs[5].clone()
    inputs[5][0] = len(inputs[0]) - 1  # an edge of the first complex reaches the last
    with pytest.raises(IndexError):
        torch.ops.eulerscan.ect(*inputs)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda offsets: offsets + 1,
        lambda offsets: offsets.flip(1),
        lambda offsets: offsets * 2,
        lambda offsets: offsets[:-1],
        lambda offsets: offsets[:, :0],
        lambda offsets: -offsets,
        lambda offsets: torch.cat([offsets[:1], offsets[1:] * 0, torch.tensor([[0, 0, 0, 2**62]])])[:3],
        lambda offsets: torch.stack([offsets[0], offsets[1] * 0, torch.tensor([0, 0, 0, 2**62])]),
    ],
)
def test_tampered_divisions_are_found(tamper):
    inputs = example()
    inputs[6] = tamper(inputs[6])
    with pytest.raises(ValueError, match="offsets must divide"):
        torch.ops.eulerscan.ect(*inputs)


def with_last(tensor, value):
    """The tensor with another last number."""
    changed = tensor.clone()
    changed.view(-1)[-1] = value
    return changed


@pytest.mark.parametrize(
    ("position", "value", "text"),
    [(2, -9.0, "must ascend"), (2, math.nan, "finite"), (5, 10**6, "own complex"), (5, -1, "own complex"), (6, 7, "divide")],
)
@pytest.mark.parametrize("backward", [False, True])
def test_several_threads_find_the_same(position, value, text, backward):
    complex = large_and_small()["many small"]
    tensors = [complex.points, es.directions.fibonacci(37), es.thresholds(24), torch.tensor(30.0), None]
    inputs = [*tensors, complex.packed.simplices, complex.offsets, list(complex.rows)]
    assert not es.kernels._prepare(*inputs).is_small
    inputs[position] = with_last(inputs[position], value)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises((ValueError, IndexError), match=text):
            one_pass(inputs, backward)
    finally:
        torch.set_num_threads(before)


def test_directions_of_another_dimension_do_not_reach_the_kernel():
    inputs = example()
    inputs[1] = torch.rand(5, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match="directions"):
        torch.ops.eulerscan.ect(*inputs)


def test_a_gradient_of_another_shape_does_not_reach_the_kernel():
    inputs = example()
    with pytest.raises(ValueError, match="gradient"):
        torch.ops.eulerscan.ect_backward(torch.rand(3, 5, 2, dtype=torch.float64), *inputs, [True] * 5)


def test_gradients_of_weights_that_are_not_there_are_empty():
    inputs = example(weighted=False)
    gradients = torch.ops.eulerscan.ect_backward(torch.rand(3, 5, 6, dtype=torch.float64), *inputs, [True] * 5)
    assert gradients[4].shape == (0,)


@pytest.mark.parametrize("position", [1, 2, 4, 5, 6])
def test_mixed_dtypes_do_not_reach_the_kernel(position):
    inputs = example()
    inputs[position] = inputs[position].to(torch.float32 if position < 5 else torch.int16)
    with pytest.raises((ValueError, TypeError), match="dtype"):
        torch.ops.eulerscan.ect(*inputs)


@pytest.mark.parametrize("count", [0, 1, -1])
@pytest.mark.parametrize("backward", [False, True])
def test_weights_of_another_number_do_not_reach_the_kernel(count, backward):
    inputs = example()
    inputs[4] = inputs[4][:count]
    with pytest.raises(ValueError, match="weights"):
        one_pass(inputs, backward)


def test_a_scale_may_be_a_whole_number():
    inputs = example()
    expected = es.kernels.ect(*inputs)
    for scale in (20, torch.tensor(20)):
        assert torch.equal(es.kernels.ect(*inputs[:3], scale, *inputs[4:]), expected)
