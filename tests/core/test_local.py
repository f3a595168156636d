"""Neighborhoods and the local transform, against a loop over the vertices."""

import math

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan import local
from eulerscan.complexes.neighborhoods import Search


def graph(seed, n=40, m=70, dim=2):
    rng = torch.Generator().manual_seed(seed)
    edges = torch.randint(n - 3, (2, m), generator=rng)  # the last three vertices are isolated
    edges = torch.unique(edges[:, edges[0] != edges[1]].sort(dim=0).values, dim=1)
    return es.Complex(torch.randn(n, dim, generator=rng, dtype=torch.float64), [edges])


def solid(seed, n=25):
    """Random triangles and tetrahedra with all their faces, in two complexes."""
    rng = torch.Generator().manual_seed(seed)
    cells = torch.stack([torch.randperm(n, generator=rng)[:4] for _ in range(8)], dim=1).sort(dim=0).values
    cells = torch.unique(cells, dim=1)
    faces = torch.cat([cells[:3], torch.stack([torch.randperm(n, generator=rng)[:3] for _ in range(9)], dim=1)], dim=1)
    faces = torch.unique(faces.sort(dim=0).values, dim=1)
    one = es.Complex(torch.randn(n, 3, generator=rng, dtype=torch.float64), [faces, cells]).closure()
    return es.collate([one, one.with_points(one.points.flip(0))])


def squares():
    """A grid of squares with edges: cells that are not simplices."""
    points = torch.tensor([[i, j] for i in range(4) for j in range(4)], dtype=torch.float64)
    points += 0.1 * torch.rand(points.shape, generator=torch.Generator().manual_seed(0))  # no two distances are equal
    at = np.arange(16).reshape(4, 4)
    edges = [(at[i, j], at[i + 1, j]) for i in range(3) for j in range(4)]
    edges += [(at[i, j], at[i, j + 1]) for i in range(4) for j in range(3)]
    cells = [(at[i, j], at[i + 1, j], at[i + 1, j + 1], at[i, j + 1]) for i in range(3) for j in range(3)]
    return es.Complex(points, [torch.tensor(edges).T, torch.tensor(cells).T], dims=(1, 2))


