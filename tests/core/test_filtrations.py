"""Curves of filtrations that are given, against counting cell by cell; per-shape directions; where curves change."""

import itertools
import math

import numpy as np
import pytest
import torch
from drawing import batches, directions_for, random_complex, seeds
from hypothesis import given
from hypothesis import strategies as st

import eulerscan as es
from eulerscan import testing
from eulerscan.complexes.filtration import MIN_PART, Values

F64 = torch.float64
THRESHOLDS = torch.linspace(-1.2, 1.2, 9, dtype=F64)
EDGE = es.Complex(torch.zeros(2, 1), [torch.tensor([[0], [1]])])
TRIANGLE = es.Complex(torch.zeros(3, 1), [torch.tensor([[0, 1, 2]]).T]).closure()


def counted(complex, levels, thresholds, *, superlevel=False):
    """The curves cell by cell: nothing of the library but the parts of the complex."""
    owners = [complex.batch.tolist(), *(complex.batch[columns[0].long()].tolist() for columns in complex.simplices)]
    weights = complex.weights or [torch.ones(n) for n in complex.counts]
    result = np.zeros((complex.num_complexes, levels[0].shape[1], len(thresholds)))
    for dim, owner, values, weight in zip((0, *complex.dims), owners, levels, weights, strict=True):
        for cell, (b, w) in enumerate(zip(owner, weight.tolist(), strict=True)):
            for i, value in enumerate(values[cell].tolist()):
                for j, threshold in enumerate(thresholds.tolist()):
                    if (value >= threshold) if superlevel else (value <= threshold):
                        result[b, i, j] += (-1) ** dim * w
    return torch.tensor(result)


def star(complex, values, function):
    """Values of every level: the largest (``max``) or smallest (``min``) of the vertices of each cell, by counting."""
    levels = [[[function(values[v, i].item() for v in cell) for i in range(values.shape[1])] for cell in columns.T.tolist()]
              for columns in complex.simplices]  # fmt: skip
    return [values, *(torch.tensor(level, dtype=values.dtype).reshape(-1, values.shape[1]) for level in levels)]


def random_values(complex, width, seed, *, lattice=True):
    """Values of the vertices, with ties, some of them on thresholds."""
    rng = np.random.default_rng(seed)
    choices = torch.cat([THRESHOLDS, torch.tensor(rng.normal(size=3))])
    return choices[torch.tensor(rng.integers(0, len(choices), (len(complex.points), width)))]


def monotone_levels(complex, width, seed):
    """Random values of every cell, none before its faces: at least the largest value of any listed face."""
    rng = np.random.default_rng(seed)
    levels, known = [torch.tensor(rng.normal(size=(len(complex.points), width)))], {}
    for v in range(len(complex.points)):
        known[frozenset([v])] = levels[0][v]
    for columns in complex.simplices:
        level = []
        for cell in columns.T.tolist():
            subsets = [frozenset(s) for r in range(1, len(cell)) for s in itertools.combinations(cell, r)]
            faces = [known[subset] for subset in subsets if subset in known]
            value = torch.stack(faces).amax(dim=0) + torch.tensor(rng.exponential(size=width) * rng.integers(0, 2, width))
            level.append(value)
        levels.append(torch.stack(level) if level else torch.empty(0, width, dtype=F64))
        known |= {frozenset(cell): value for cell, value in zip(columns.T.tolist(), level, strict=True)}
    return levels


@given(complex=batches(weighted=True), width=st.integers(1, 11), seed=seeds)
def test_lower_star_and_upper_star_filtrations_equal_counting(complex, width, seed):
    values = random_values(complex, width, seed)
    lower = es.ecc(complex, values, THRESHOLDS)
    torch.testing.assert_close(lower, counted(complex, star(complex, values, max), THRESHOLDS))
    upper = es.ecc(complex, values, THRESHOLDS, superlevel=True)
    torch.testing.assert_close(upper, counted(complex, star(complex, values, min), THRESHOLDS, superlevel=True))


