"""The operator behaves like those of torch, and checks everything before a kernel reads it."""

import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from drawing import random_complex

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels import dispatch, operation


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


# By default the second size is compiled for any. Inductor, whose C++ takes long to compile, is told at once that sizes vary.
@pytest.mark.parametrize(("dynamic", "backend"), [(False, "aot_eager"), (None, "aot_eager"), (True, "inductor")])
def test_a_model_compiles_without_a_break(dynamic, backend):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = es.ECTLayer(2, 5, 6, learn_scale=True, learn_thresholds=True, normalize="unit_ball", divide_by="peak")
            self.head = torch.nn.Linear(30, 3)

        def forward(self, shape):
            return self.head(torch.relu(self.layer(shape)).flatten(1))

    model = Model()
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=backend)
    for size in (7,) if dynamic is False else (7, 11):  # every size is compiled by itself if it is not dynamic
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


def test_channels_of_vertices_and_edges_compile_without_a_break():
    layer = es.ECTLayer(2, 3, 4, variant="channels", max_dim=1)
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
    with pytest.raises(ValueError, match="offsets must split"):
        torch.ops.eulerscan.ect(*inputs)


def with_last(tensor, value):
    """The tensor with another last number."""
    changed = tensor.clone()
    changed.view(-1)[-1] = value
    return changed


@pytest.mark.parametrize(
    ("position", "value", "text"),
    [(2, -9.0, "must ascend"), (2, math.nan, "finite"), (5, 10**6, "own complex"), (5, -1, "own complex"), (6, 7, "offsets")],
)
@pytest.mark.parametrize("backward", [False, True])
def test_several_threads_find_the_same(position, value, text, backward):
    generator = torch.Generator().manual_seed(0)
    graphs = [testing.random_graph(30, 60, 3, generator=generator, dtype=torch.float32).complex for _ in range(200)]
    complex = es.collate(graphs)
    tensors = [complex.points, es.directions.fibonacci(37), es.thresholds(24), torch.tensor(30.0), None]
    inputs = [*tensors, complex.packed.simplices, complex.offsets, list(complex.rows)]
    assert not operation._prepare(*inputs).is_small
    inputs[position] = with_last(inputs[position], value)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises((ValueError, IndexError), match=text):
            one_pass(inputs, backward)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kernel", ["reference", "portable", "cpu"])
@pytest.mark.parametrize(("value", "text"), [(-9.0, "must ascend"), (math.nan, "must be finite"), (math.inf, "must be finite")])
def test_no_kernel_takes_thresholds_that_do_not_ascend(kernel, value, text):
    inputs = example()
    inputs[2] = with_last(inputs[2], value)
    with dispatch.use(kernel), pytest.raises(ValueError, match=text):
        torch.ops.eulerscan.ect(*inputs)
    with dispatch.use(kernel), pytest.raises(ValueError, match=text):
        torch.func.jvp(lambda points: operation.ect(points, *inputs[1:]), (inputs[0],), (inputs[0],))


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
    expected = operation.ect(*inputs)
    for scale in (20, torch.tensor(20)):
        assert torch.equal(operation.ect(*inputs[:3], scale, *inputs[4:]), expected)
