import copy
import pickle

import gudhi
import networkx
import numpy as np
import pytest
import torch
import trimesh
from drawing import batches, closed, random_complex, seeds
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

import eulerscan as es
from eulerscan import testing
from eulerscan.complexes.normalize import centroids


def parts(complex):
    """Everything there is to know, complex by complex, order within a complex left out."""
    result = []
    for b in range(complex.num_complexes):
        one = complex[b]
        levels = [sorted(tuple(sorted(column)) for column in s.T.tolist()) for s in one.simplices]
        result.append((one.points.tolist(), [level for level in levels if level]))
    return result


def mixture(dtype=torch.float32):
    """A point cloud, a graph, a triangle mesh and a tetrahedral mesh."""
    cloud = es.Complex(torch.rand(5, 3, dtype=dtype))
    graph = es.Complex(torch.rand(4, 3, dtype=dtype), [torch.tensor([[0, 1, 2], [1, 2, 3]])])
    mesh = testing.sphere(0, dtype=dtype).complex
    tetrahedra = es.Complex(torch.rand(5, 3, dtype=dtype), [torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])]).closure()
    return [cloud, graph, mesh, tetrahedra]


def test_a_mixture_collates_in_any_order_and_loses_nothing():
    items = mixture()
    expected = {id(item): parts(item)[0] for item in items}
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [0, 0, 3, 3]):
        batch = es.collate([items[i] for i in order])
        assert batch.num_complexes == 4
        assert batch.rows == (2, 3, 4)
        assert parts(batch) == [expected[id(items[i])] for i in order]


def test_an_unsorted_batch_is_sorted_by_complex():
    points = torch.arange(12.0).view(6, 2)
    batch = torch.tensor([2, 0, 2, 0, 2, 0])
    edges = torch.tensor([[0, 1, 4], [2, 5, 0]])
    complex = es.Complex(points, [edges], batch=batch, weights=(torch.arange(6.0), torch.tensor([10.0, 11.0, 12.0])))
    assert complex.num_complexes == 3
    assert complex.batch.tolist() == [0, 0, 0, 2, 2, 2]
    assert complex.points[:, 0].tolist() == [2, 6, 10, 0, 4, 8]
    assert complex.simplices[0].tolist() == [[0, 3, 5], [2, 4, 3]]
    assert [w.tolist() for w in complex.weights] == [[1, 3, 5, 0, 2, 4], [11, 10, 12]]
    assert complex.offsets.tolist() == [[0, 3, 3, 6], [0, 1, 1, 3]]


def test_levels_may_come_in_any_order():
    triangle = torch.tensor([[0], [1], [2]])
    edges = torch.tensor([[0, 1, 0], [1, 2, 2]])
    weights = (None, torch.tensor([5.0]), torch.tensor([1.0, 2.0, 3.0]))
    complex = es.Complex(torch.rand(3, 2), [triangle, edges], weights=weights)
    assert complex.rows == (2, 3)
    assert [w.tolist() for w in complex.weights] == [[1, 1, 1], [1, 2, 3], [5]]


@given(batches(weighted=True), seeds)
def test_selecting_is_collating_the_selected(complex, seed):
    indices = torch.randint(-complex.num_complexes, complex.num_complexes, (7,), generator=torch.Generator().manual_seed(seed))
    selected = complex.select(indices)
    again = es.collate([complex.select(int(i)) for i in indices])
    assert parts(selected) == parts(again)
    for one, other in zip(selected.weights, again.weights, strict=True):
        assert torch.equal(one, other)


def test_selecting_takes_masks_slices_lists_and_numbers():
    complex = es.collate(mixture())
    for chosen in (
        torch.tensor([False, True, False, True]),
        slice(1, None, 2),
        [1, 3],
        torch.tensor([1, -1]),
        np.array([1, 3]),
    ):
        assert parts(complex[chosen]) == [parts(complex)[1], parts(complex)[3]]
    assert parts(complex[-1]) == parts(complex)[3:]
    assert parts(complex[::-1]) == parts(complex)[::-1]
    assert complex[[]].num_complexes == 0
    assert len(complex[:0]) == 0