@pytest.mark.parametrize("weighted", [False, True])
@given(data=st.data(), width=st.integers(1, 9), seed=seeds)
def test_arbitrary_monotone_filtrations_equal_counting(weighted, data, width, seed):
    complex = data.draw(batches(weighted=weighted))
    levels = monotone_levels(complex, width, seed)
    torch.testing.assert_close(es.ecc(complex, levels, THRESHOLDS), counted(complex, levels, THRESHOLDS))
    negated = [-level for level in levels]
    found = es.ecc(complex, negated, THRESHOLDS, superlevel=True)
    torch.testing.assert_close(found, counted(complex, negated, THRESHOLDS, superlevel=True))


@pytest.mark.parametrize("scale", [7.0, math.inf])
def test_values_of_every_level_equal_values_of_the_vertices(scale, dtype):
    mesh = es.collate([testing.torus(12, 9).complex, testing.sphere(2).complex]).to(dtype=dtype)
    values = mesh.points @ es.directions.fibonacci(5).to(dtype).T
    levels = [values, *(values[columns.long()].amax(dim=0) for columns in mesh.simplices)]
    expected = es.ecc(mesh, values, THRESHOLDS.to(dtype), scale=scale)
    torch.testing.assert_close(es.ecc(mesh, levels, THRESHOLDS.to(dtype), scale=scale), expected, rtol=1e-5, atol=1e-4)
    assert expected.dtype == dtype


@pytest.mark.parametrize("scale", [30.0, math.inf])
@pytest.mark.parametrize("width", [1, 3, 8, 11])
def test_the_transform_is_the_filtration_by_heights(scale, width, dtype):
    mesh = testing.torus(24, 18).complex
    directions = directions_for(mesh, width)
    heights = (mesh.points @ directions.T).to(dtype)
    found = es.ecc(mesh, heights, THRESHOLDS.to(dtype), scale=scale)
    expected = es.ect(mesh, directions, THRESHOLDS, scale=scale)
    if dtype == F64:
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    else:  # heights are rounded once more
        assert (found - expected).abs().mean() < 1e-3


def test_a_large_filtration_is_split_without_changing_it():
    """Parts for threads and lanes: float32 curves stay integers, and smooth ones keep their accuracy."""
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(300, 300, generator=generator)
    complex, values = es.convert.filtration_from_image(image, pixels="vertices")
    assert sum(complex.counts) > 3 * MIN_PART
    thresholds = torch.linspace(0, 1, 33)
    exact = es.ecc(complex, values, thresholds)
    assert torch.equal(exact, es.ecc(complex, values[0], thresholds))
    smooth = es.ecc(complex, values, thresholds, scale=50.0)
    expected = es.ecc(complex, values[0].double(), thresholds, scale=50.0)
    torch.testing.assert_close(smooth.double(), expected, rtol=1e-6, atol=1e-4)
    assert (exact.dtype, smooth.dtype) == (torch.float32, torch.float32)


def test_filtrations_of_alpha_and_rips_values_equal_counting():
    gudhi = pytest.importorskip("gudhi")
    points = np.random.default_rng(0).normal(size=(30, 3))
    trees = [
        gudhi.AlphaComplex(points=points).create_simplex_tree(),
        gudhi.RipsComplex(points=points, max_edge_length=1.6).create_simplex_tree(max_dimension=3),
    ]
    for tree in trees:
        thresholds = torch.tensor(np.sort(np.random.default_rng(1).uniform(0, 2, 20)))
        # In float64, so that values on a threshold stay there.
        with default_dtype(F64):
            filtration = es.convert.filtration_from_simplex_tree(tree)
        expected = [sum((-1) ** (len(s) - 1) for s, value in tree.get_filtration() if value <= t) for t in thresholds.tolist()]
        assert es.ecc(*filtration, thresholds)[0, 0].tolist() == expected
        assert [len(level) for level in filtration.values] == list(filtration.shape.counts)


class default_dtype:  # noqa: N801
    def __init__(self, dtype):
        self.dtype = dtype

    def __enter__(self):
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)

    def __exit__(self, *_):
        torch.set_default_dtype(self.before)


