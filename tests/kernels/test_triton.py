"""The Triton kernels, run by Triton's interpreter on the CPU: with the tiles of a GPU, in any order, between poisoned guards.

``test_equality.py`` and ``test_given_heights.py`` compare them with the reference like every other kernel.
"""

import math
import os
import subprocess
import sys
import textwrap

import pytest
import torch
from torch.nn.functional import normalize, pad

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels import dispatch, operation, portable, reference

interpreter = pytest.importorskip("interpreter", reason="triton is not installed", exc_type=pytest.skip.Exception)
NAMES = ("result", "points", "directions", "thresholds", "scale", "weights")
SCALES = (6.0, 200.0, math.inf)
PROBLEMS = {
    "a batch": {},
    "empty complexes": {"sizes": (0, 4, 0, 0, 7, 1, 0), "dim": 2, "num_directions": 2, "rows": (2,)},
    "tetrahedra, one direction": {"sizes": (6,), "dim": 1, "num_directions": 1, "num_thresholds": 1, "rows": (2, 3, 4)},
    "clouds": {"sizes": (3, 2), "dim": 4, "num_directions": 2, "num_thresholds": 33, "rows": ()},
    "no vertices": {"sizes": (0, 0), "num_directions": 2, "num_thresholds": 3, "rows": (2,)},
    "no complexes": {"sizes": (), "num_directions": 2, "num_thresholds": 3, "rows": (2,)},
    "no directions": {"num_directions": 0},
    "no thresholds": {"num_thresholds": 0},
    "long indices": {"sizes": (40, 1), "num_directions": 2, "num_thresholds": 3, "index": torch.int64},
    "many dimensions": {"sizes": (5, 4), "dim": 11, "num_directions": 3, "num_thresholds": 5, "rows": (2,)},
    "a triangle of each vertex": {"sizes": (7,), "num_directions": 2, "num_thresholds": 3, "rows": (3,)},
}