@pytest.mark.parametrize(
    ("indices", "error", "text"),
    [
        ([4], IndexError, "one of 4 complexes, got 4"),
        ([0, -5], IndexError, "one of 4 complexes, got -5"),
        (torch.tensor([True]), IndexError, r"mask, so it needs shape \[4\], got \[1\]"),
        ([0.5], TypeError, "indices must be integers"),
        ([[0, 1]], TypeError, r"indices must be integers \[n\]"),
    ],
)
def test_a_wrong_selection_is_named(indices, error, text):
    with pytest.raises(error, match=text):
        es.collate(mixture()).select(indices)


def test_selecting_does_not_loop_over_complexes():
    class Counter(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            self.calls += 1
            return function(*arguments, **(options or {}))

    def calls(num_complexes):
        complex = es.collate(mixture())[[0, 1, 2, 3] * num_complexes]
        with Counter() as counter:
            complex.select(torch.arange(4 * num_complexes))
        return counter.calls

    assert calls(1) == calls(2)
    assert calls(300) == calls(600)  # many entries are gathered in another way than few


@given(batches())
def test_the_unit_ball_has_its_centroid_at_the_origin_and_radius_one(complex):
    ball = complex.normalized("unit_ball")
    torch.testing.assert_close(
        centroids(ball.packed, ball.batch, ball.simplices), torch.zeros(len(ball), ball.dim).double(), atol=1e-12, rtol=0
    )
    for b in range(ball.num_complexes):
        if len(torch.unique(complex[b].points, dim=0)) > 1:
            torch.testing.assert_close(ball[b].points.norm(dim=1).max(), torch.tensor(1.0, dtype=torch.float64))


@given(batches())
def test_the_unit_ball_about_the_vertices_has_their_mean_at_the_origin_and_radius_one(complex):
    ball = complex.normalized("vertices")
    for b in range(ball.num_complexes):
        points, given_points = ball[b].points, complex[b].points
        if len(points):
            torch.testing.assert_close(points.mean(dim=0), torch.zeros(ball.dim, dtype=torch.float64), atol=1e-12, rtol=0)
        if len(torch.unique(given_points, dim=0)) > 1:
            torch.testing.assert_close(points.norm(dim=1).max(), torch.tensor(1.0, dtype=torch.float64))


def test_centered_shapes_have_their_mean_at_the_origin_and_keep_their_size():
    square = torch.tensor([[0.0, 0], [2, 0], [2, 2], [0, 2]])
    triangle = torch.tensor([[0.0, 0], [3, 0], [0, 3]])
    filled = es.Complex(triangle - 7, [torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([[0], [1], [2]])])
    shapes = es.collate([es.Complex(square + 100), filled]).normalized("center")
    assert shapes[0].points.tolist() == [[-1, -1], [1, -1], [1, 1], [-1, 1]]
    assert shapes[1].points.tolist() == [[-1, -1], [2, -1], [-1, 2]]
    assert shapes.simplices[0].tolist() == [[4, 5, 6], [5, 6, 4]]


@given(batches())
def test_the_unit_ball_is_the_centered_shape_scaled(complex):
    centered, ball = complex.normalized("center"), complex.normalized("unit_ball")
    for b in range(complex.num_complexes):
        size = centered[b].points.norm(dim=1).max() if len(centered[b].points) else 1
        torch.testing.assert_close(ball[b].points * size, centered[b].points)


@pytest.mark.parametrize("place", [0.0, 0.1, 1e6, 1e-30])
def test_single_and_coincident_points_go_to_zero(place):
    for n in (1, 7):
        complex = es.collate([es.Complex(torch.full((n, 3), place)), es.Complex(torch.rand(4, 3))])
        assert (complex.normalized("unit_ball")[0].points == 0).all()
        assert (complex.normalized("center")[0].points == 0).all()


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_very_small_and_very_large_shapes_reach_the_unit_ball(size):
    norms = es.Complex(torch.rand(9, 3) * size).normalized("unit_ball").points.norm(dim=1)
    torch.testing.assert_close(norms.max(), torch.tensor(1.0))


@pytest.mark.parametrize("size", [1e-30, 1e20])
def test_very_small_and_very_large_shapes_have_norms(size):
    points = (torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]) * size).requires_grad_()
    shapes = es.Complex(points.detach(), batch=torch.tensor([0, 0, 1]), num_complexes=3).with_points(points)
    norms = shapes.largest_norms()
    torch.testing.assert_close(norms, torch.tensor([5.0, 2.0, 0.0]) * size)
    norms.sum().backward()
    torch.testing.assert_close(points.grad, torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.0, 1.0]]))