def test_the_alpha_filtration_equals_gudhi_and_the_alpha_complexes():
    gudhi = pytest.importorskip("gudhi")
    for dim in (2, 3):
        points = torch.tensor(np.random.default_rng(dim).normal(size=(40, dim)))
        filtration = es.convert.alpha_filtration(points)
        radii = torch.linspace(0.05, 2, 40, dtype=F64)
        curve = es.ecc(*filtration, radii)[0, 0]
        tree = gudhi.AlphaComplex(points=points.numpy()).create_simplex_tree()
        expected = [sum((-1) ** (len(s) - 1) for s, v in tree.get_filtration() if v <= r**2) for r in radii.tolist()]
        assert curve.tolist() == expected
        for r in (0.2, 0.5, 1.1):
            found = es.ecc(*filtration, torch.tensor([r], dtype=F64))
            assert found.item() == es.convert.alpha_complex(points, r).euler_characteristic()
        # Known to be monotone, and it is.
        es.ecc(filtration.shape, tuple(filtration.values), radii)


# Gradients


@pytest.mark.parametrize("scale", [4.0, 40.0])
def test_gradcheck_in_values_thresholds_scale_and_weights(scale):
    complexes = [random_complex(np.random.default_rng(s), num_points=5, dim=2, top=3) for s in (0, 1)]
    complex = es.collate(complexes)
    generator = torch.Generator().manual_seed(0)
    weights = [torch.rand(n, generator=generator, dtype=F64, requires_grad=True) for n in complex.counts]
    thresholds = es.thresholds(5, 1.5, dtype=F64).requires_grad_()
    steep = torch.tensor(scale, dtype=F64, requires_grad=True)
    values = torch.randn(len(complex.points), 3, generator=generator, dtype=F64, requires_grad=True)

    def lower(values, thresholds, scale, *weights):
        weighted = es.Complex(complex.points, complex.simplices, weights=weights, batch=complex.batch)
        return es.ecc(weighted, values, thresholds, scale=scale)

    assert torch.autograd.gradcheck(lower, (values, thresholds, steep, *weights))
    upper = lambda *inputs: es.ecc(complex, inputs[0], *inputs[1:2], scale=inputs[2], superlevel=True)  # noqa: E731
    assert torch.autograd.gradcheck(upper, (values, thresholds, steep))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("num_complexes", [1, 2])
def test_gradcheck_in_values_of_every_level(weighted, num_complexes):
    rngs = [np.random.default_rng(s) for s in range(num_complexes)]
    complex = es.collate([random_complex(rng, num_points=5, top=2, weighted=weighted) for rng in rngs])
    levels = [level.requires_grad_() for level in monotone_levels(complex, 2, 3)]
    scale = torch.tensor(5.0, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s, *v: es.ecc(complex, v, THRESHOLDS, scale=s, monotone="assume"), (scale, *levels))