def draw(
    *, sizes=(4, 0, 6), dim=3, num_directions=3, num_thresholds=5, rows=(2, 3), index=torch.int32, ties=False,
    weighted=False, scale=6.0, dtype=torch.float32,
):  # fmt: skip
    """Tensors and layout of a packed complex with random cells; coordinates on a lattice with ``ties``."""
    chance = torch.Generator().manual_seed(len(sizes) + dim)
    count = sum(sizes)
    if ties:
        points = torch.randint(-1, 2, (count, dim), generator=chance).to(dtype) / 2
        directions = torch.randint(-1, 2, (num_directions, dim), generator=chance).to(dtype)
        thresholds = (torch.arange(num_thresholds).to(dtype) - num_thresholds // 2) / 2
    else:
        points = torch.randn(count, dim, generator=chance).to(dtype) / 2
        directions = normalize(torch.randn(num_directions, dim, generator=chance), dim=1).to(dtype)
        thresholds = torch.linspace(-1.1, 1.1, num_thresholds).to(dtype)
    bounds, levels = [list(sizes)], []
    for r in rows:
        counts, columns, start = [], [torch.empty(r, 0, dtype=torch.int64)], 0
        for n in sizes:
            counts.append(3 * n // 2 if n >= r else 0)
            columns += [torch.randperm(n, generator=chance)[:r, None] + start for _ in range(counts[-1])]
            start += n
        bounds.append(counts)
        levels.append(torch.cat(columns, dim=1).reshape(-1))
    offsets = pad(torch.tensor(bounds, dtype=torch.int64).reshape(1 + len(rows), -1).cumsum(dim=1), (1, 0))
    simplices = torch.cat([torch.empty(0, dtype=torch.int64), *levels]).to(index)
    number = int(offsets[:, -1].sum())
    weights = (torch.randint(-8, 9, (number,), generator=chance) / 4).to(dtype) if weighted else None
    return [points, directions, thresholds, torch.tensor(scale, dtype=dtype), weights], (simplices, offsets, tuple(rows))


def passes(kernel, tensors, layout):
    """The transform and all gradients, by name."""
    inputs = [t if t is None else t.clone().requires_grad_() for t in tensors]
    result = kernel(*inputs, *layout)
    upstream = torch.linspace(-1, 1.3, result.numel(), dtype=torch.float64).cos().view_as(result).to(result.dtype)
    wanted = [t for t in inputs if t is not None]
    found = iter(
        torch.autograd.grad(result, wanted, upstream, materialize_grads=True)
        if result.requires_grad
        else [torch.zeros_like(t) for t in wanted]
    )
    return dict(zip(NAMES, (result.detach(), *(None if t is None else next(found) for t in inputs)), strict=True))


def assert_same(found, expected):
    for name, value in expected.items():
        assert (found[name] is None) == (value is None), name
        assert value is None or torch.equal(found[name], value), name


CASES = [  # every problem in a few of all combinations
    (name, SCALES[i % 3], i % 2 == 0, i % 4 < 2, (torch.float32, torch.float64)[i // 2 % 2])
    for problem, name in enumerate(PROBLEMS)
    for i in range(5 * problem, 5 * problem + 2)
]


@pytest.mark.parametrize(("name", "scale", "ties", "weighted", "dtype"), CASES)
def test_the_tiles_of_a_gpu_equal_the_reference_in_float64(name, scale, ties, weighted, dtype):
    tensors, layout = draw(**PROBLEMS[name], scale=scale, ties=ties, weighted=weighted, dtype=dtype)
    found = passes(interpreter.on_gpu_tiles, tensors, layout)
    wide = [t if t is None else t.double() for t in tensors]
    # Which of equally high vertices moves is a choice: ours is that of portable. Nothing else differs.
    expected = passes(portable.ect if ties else reference.ect, wide, layout)
    if math.isinf(scale):  # weights are multiples of 1/4, so that their sums are exact
        assert torch.equal(found["result"].double(), expected["result"])
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for key, value in expected.items():
        if value is not None:
            size = max(1.0, float(value.abs().max()) if value.numel() else 0.0)
            torch.testing.assert_close(
                found[key].double(), value, rtol=0, atol=tolerance * size, msg=lambda m, k=key: f"{k}: {m}"
            )


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_any_order_of_programs_gives_the_same_bits(weighted):
    tensors, layout = draw(sizes=(4, 0, 3), num_directions=2, num_thresholds=4, rows=(2,), scale=20.0, weighted=weighted)
    if weighted:  # no multiples of anything
        tensors[4] = torch.randn(len(tensors[4]), generator=torch.Generator().manual_seed(0))
    expected = passes(interpreter.on_small_tiles, tensors, layout)
    for seed in range(2):
        with interpreter.shuffled(seed):
            assert_same(passes(interpreter.on_small_tiles, tensors, layout), expected)


@pytest.mark.usefixtures("poisoned_memory")
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_kernel_touches_what_is_not_its_own(name):
    """Uninitialised memory holds NaN, and so do the guards."""
    tensors, layout = draw(**PROBLEMS[name], scale=20.0, weighted=len(name) % 2 == 0)
    with interpreter.guarded() as launches:
        small = len(tensors[0]) * len(tensors[2]) < 40
        found = passes(interpreter.on_small_tiles if small else interpreter.ect, tensors, layout)
    assert all(value is None or value.isfinite().all() for value in found.values())
    if found["result"].numel() and len(tensors[0]):
        assert set(launches) >= {"chunk_curves", "sum_chunks", "height_gradients"}


@pytest.mark.parametrize("scale", [20.0, math.inf])
def test_a_complex_has_the_same_bits_alone_and_in_a_batch(scale):
    """Also beside one whose weights are larger by many orders of magnitude."""
    tensors, (simplices, offsets, rows) = draw(sizes=(5, 9, 4), rows=(2,), weighted=True, scale=scale)
    points, directions, thresholds, factor, weights = tensors
    own = torch.cat([torch.full((5,), 1e18), torch.ones(13), torch.full((int(offsets[1, 1]),), 1e18)])
    weights = (weights + 0.3) * pad(own, (0, len(weights) - len(own)), value=1.0)
    whole = interpreter.on_gpu_tiles(points, directions, thresholds, factor, weights, simplices, offsets, rows)
    columns = simplices.view(2, -1)
    for b in range(3):
        (first, last), (begin, end) = offsets[0, b : b + 2].tolist(), offsets[1, b : b + 2].tolist()
        alone = interpreter.on_gpu_tiles(
            points[first:last], directions, thresholds, factor,
            torch.cat([weights[first:last], weights[18 + begin : 18 + end]]),
            (columns[:, begin:end] - first).reshape(-1), offsets[:, b : b + 2] - offsets[:, b : b + 1], rows,
        )  # fmt: skip
        assert torch.equal(alone[0], whole[b])


@pytest.mark.parametrize(("given", "own"), [(False, False), (True, False), (False, True)])
def test_blocks_of_directions_change_no_bit(monkeypatch, given, own):
    tensors, layout = draw(sizes=(5, 0, 3), num_thresholds=4, rows=(2,), weighted=True)
    if given:
        tensors[0] = tensors[0] @ tensors[1].T
    if own:
        tensors[1] = torch.stack([tensors[1] * factor for factor in (1.0, -1.0, 0.5)])
    if given:
        tensors[1] = None
    expected = passes(interpreter.ect, tensors, layout)
    monkeypatch.setattr(interpreter.problem, "MAX_ENTRIES", 24)
    found = passes(interpreter.ect, tensors, layout)
    for name in ("result", "directions", "scale", "thresholds", *(("points",) if given else ())):
        assert found[name] is None or torch.equal(found[name], expected[name]), name
    for name in ("points", "weights"):  # sums over the blocks, in order
        torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-5)


def test_float32_is_as_good_as_the_dense_formula_in_float32(generator):
    complex = testing.sphere(2).complex
    weights = torch.rand(sum(complex.counts), generator=generator) + 0.5
    layout = (complex.packed.simplices, complex.offsets, complex.rows)
    directions = es.directions.fibonacci(7)
    tensors = [complex.points.float(), directions, es.thresholds(16), torch.tensor(20.0), weights]
    exact = passes(reference.ect, [t.double() for t in tensors], layout)
    ours, dense = (passes(kernel, tensors, layout) for kernel in (interpreter.ect, reference.ect))
    for name, value in exact.items():
        errors = [float((found[name].double() - value).abs().mean()) for found in (ours, dense)]
        assert errors[0] <= 1.5 * errors[1] + 1e-9, name


def test_an_unknown_height_reaches_all_that_depends_on_it(dtype):
    tensors, layout = draw(sizes=(9, 6), weighted=True, rows=(2,), scale=8.0, dtype=dtype)
    tensors[0][5, 0], tensors[4] = math.nan, torch.ones_like(tensors[4])
    tensors[1][:, 0] = 1.0
    found = passes(interpreter.on_gpu_tiles, tensors, layout)
    assert found["result"].isnan().flatten(1).any(dim=1).tolist() == [True, False]
    assert found["result"][0].isnan().all()
    assert found["scale"].isnan()
    assert found["directions"].isnan().all()
    assert found["points"].isnan().any(dim=1).nonzero().tolist() == [[5]]
    assert found["thresholds"].isfinite().all()


def test_infinite_heights_have_finite_gradients():
    layout = (torch.empty(0, dtype=torch.int32), torch.tensor([[0, 3]]), ())
    heights = torch.tensor([[-math.inf], [0.0], [math.inf]])
    tensors = [heights, None, torch.tensor([0.0, 1.0]), torch.tensor(2.0), None]
    found = passes(interpreter.on_gpu_tiles, tensors, layout)
    torch.testing.assert_close(found["result"][0, 0], torch.tensor([1.5, 1 + torch.tensor(2.0).sigmoid()]))
    assert all(value is None or value.isfinite().all() for value in found.values())


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (2, [0.0, 1.0, 0.5]),
        (2, [0.0, math.nan, 1.0]),
        (2, [0.0, 1.0, math.inf]),
        (3, 0.0),
        (3, -1.0),
        (3, math.nan),
        (5, -1),
        (5, 10**6),
    ],
)
def test_invalid_values_give_nan_since_an_error_would_make_the_host_wait(position, value):
    tensors, (simplices, offsets, rows) = draw(num_thresholds=3)
    tensors[2] = torch.tensor([-1.0, 0.0, 1.0])
    if position == 5:
        simplices = simplices.clone()
        simplices[4] = value
    else:
        tensors[position] = torch.tensor(value)
    with dispatch.use("triton"), interpreter.guarded():
        found = interpreter.problem.Problem(*tensors, simplices, offsets, rows).transform()
    assert found.isnan().all()


@pytest.mark.parametrize("tamper", [lambda o: o + 100, lambda o: o.flip(1), lambda o: -o, lambda o: o * 0, lambda o: o + 2**40])
def test_tampered_offsets_stay_within_the_tensors(tamper):
    tensors, (simplices, offsets, rows) = draw(weighted=True)
    with interpreter.guarded():
        problem = interpreter.problem.Problem(*tensors, simplices, tamper(offsets), rows)
        gradient = problem.transform()
        problem.differentiate(torch.zeros_like(gradient), [True] * 5)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_opcheck(weighted):
    tensors, layout = draw(sizes=(3,), num_directions=2, num_thresholds=2, rows=(2,), weighted=weighted)
    checks = ("test_schema", "test_faketensor")
    with dispatch.use("triton"), interpreter.tiles(interpreter.WIDE):
        torch.library.opcheck(torch.ops.eulerscan.ect.default, [*tensors, *layout], test_utils=checks)
        inputs = [torch.ones(1, 2, 2), *tensors, *layout, [True] * 5]
        torch.library.opcheck(torch.ops.eulerscan.ect_backward.default, inputs, test_utils=checks)


def test_no_wrong_size_reaches_a_kernel():
    tensors, layout = draw(weighted=True)
    with dispatch.use("triton"):
        for position, value, text in (
            (0, tensors[0][:, 0], "shapes"),
            (1, tensors[1][:, :2], "shapes"),
            (1, tensors[1].expand(2, -1, -1), "shapes"),
            (2, tensors[2].double(), "dtype"),
            (4, tensors[4][:3], "weights"),
        ):
            wrong = [*tensors]
            wrong[position] = value
            with pytest.raises((ValueError, TypeError), match=text):
                operation.ect(*wrong, *layout)
        with pytest.raises(ValueError, match="scale must be positive"):
            operation.ect(*tensors[:3], -1.0, tensors[4], *layout)
        with pytest.raises(ValueError, match="gradient"):
            interpreter.problem.Problem(*tensors, *layout).differentiate(torch.zeros(1), [True] * 5)


# Which kernel


def test_the_device_chooses_the_kernel(monkeypatch):
    assert [dispatch.kernel_for(torch.device(name)) for name in ("cpu", "cuda", "mps")] == ["cpu", "triton", "portable"]
    monkeypatch.setattr(dispatch, "has_triton", lambda: False)
    dispatch._warn_of_portable.cache_clear()
    with pytest.warns(UserWarning, match="Install triton"):
        assert dispatch.kernel_for(torch.device("cuda")) == "portable"
    assert dispatch.kernel_for(torch.device("cuda")) == "portable"  # warnings are errors here: it comes once


def test_a_kernel_that_cannot_serve_a_device_is_named(monkeypatch):
    with dispatch.use("cpu"), pytest.raises(ValueError, match="EULERSCAN_KERNEL=cpu .* cuda"):
        dispatch.kernel_for(torch.device("cuda"))
    with dispatch.use("numba"), pytest.raises(ValueError, match="EULERSCAN_KERNEL must be one of .*'numba'"):
        dispatch.kernel_for(torch.device("cpu"))
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    with dispatch.use("triton"), pytest.raises(ValueError, match="TRITON_INTERPRET=1"):
        dispatch.kernel_for(torch.device("cpu"))


def run(code, **environment):
    command, environment = [sys.executable, "-c", textwrap.dedent(code)], {**os.environ, **environment}
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.mark.parametrize("kernel", dispatch.KERNELS)
def test_each_kernel_can_be_forced_on_the_cpu(kernel):
    points, thresholds = torch.tensor([[0.0, 0.0], [0.5, 0.0]], requires_grad=True), torch.tensor([-1.0, 0.25, 1.0])
    with dispatch.use(kernel):
        result = es.ect(points, torch.tensor([[1.0, 0.0]]), thresholds, scale=9.0)
    assert kernel in f"{type(result.grad_fn.problem).__module__}.{type(result.grad_fn.problem).__name__}".lower()
    expected = torch.sigmoid(9.0 * (thresholds - points[:, :1])).sum(dim=0)
    torch.testing.assert_close(result[0, 0], expected)
    torch.testing.assert_close(*(torch.autograd.grad(r.sum(), points)[0] for r in (result, expected)))


def test_the_environment_forces_a_kernel_and_triton_loads_with_the_first_transform():
    code = """
        import sys, torch, eulerscan as es
        print("triton" in sys.modules)
        print(es.ect(torch.zeros(3, 2), es.directions.circle(1), es.thresholds(1)).item())
        print(*(name in sys.modules for name in ("numba", "eulerscan.kernels.triton.problem")))
    """
    assert run(code, EULERSCAN_KERNEL="triton", TRITON_INTERPRET="1") == ["False", "3.0", "False", "True"]


def test_without_triton_everything_else_works():
    code = """
        import sys
        sys.modules["triton"] = None
        import torch, eulerscan as es
        from eulerscan.kernels import dispatch
        print(es.ect(torch.zeros(3, 2), es.directions.circle(1), es.thresholds(1)).item())
        dispatch.has_triton.cache_clear()
        print(dispatch.has_triton())
    """
    assert run(code) == ["3.0", "False"]