def test_large_points_of_half_precision_are_centered():
    pair = es.Complex(torch.tensor([[4e4, 0.0], [-4e4, 0.0]]).half())  # their difference is beyond 65504
    assert pair.normalized("unit_ball").points.tolist() == [[1, 0], [-1, 0]]
    assert pair.normalized("center").points.tolist() == [[4e4, 0], [-4e4, 0]]


def test_many_points_of_half_precision_are_centered():
    line = es.Complex(torch.arange(2001).half().unsqueeze(1))  # the sum is beyond 65504, the largest number of its kind
    assert line.normalized("center").points[[0, 1000, 2000], 0].tolist() == [-1000, 0, 1000]
    assert line.normalized("unit_ball").points[[0, 1000, 2000], 0].tolist() == [-1, 0, 1]
    assert line.normalized("center").points.dtype == torch.float16


@pytest.mark.parametrize("normalize", ["unit_ball", "center"])
def test_normalization_has_gradients_and_ignores_other_complexes(normalize):
    points = torch.rand(6, 2, dtype=torch.float64, requires_grad=True)
    batch = torch.tensor([0, 0, 0, 1, 1, 1])
    torch.autograd.gradcheck(lambda p: es.Complex(p, batch=batch).normalized(normalize).points, points)
    testing.assert_batch_independent(lambda c: c.normalized(normalize).points, es.Complex(points, batch=batch), rtol=0, atol=0)


def test_no_normalization_returns_the_complex_itself():
    complex = es.Complex(torch.rand(3, 2))
    assert complex.normalized(None) is complex


def test_an_unknown_normalization_is_named():
    with pytest.raises(ValueError, match="normalize.*got 'unitball'"):
        es.Complex(torch.rand(3, 2)).normalized("unitball")


@given(seeds, st.integers(1, 3), st.integers(5, 12))
def test_the_closure_has_exactly_the_missing_faces(seed, top, num_points):
    rng = np.random.default_rng(seed)
    facets = [tuple(rng.choice(num_points, top + 1, replace=False).tolist()) for _ in range(4)]
    facets = sorted({tuple(sorted(facet)) for facet in facets})
    complex = es.Complex(torch.rand(num_points, 2), [torch.tensor(facets).T])
    expected = closed(facets)
    assert parts(complex.closure())[0][1] == [expected[r] for r in sorted(expected)]
    assert parts(complex.closure().closure()) == parts(complex.closure())


def test_the_closure_keeps_complexes_apart_and_copies_as_they_are():
    doubled = es.Complex(torch.rand(3, 2), [torch.tensor([[0, 1], [1, 0]]), torch.tensor([[2], [0], [1]])])
    batch = es.collate([doubled, es.Complex(torch.rand(2, 2)), doubled]).closure()
    assert batch.euler_characteristic().tolist() == [3 - 4 + 1, 2, 3 - 4 + 1]
    assert batch.num_complexes == 3


def test_the_closure_works_where_keys_do_not_fit_in_64_bits():
    points = torch.rand(3000, 2)
    simplex = torch.tensor([[10, 2999, 800, 77, 5, 1234]]).T
    assert es.Complex(points, [simplex]).closure().euler_characteristic().tolist() == [3000 - 6 + 1]


def test_the_closure_of_a_weighted_complex_is_refused():
    weighted = es.Complex(torch.rand(3, 2), [torch.tensor([[0], [1], [2]])], weights=(None, torch.ones(1)))
    with pytest.raises(ValueError, match="weights of new faces"):
        weighted.closure()


# Independent oracles