def test_a_network_learns_a_filtration():
    mesh = testing.torus(16, 12).complex.to(dtype=torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    target = es.ecc(mesh, mesh.points[:, :2], es.thresholds(16), scale=20.0)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        loss = (es.ecc(mesh, network(mesh.points), es.thresholds(16), scale=20.0) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 5


def test_a_compiled_program_computes_curves():
    mesh = testing.cycle(9).complex.to(dtype=torch.float32)
    compiled = torch.compile(lambda values: es.ecc(mesh, values, es.thresholds(5), scale=9.0), fullgraph=True)
    values = torch.rand(9, 3, requires_grad=True)
    torch.testing.assert_close(compiled(values), es.ecc(mesh, values, es.thresholds(5), scale=9.0))
    torch._dynamo.reset()


# Monotone values


def test_a_cell_before_its_face_is_named_or_moved():
    levels = (torch.zeros(3), torch.tensor([0.0, 2.0, 0.0]), torch.tensor([1.0]))
    edge = TRIANGLE.simplices[0][:, 1].tolist()
    with pytest.raises(ValueError, match=r"monotone.*\[0, 1, 2\].*1.*values\[2\]"):
        es.ecc(TRIANGLE, levels, THRESHOLDS.float())
    moved = es.ecc(TRIANGLE, levels, torch.tensor([1.0, 2.0]), monotone="repair")
    assert moved.tolist() == [[[1.0, 1.0]]]
    assert es.ecc(TRIANGLE, levels, torch.tensor([1.0, 2.0]), monotone="assume").tolist() == [[[2.0, 1.0]]]
    assert edge == [0, 2]
    with pytest.raises(ValueError, match=r"at least 5.*\[0, 1\].*got 1 .*values\[1\]"):
        es.ecc(EDGE, (torch.tensor([0.0, 5.0]), torch.tensor([1.0])), THRESHOLDS.float())
    with pytest.raises(ValueError, match=r"at most -5.*got -1 "):
        es.ecc(EDGE, (torch.tensor([0.0, -5.0]), torch.tensor([-1.0])), THRESHOLDS.float(), superlevel=True)


@given(complex=batches(), seed=seeds)
def test_repaired_values_are_the_smallest_monotone_ones_above(complex, seed):
    rng = np.random.default_rng(seed)
    levels = [torch.tensor(rng.normal(size=(n, 2))) for n in complex.counts]
    known = {frozenset([v]): levels[0][v] for v in range(len(complex.points))}
    expected = [levels[0]]
    for columns, own in zip(complex.simplices, levels[1:], strict=True):
        rows = []
        for cell, value in zip(columns.T.tolist(), own, strict=True):
            faces = [known[f] for r in range(1, len(cell)) for f in map(frozenset, itertools.combinations(cell, r))]
            rows.append(torch.stack([value, *faces]).amax(dim=0))
        known |= {frozenset(cell): value for cell, value in zip(columns.T.tolist(), rows, strict=True)}
        expected.append(torch.stack(rows) if rows else own)
    found = es.ecc(complex, levels, THRESHOLDS, monotone="repair")
    torch.testing.assert_close(found, counted(complex, expected, THRESHOLDS))
    torch.testing.assert_close(es.ecc(complex, expected, THRESHOLDS), found)  # and they pass the check


def test_squares_and_cubes_are_compared_with_their_faces():
    volume = torch.rand(3, 3, 3, generator=torch.Generator().manual_seed(0))
    for pixels in ("cells", "vertices"):
        complex, values = es.convert.filtration_from_image(volume, pixels=pixels)
        es.ecc(complex, tuple(values), THRESHOLDS.float())  # checked: a plain tuple
        late = (*values[:2], values[2] + 2, values[3])
        with pytest.raises(ValueError, match=r"values\[3\]"):
            es.ecc(complex, late, THRESHOLDS.float())


# Bad input


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (torch.zeros(3), r"values .*\[2\] or \[2, T\], got \[3\]"),
        (torch.zeros(3, 2), "transposed"),
        (torch.zeros(2, 1, 1), "shape"),
        (torch.tensor([0.0, math.nan]), "nan at row 1"),
        ((torch.zeros(2),), "2 in all, got 1"),
        ((torch.zeros(2), torch.zeros(2)), r"values\[1\] .*\[1\] or \[1, T\], got \[2\]"),
        ((torch.zeros(2, 1), torch.zeros(1, 2)), r"columns .*\[1, 2\]"),
        ((torch.zeros(2), torch.tensor([math.nan])), r"values\[1\] must be numbers"),
    ],
)
def test_wrong_values_are_named(values, text):
    with pytest.raises(ValueError, match=text):
        es.ecc(EDGE, values, torch.zeros(1))


@pytest.mark.parametrize("width", [1, 8, 11])
@pytest.mark.parametrize("options", [{}, {"superlevel": True}, {"scale": 9.0}])
def test_nan_is_named_wherever_it_is_found(width, options):
    """The exact kernel finds it itself; without thresholds there is no curve to show it."""
    mesh = testing.disc(9).complex
    values = torch.zeros(len(mesh.points), width)
    values[7, -1] = math.nan
    for thresholds in (torch.zeros(0), torch.zeros(1), torch.linspace(-1, 1, 9)):
        with pytest.raises(ValueError, match="values must be numbers, got nan at row 7"):
            es.ecc(mesh, values, thresholds, **options)