def clouds(seed):
    rng = torch.Generator().manual_seed(seed)
    return es.Complex(torch.randn(50, 3, generator=rng, dtype=torch.float64), batch=torch.arange(50) // 20)


SHAPES = {
    "graph": graph(0),
    "features": graph(1, dim=9),
    "solid": solid(0),
    "squares": squares(),
    "clouds": clouds(0),
    "weighted": graph(2).with_weights(torch.rand(40)),
}
BALLS = {"one hop": {"hops": 1}, "three hops": {"hops": 3}, "radius": {"radius": 0.9}, "nearest": {"k": 5}}


def ball_of(shape, node, *, hops=None, radius=None, k=None):
    """The vertices of the ball around a node, in the plainest way."""
    if hops is not None:
        found = {node}
        for _ in range(hops):
            edges = shape.simplices[0].T.tolist() if shape.rows else []
            found |= {v for edge in edges if set(edge) & found for v in edge}
        return sorted(found)
    distance = (shape.points - shape.points[node]).norm(dim=1)
    own = shape.batch == shape.batch[node]
    if radius is not None:
        return (own & (distance <= radius)).nonzero().flatten().tolist()
    return sorted(distance.masked_fill(~own, math.inf).argsort(stable=True)[: min(k + 1, int(own.sum()))].tolist())


def subcomplex(shape, ball):
    """The full subcomplex on a ball, in the plainest way."""
    place = {v: i for i, v in enumerate(ball)}
    levels, weights = [], None if shape.weights is None else [shape.weights[0][ball]]
    for i, columns in enumerate(shape.simplices):
        kept = [c for c, cell in enumerate(columns.T.tolist()) if set(cell) <= set(ball)]
        cells = [[place[v] for v in columns[:, c].tolist()] for c in kept]
        levels.append(torch.tensor(cells, dtype=torch.int64).reshape(-1, len(columns)).T)
        if weights is not None:
            weights.append(shape.weights[1 + i][kept])
    return es.Complex(shape.points[ball], levels, dims=shape.dims, weights=weights)


def cells(shape):
    """Vertices and cells of a complex, in an order of their own."""
    weights = shape.weights or [torch.ones(count) for count in shape.counts]
    levels = [sorted(zip(c.T.tolist(), w.tolist(), strict=True)) for c, w in zip(shape.simplices, weights[1:], strict=True)]
    return shape.points.tolist(), weights[0].tolist(), levels


@pytest.mark.parametrize("ball", BALLS.values(), ids=BALLS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_neighborhoods_equal_a_loop_over_the_vertices(shape, ball):
    found = es.neighborhoods(shape, **ball)
    assert found.num_complexes == len(shape.points)
    for node in range(len(shape.points)):
        assert cells(found[node]) == cells(subcomplex(shape, ball_of(shape, node, **ball)))


@pytest.mark.parametrize("scale", [math.inf, 9.0])
@pytest.mark.parametrize("normalize", ["vertices", "unit_ball", None])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_local_transform_equals_a_loop_over_the_vertices(shape, normalize, scale):
    directions, thresholds = torch.randn(5, shape.dim, dtype=torch.float64), es.thresholds(7, dtype=torch.float64)
    sizes = {"k": (3, 6)} if shape is SHAPES["clouds"] else {"hops": (1, 2)}
    found = es.local_ect(shape, directions, thresholds, normalize=normalize, scale=scale, **sizes)
    ((name, values),) = sizes.items()
    for s, size in enumerate(values):
        for node in range(0, len(shape.points), 3):
            part = subcomplex(shape, ball_of(shape, node, **{name: size})).normalized(normalize)
            torch.testing.assert_close(found[node, s], es.ect(part, directions, thresholds, scale=scale)[0])


def test_one_hop_equals_k_hop_subgraph():
    pytest.importorskip("torch_geometric")
    from torch_geometric.utils import k_hop_subgraph, to_undirected

    shape = graph(3)
    found = es.neighborhoods(shape, hops=2)
    both = to_undirected(shape.simplices[0].long())
    for node in range(len(shape.points)):
        subset, edges, _, _ = k_hop_subgraph(node, 2, both, relabel_nodes=True, num_nodes=len(shape.points))
        assert torch.equal(found[node].points, shape.points[subset])
        assert sorted(found[node].simplices[0].sort(dim=0).values.T.tolist()) == sorted(
            edges[:, edges[0] < edges[1]].T.tolist()
        )


@pytest.mark.parametrize("name", ["graph", "solid", "features", "weighted"])
def test_blocks_change_neither_values_nor_gradients(name, monkeypatch):
    shape = SHAPES[name]
    results = []
    for limit in (local.MAX_COORDINATES, 40):
        monkeypatch.setattr(local, "MAX_COORDINATES", limit)
        points = shape.points.clone().requires_grad_()
        directions = torch.randn(4, shape.dim, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
        thresholds = es.thresholds(6, dtype=torch.float64)
        transform = es.local_ect(shape.with_points(points), directions, thresholds, scale=5.0)
        (transform * torch.arange(transform.numel()).reshape(transform.shape).cos()).sum().backward()
        with torch.no_grad():
            again = es.local_ect(shape.with_points(points), directions, thresholds, scale=5.0)
        assert torch.equal(again, transform)
        results.append((transform.detach(), points.grad, directions.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("sizes", [{"radius": (0.5, 1.5)}, {"k": (2, 9)}, {"radius": 2.0, "max_vertices": 4}], ids=str)
def test_blocks_of_clouds_change_nothing(sizes, monkeypatch):
    grid = (es.directions.uniform(5, 3, dtype=torch.float64), es.thresholds(6, dtype=torch.float64))
    whole = es.local_ect(clouds(1), *grid, **sizes)
    monkeypatch.setattr(local, "MAX_COORDINATES", 60)
    assert torch.equal(es.local_ect(clouds(1), *grid, **sizes), whole)
    monkeypatch.setattr(local, "MAX_VALUES", 90)  # three vertices at a time
    assert torch.equal(es.local_ect(clouds(1), *grid, **sizes), whole)


@pytest.mark.parametrize("limit", [local.MAX_COORDINATES, 20])  # one block, several
@pytest.mark.parametrize("dim", [2, 5])  # 5: projected once
def test_gradients(dim, limit, monkeypatch):
    monkeypatch.setattr(local, "MAX_COORDINATES", limit)
    shape, thresholds = graph(4, n=9, m=10, dim=dim), es.thresholds(4, dtype=torch.float64)
    directions = torch.randn(3, dim, dtype=torch.float64, requires_grad=True)

    def function(points, weights, directions, scale):
        weighted = shape.with_points(points).with_weights(weights)
        return es.local_ect(weighted, directions, thresholds, hops=1, scale=scale)

    weights, scale = torch.rand(9, dtype=torch.float64, requires_grad=True), torch.tensor(3.0, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        function, (shape.points.clone().requires_grad_(), weights, directions, scale.requires_grad_())
    )


def test_nodes_in_any_order():
    shape = graph(0)
    every, some = es.neighborhoods(shape), es.neighborhoods(shape, nodes=[5, 2, 5])
    assert [cells(part) for part in some] == [cells(every[i]) for i in (5, 2, 5)]
    mask = torch.zeros(40, dtype=torch.bool)
    mask[[2, 5]] = True
    assert [cells(part) for part in es.neighborhoods(shape, nodes=mask)] == [cells(every[i]) for i in (2, 5)]
    assert es.neighborhoods(shape, nodes=[]).num_complexes == 0
    assert es.local_ect(shape, es.directions.circle(3).double(), torch.zeros(2), nodes=[]).shape == (0, 2, 3, 2)


def star(leaves):
    edges = torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)])
    return es.Complex(torch.arange(leaves + 1.0)[:, None], [edges])


def test_a_hub_keeps_its_center_and_an_even_sample():
    balls = es.neighborhoods(star(100), max_vertices=6)
    assert balls[0].points.flatten().tolist() == [0, 1, 17, 34, 51, 67]
    assert balls[0].counts == (6, 5)
    assert balls[7].points.flatten().tolist() == [0, 7]
    two = es.neighborhoods(star(100), hops=2, nodes=[7], max_vertices=4)  # whole hops first
    assert two.points.flatten().tolist() == [0, 1, 7, 51]
    assert es.neighborhoods(star(100), hops=2, nodes=[7], max_vertices=1).points.tolist() == [[7.0]]


def test_a_large_hub_takes_no_time():
    balls = es.neighborhoods(star(200_000), hops=2, max_vertices=16)  # enumerating all 2-hop balls would take minutes
    assert balls.offsets[0].diff().unique().tolist() == [16]


def test_a_huge_radius_reaches_everything_in_the_complex():
    shape = es.Complex(torch.rand(7, 2), batch=torch.tensor([0, 0, 0, 1, 1, 1, 1]))
    for radius in (10.0, 1e308):
        assert es.neighborhoods(shape, radius=radius).offsets[0].diff().tolist() == [3, 3, 3, 4, 4, 4, 4]


def test_a_ball_of_limited_size_keeps_the_nearest():
    line = torch.arange(10.0)[:, None]
    assert es.neighborhoods(line, radius=4.5, nodes=[5], max_vertices=3).points.flatten().tolist() == [4, 5, 6]
    assert es.neighborhoods(line, k=4, nodes=[5], max_vertices=3).points.flatten().tolist() == [4, 5, 6]


def test_coincident_points_are_neighbors_of_themselves():
    cloud = torch.zeros(6, 2)
    found = es.neighborhoods(cloud, k=2)
    assert found.offsets[0].diff().tolist() == [3] * 6
    balls = next(Search(es.as_complex(cloud), k=2).balls(np.arange(6)))
    assert all(i in balls.members[3 * i : 3 * i + 3] for i in range(6))
    assert es.neighborhoods(cloud, k=50).counts == (36,)


def test_hyperedges_join_neighbors():
    shape = es.Complex(torch.rand(5, 2), [torch.tensor([[0], [1], [2]])], dims=(1,))
    assert es.neighborhoods(shape).offsets[0].diff().tolist() == [3, 3, 3, 1, 1]
    assert es.neighborhoods(shape).counts == (11, 3)


def test_isolated_vertices_are_alone():
    found = es.local_ect(graph(0), es.directions.circle(4).double(), es.thresholds(3), hops=1)
    assert found[-1].unique().tolist() == [0.0, 1.0]
    assert found[-1, 0, 0].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dim", [2, 9])  # 9: projected once
def test_dtypes_are_those_of_the_transform(dim):
    shape, directions, thresholds = graph(5, dim=dim), torch.randn(4, dim).half().float(), es.thresholds(5)
    low = shape.with_points(shape.points.half())
    expected = es.local_ect(low.to(torch.float32), directions, thresholds, scale=4.0)
    assert expected.dtype == torch.float32
    assert torch.equal(es.local_ect(low, directions, thresholds, scale=4.0), expected)
    wide = es.local_ect(low, directions.double(), thresholds, scale=4.0)
    assert wide.dtype == torch.float64
    torch.testing.assert_close(wide.float(), expected, rtol=1e-4, atol=1e-4)


def test_an_empty_shape_has_no_neighborhoods():
    empty = es.Complex(torch.empty(0, 2))
    assert es.neighborhoods(empty).num_complexes == 0
    assert es.local_ect(empty, es.directions.circle(4), es.thresholds(3)).shape == (0, 2, 4, 3)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"hops": 0}, ValueError, "hops must be at least 1, got 0"),
        ({"hops": -1}, ValueError, "hops must be at least 1, got -1"),
        ({"hops": 1.5}, TypeError, "hops must be an int"),
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"radius": 0.0}, ValueError, "radius must be positive"),
        ({"radius": math.nan}, ValueError, "radius must be positive"),
        ({"hops": 1, "k": 2}, ValueError, "one of hops, radius and k, got hops and k"),
        ({"max_vertices": 0}, ValueError, "max_vertices must be at least 1"),
        ({"nodes": [40]}, IndexError, "nodes must name vertices from 0 to 39, got 40"),
        ({"nodes": [-1]}, IndexError, "got -1"),
        ({"nodes": [0.5]}, TypeError, "nodes must be integers"),
        ({"nodes": torch.ones(3, dtype=torch.bool)}, IndexError, "nodes is a mask"),
    ],
)
def test_bad_arguments_are_named(options, error, text):
    with pytest.raises(error, match=text):
        es.neighborhoods(graph(0), **options)
    with pytest.raises(error, match=text):
        es.local_ect(graph(0), es.directions.circle(4), es.thresholds(3), **options)