@given(seeds)
def test_euler_characteristics_equal_those_of_gudhi(seed):
    complex = random_complex(np.random.default_rng(seed), num_points=12, dim=3, top=4)
    tree = gudhi.SimplexTree()
    for v in range(12):
        tree.insert([v])
    for level in complex.simplices:
        for column in level.T.tolist():
            tree.insert(column)
    counts = np.bincount([len(simplex) for simplex, _ in tree.get_simplices()])[1:]
    assert complex.euler_characteristic().item() == sum((-1) ** k * n for k, n in enumerate(counts))
    tree.compute_persistence(persistence_dim_max=True)
    betti = tree.betti_numbers()
    assert complex.euler_characteristic().item() == sum((-1) ** k * n for k, n in enumerate(betti))


@pytest.mark.parametrize("name", ["sphere", "torus", "moebius"])
def test_euler_characteristics_equal_those_of_trimesh(name):
    shape = testing.known_shapes()[name]
    triangles = shape.complex.simplices[1].T.numpy()
    mesh = trimesh.Trimesh(shape.complex.points.numpy(), triangles, process=False)
    assert mesh.euler_number == shape.euler == shape.complex.euler_characteristic().item()
    assert mesh.is_watertight == (name != "moebius")


def test_euler_characteristics_of_graphs_are_components_minus_cycles(generator):
    shape = testing.random_graph(30, 41, generator=generator)
    graph = networkx.Graph(shape.complex.simplices[0].T.tolist())
    graph.add_nodes_from(range(30))
    components, cycles = networkx.number_connected_components(graph), len(networkx.cycle_basis(graph))
    assert shape.complex.euler_characteristic().item() == shape.euler == components - cycles


def test_a_weighted_euler_characteristic_is_the_limit_of_the_transform():
    complex = random_complex(np.random.default_rng(3), weighted=True)
    limit = es.ect(complex, es.directions.circle(1, dtype=torch.float64), torch.tensor([1e6], dtype=torch.float64))
    torch.testing.assert_close(complex.euler_characteristic(), limit.view(1))


# Behaviour as an object


def test_a_complex_does_not_change():
    complex = mixture()[1]
    with pytest.raises(AttributeError, match="points cannot be set: a Complex is immutable"):
        complex.points = torch.rand(4, 3)
    with pytest.raises(AttributeError, match="packed cannot be deleted: a Complex is immutable"):
        del complex.packed
    assert len(complex.points)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_and_pickles_are_equal(make):
    complex = es.collate(mixture())
    assert parts(make(complex)) == parts(complex)


def test_with_points_keeps_the_connectivity():
    complex = es.collate(mixture())
    other = complex.with_points(torch.zeros(len(complex.points), 5))
    assert (other.dim, other.rows, other.num_complexes) == (5, complex.rows, 4)
    with pytest.raises(ValueError, match=r"points must have shape \[20, dim\] here, got \[3, 3\]"):
        complex.with_points(torch.zeros(3, 3))
    with pytest.raises(TypeError, match=r"points must be a torch.Tensor of floating point, got torch.int64"):
        complex.with_points(torch.zeros(20, 3, dtype=torch.int64))


def test_to_converts_points_and_weights():
    complex = random_complex(np.random.default_rng(0), weighted=True).to(dtype=torch.float32)
    assert complex.points.dtype == complex.packed.weights.dtype == torch.float32
    assert complex.to("cpu").points is complex.points
    assert complex.to(torch.float64).points.dtype == torch.float64
    assert complex.device == torch.device("cpu")
    with pytest.raises(TypeError, match="dtype must be floating point"):
        complex.to(dtype=torch.int32)


def test_devices_without_float64_get_float32(monkeypatch):
    complex = random_complex(np.random.default_rng(0), weighted=True).to(torch.float64)
    monkeypatch.setattr("eulerscan._devices.WITHOUT_FLOAT64", {"meta"})
    assert complex.to("meta").points.dtype == complex.to(torch.device("meta")).packed.weights.dtype == torch.float32
    assert complex.to("cpu").points.dtype == torch.float64