def test_nan_of_a_weight_is_no_error_of_the_values():
    packed = es.Complex(torch.zeros(2, 1)).packed
    cloud = es.Complex.from_packed(packed._replace(weights=torch.tensor([1.0, math.nan])))
    assert es.ecc(cloud, torch.zeros(2), torch.zeros(3)).isnan().all()


def test_wrong_types_and_options_are_named():
    with pytest.raises(TypeError, match=r"values must be floating point.*values\.float\(\)"):
        es.ecc(EDGE, torch.zeros(2, dtype=torch.int64), torch.zeros(1))
    with pytest.raises(ValueError, match="monotone must be one of check, repair, assume"):
        es.ecc(EDGE, torch.zeros(2), torch.zeros(1), monotone="yes")
    with pytest.raises(TypeError, match="superlevel"):
        es.ecc(EDGE, torch.zeros(2), torch.zeros(1), superlevel=1)
    for superlevel in (False, True):
        with pytest.raises(ValueError, match="must ascend"):
            es.ecc(EDGE, torch.zeros(2), torch.tensor([1.0, 0.0]), superlevel=superlevel)
    with pytest.raises(ValueError, match=r"thresholds must have shape \[H\]"):
        es.ecc(EDGE, torch.zeros(2), torch.zeros(2, 2))
    with pytest.raises(ValueError, match="scale must be positive"):
        es.ecc(EDGE, torch.zeros(2), torch.zeros(1), scale=0.0)


@pytest.mark.parametrize("scale", [3.0, math.inf])
def test_infinite_values_never_appear_or_are_always_there(scale):
    thresholds = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    steep = torch.tensor(scale, requires_grad=True)
    path = es.Complex(torch.zeros(3, 1), [torch.tensor([[0, 1], [1, 2]])])
    values = torch.tensor([-math.inf, 0.0, math.inf], requires_grad=True)
    curve = es.ecc(path, values, thresholds, scale=steep)
    torch.testing.assert_close(curve, torch.ones(1, 1, 3))  # the second vertex comes with its edge, the third never
    for gradient in torch.autograd.grad(curve.sum(), (values, thresholds, steep)):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [math.inf, 3.0])
def test_values_of_half_precision_are_computed_in_float32(scale, dtype):
    path = es.Complex(torch.zeros(3, 1), [torch.tensor([[0, 1], [1, 2]])])
    thresholds = torch.tensor([0.0, 1e5, 1e6])  # beyond the largest number of float16
    for values in (torch.tensor([0.0, 2.0, math.inf]), (torch.tensor([0.0, 0.0, 0.0]), torch.tensor([1.0, math.inf]))):
        low = [value.to(dtype) for value in values] if isinstance(values, tuple) else values.to(dtype)
        torch.testing.assert_close(es.ecc(path, low, thresholds, scale=scale), es.ecc(path, values, thresholds, scale=scale))


def test_empty_complexes_and_no_filtrations_have_empty_curves():
    empty = es.Complex(torch.zeros(0, 2), num_complexes=3)
    assert es.ecc(empty, torch.zeros(0, 4), torch.zeros(5)).tolist() == torch.zeros(3, 4, 5).tolist()
    assert es.ecc(empty, (torch.zeros(0, 4),), torch.zeros(5)).shape == (3, 4, 5)
    assert es.ecc(EDGE, torch.zeros(2, 0), torch.zeros(5)).shape == (1, 0, 5)
    assert es.ecc(EDGE, (torch.zeros(2, 0), torch.zeros(1, 0)), torch.zeros(5)).shape == (1, 0, 5)
    assert es.ecc(EDGE, torch.zeros(2), torch.zeros(0)).shape == (1, 1, 0)


# Directions of each shape