def test_a_cloud_has_no_hops_by_default():
    for function in (es.neighborhoods, lambda cloud: es.local_ect(cloud, es.directions.circle(4), es.thresholds(3))):
        with pytest.raises(ValueError, match="radius, or k"):
            function(torch.rand(5, 2))
    assert es.neighborhoods(torch.rand(5, 2), hops=1).counts == (5,)


def test_directions_of_each_shape_are_refused():
    with pytest.raises(ValueError, match="directions must be a tensor"):
        es.local_ect(graph(0), torch.rand(40, 4, 2), es.thresholds(3))


@pytest.mark.parametrize("normalize", ["vertices", None])
def test_autocast_does_not_round_heights(normalize):
    """Projected once, since there are fewer directions than coordinates."""
    rng = torch.Generator().manual_seed(0)
    path = es.Complex(torch.rand(20, 5, generator=rng) + 10, [torch.stack([torch.arange(19), torch.arange(1, 20)])])
    grid = torch.randn(3, 5, generator=rng), es.thresholds(9, 1.0 if normalize else 40.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = es.local_ect(path, *grid, normalize=normalize)
    assert torch.equal(found, es.local_ect(path, *grid, normalize=normalize))


@pytest.mark.parametrize("size", [1e-30, 1e20])
def test_the_units_do_not_matter_to_projected_neighborhoods(size):
    shape, grid = graph(6, dim=5), (torch.randn(3, 5, generator=torch.Generator().manual_seed(0)), es.thresholds(9))
    points = shape.points.float()
    found = es.local_ect(shape.with_points(points * size), *grid, scale=8.0)
    torch.testing.assert_close(found, es.local_ect(shape.with_points(points), *grid, scale=8.0))