def test_pinning_pins_every_tensor(monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(tensor) or tensor.clone())
    weighted = es.Complex(torch.rand(3, 2), [torch.tensor([[0], [1]])], weights=(None, torch.tensor([2.0])))
    for complex, count in ((weighted, 4), (es.collate(mixture()), 3)):
        pinned.clear()
        again = torch.utils.data._utils.pin_memory.pin_memory(complex)
        assert len(pinned) == count
        assert parts(again) == parts(complex)
        assert again.points is not complex.points


def test_weights_of_all_levels_are_a_tuple():
    edge = es.Complex(torch.rand(2, 2), [torch.tensor([[0], [1]])])
    weighted = edge.with_weights((torch.tensor([1.0, 2.0]), None))
    assert [weight.tolist() for weight in weighted.weights] == [[1.0, 2.0], [1.0]]
    assert weighted.with_weights((None, None)).weights is None
    with pytest.raises(ValueError, match="weights.*2 in all.*got 1 entries"):
        edge.with_weights((torch.ones(2),))
    with pytest.raises(ValueError, match="weights must have one entry per vertex.*tuple"):
        edge.with_weights(torch.ones(3))


def test_a_detached_complex_passes_no_gradients():
    points, weights = torch.rand(3, 2, requires_grad=True), torch.rand(3, requires_grad=True)
    complex = es.Complex(points, [torch.tensor([[0], [1]])]).with_weights(weights)
    detached = complex.detach()
    assert not any(tensor.requires_grad for tensor in detached.packed if isinstance(tensor, torch.Tensor))
    assert torch.equal(detached.points, points)
    assert torch.equal(detached.packed.weights, complex.packed.weights)


def test_indices_are_stored_in_32_bits():
    assert mixture()[2].packed.simplices.dtype == torch.int32


@pytest.mark.parametrize("index", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_indices_may_come_in_any_integer_dtype(index):
    complex = es.Complex(torch.rand(4, 2), [torch.tensor([[0, 1, 2], [1, 2, 3]]).to(index)], batch=torch.zeros(4, dtype=index))
    assert complex.simplices[0].tolist() == [[0, 1, 2], [1, 2, 3]]


def test_the_representation_tells_what_is_inside():
    assert repr(es.collate(mixture())) == (
        "Complex(num_complexes=4, dim=3, points=20, simplices=(24 edges, 15 triangles, 2 tetrahedra))"
    )
    assert "1 4-simplices" in repr(es.Complex(torch.rand(5, 1), [torch.arange(5)[:, None]]))
    assert "weighted" in repr(random_complex(np.random.default_rng(0), weighted=True))


def test_gradients_flow_through_collate_select_and_unsorted_batches():
    points = torch.rand(6, 2, requires_grad=True)
    complex = es.Complex(points, batch=torch.tensor([1, 0, 1, 0, 1, 0]))
    es.collate([complex, complex]).select([3]).points.sum().backward()
    assert points.grad[:, 0].tolist() == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("items", "error", "text"),
    [
        ([], ValueError, "complexes must not be empty"),
        ([torch.rand(3, 2)], TypeError, r"complexes\[0\] must be a Complex, got Tensor. as_complex\(\) makes one"),
        ([es.Complex(torch.rand(3, 2)), es.Complex(torch.rand(3, 3))], ValueError, r"complexes\[1\] has points of dimension 3"),
    ],
)
def test_what_cannot_be_collated_is_named(items, error, text):
    with pytest.raises(error, match=text):
        es.collate(items)


def test_nothing_at_all_is_a_complex():
    nothing = es.Complex(torch.zeros(0, 3), num_complexes=0)
    assert (len(nothing), nothing.dim) == (0, 3)
    assert nothing.normalized("unit_ball").points.shape == (0, 3)
    assert nothing.normalized("center").points.shape == (0, 3)
    assert nothing.euler_characteristic().shape == (0,)
    assert nothing.closure().num_complexes == 0
    assert es.collate([nothing, nothing]).num_complexes == 0
    assert es.collate([nothing, es.Complex(torch.rand(2, 3))]).num_complexes == 1
    assert es.Complex(torch.zeros(0, 3), batch=torch.zeros(0, dtype=torch.int64)).num_complexes == 0
    assert es.Complex(torch.zeros(0, 3)).euler_characteristic().tolist() == [0]