@pytest.mark.parametrize("scale", [11.0, math.inf])
@given(complex=batches(lattice=True), num_directions=st.integers(1, 10), seed=seeds)
def test_directions_of_each_shape_equal_a_loop(scale, complex, num_directions, seed):
    generator = torch.Generator().manual_seed(seed)
    shape = (complex.num_complexes, num_directions, complex.dim)
    directions = torch.randint(-2, 3, shape, generator=generator).double()
    found = es.ect(complex, directions, THRESHOLDS, scale=scale)
    looped = [es.ect(complex[b], directions[b], THRESHOLDS, scale=scale) for b in range(len(complex))]
    assert torch.equal(found, torch.cat(looped))


def test_directions_of_each_shape_are_rotations():
    shapes = es.collate([testing.torus(12, 9).complex, testing.sphere(2).complex])
    rotations = torch.linalg.qr(torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0), dtype=F64))[0]
    directions = es.directions.fibonacci(7).double()
    rotated = shapes.with_points(torch.einsum("vij,vj->vi", rotations[shapes.batch], shapes.points))
    found = es.ect(shapes, directions @ rotations, THRESHOLDS, scale=30.0)
    torch.testing.assert_close(found, es.ect(rotated, directions, THRESHOLDS, scale=30.0))


def test_gradcheck_in_directions_of_each_shape():
    complex = es.collate([random_complex(np.random.default_rng(s), num_points=4) for s in (0, 1)])
    directions = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0), dtype=F64, requires_grad=True)
    points = complex.points.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda p, d: es.ect(complex.with_points(p), d, THRESHOLDS, scale=6.0), (points, directions))


def test_directions_for_another_number_of_shapes_are_named():
    with pytest.raises(ValueError, match=r"\[2, T, 2\].*2 complexes"):
        es.ect(torch.zeros(2, 3, 2), torch.zeros(3, 5, 2), torch.zeros(1))


# Where curves change


@given(complex=batches(weighted=True, lattice=True), num_directions=st.integers(1, 19), seed=seeds)
def test_the_jumps_add_up_to_the_exact_transform_at_any_thresholds(complex, num_directions, seed):
    directions = directions_for(complex, num_directions, seed)
    jumps = es.critical(complex, directions)
    thresholds = torch.tensor(np.sort(np.random.default_rng(seed).normal(size=17) * 2))
    torch.testing.assert_close(jumps.curves(thresholds), es.ect(complex, directions, thresholds))
    assert (jumps.jump != 0).all()
    keys = torch.stack([jumps.complex.double(), jumps.direction.double(), jumps.height])
    assert keys.T.tolist() == sorted(keys.T.tolist())
    assert torch.equal(jumps.complex, complex.batch[jumps.vertex])


def test_only_a_few_vertices_of_a_surface_are_critical(monkeypatch):
    torus = testing.torus(48, 24).complex
    directions = es.directions.random(37, 3, torch.Generator().manual_seed(0), dtype=F64)
    jumps = es.critical(torus, directions)
    minimum, saddle, maximum = (int((jumps.jump == n).sum()) for n in (1, -1, 1))
    assert minimum - saddle == 0
    assert maximum == 2 * 37
    assert len(jumps.vertex) < 0.02 * 37 * len(torus.points)
    for thresholds in (es.thresholds(9, dtype=F64), torch.tensor([-0.3, 0.1])):
        assert torch.equal(jumps.curves(thresholds), es.ect(torus, directions, thresholds))
    monkeypatch.setattr("eulerscan.functional.MAX_ENTRIES", 8 * len(torus.points))  # in blocks
    for part, whole in zip(es.critical(torus, directions), jumps, strict=True):
        assert torch.equal(torch.as_tensor(part), torch.as_tensor(whole))


def test_jumps_of_shapes_with_directions_of_their_own():
    clouds = torch.rand(3, 5, 2, generator=torch.Generator().manual_seed(0))
    directions = torch.rand(3, 4, 2, generator=torch.Generator().manual_seed(1))
    jumps = es.critical(clouds, directions)
    assert len(jumps.vertex) == 3 * 4 * 5
    assert torch.equal(jumps.curves(es.thresholds(6)), es.ect(clouds, directions, es.thresholds(6)))


def test_values_of_filtrations_are_marked_as_monotone():
    assert isinstance(es.convert.filtration_from_image(torch.rand(2, 2)).values, Values)
