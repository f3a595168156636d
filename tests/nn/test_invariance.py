"""Models that rotations of a shape do not matter to: harmonics, frames, rotated directions."""

import math

import pytest
import torch

import eulerscan as es
from eulerscan import rotations
from eulerscan.complexes.principal_axes import second_moments
from eulerscan.datasets import Dataset, load
from eulerscan.directions import quadrature
from eulerscan.harmonics import coefficients, harmonics
from eulerscan.nn import FrameAveraging
from eulerscan.nn.models import ECTMLP, ECTCurves, ECTHarmonics
from eulerscan.nn.models.harmonics import DegreeConvolution, DegreeNorm, Product
from eulerscan.testing import assert_rotation_invariant, known_shapes
from eulerscan.training import TrainingConfig, train
from eulerscan.training.config import ModelConfig


def clouds(count=12, dim=3, num_points=40):
    """Every second one is flatter."""
    stretch = torch.linspace(0.2, 1.0, dim) ** (0.5 + torch.arange(count)[:, None, None] % 2)
    return torch.randn(count, num_points, dim, generator=torch.Generator().manual_seed(0)) * stretch


def surfaces():
    return load("manifolds", form="meshes", num_shapes=3, num_points=60).shapes


def outlines():
    """Polygons of 12 corners."""
    return es.collate([es.convert.from_outline(points) for points in clouds(dim=2, num_points=12)])


def trained(model, shapes):
    """After a few steps, so that the statistics of batch normalization are those of the shapes."""
    labels, optimizer = torch.arange(len(shapes)) % 2, torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(8):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(shapes), labels).backward()
        optimizer.step()
    return model.eval()


def harmonic(dim=3, num_classes=2, **options):
    return ModelConfig("harmonics", num_thresholds=24, **options).build(dim, num_classes)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("degree", [3, 6])
def test_logits_of_harmonics_do_not_change_under_rotation(dim, degree, generator):
    made = trained(harmonic(dim, degree=degree), shapes := clouds(dim=dim))
    assert_rotation_invariant(made, shapes, tolerance=1e-3, generator=generator)
    assert made(shapes).std(dim=0).max() > 0.1  # and differ between shapes
    assert made.num_parameters < 500_000


@pytest.mark.parametrize("dim", [2, 3])
def test_logits_of_meshes_do_not_change_under_rotation(dim, generator):
    """Neither sign of a principal axis changes the directions."""
    made = trained(harmonic(dim, degree=4), shapes := surfaces() if dim == 3 else outlines())
    assert_rotation_invariant(made, shapes, tolerance=1e-4, generator=generator)
    assert made(shapes).std(dim=0).max() > 0.1


def test_harmonics_of_shapes_far_away_are_the_same():
    """Coordinates are whole numbers, which float32 has exactly."""
    model = harmonic().eval()
    shapes = surfaces()
    shapes = shapes.with_points((1000 * shapes.points).round())
    for offset in (1e4, 1e6):
        torch.testing.assert_close(model(shapes.with_points(shapes.points + offset)), model(shapes), rtol=1e-5, atol=1e-5)


def test_harmonics_and_frames_do_not_depend_on_the_mesh():
    """Triangles that are divided at their centers, which changes no curve."""
    shapes = surfaces().to(dtype=torch.float64)
    triangles = shapes.simplices[1]
    shapes = es.Complex(shapes.points, [triangles], batch=shapes.batch)
    chosen, centers = triangles[:, ::5], shapes.points[triangles[:, ::5]].mean(dim=0)
    apex = len(shapes.points) + torch.arange(len(centers))
    kept = triangles[:, torch.arange(triangles.shape[1]) % 5 != 0]
    parts = [torch.stack([chosen[i], chosen[j], apex]) for i, j in ((0, 1), (1, 2), (2, 0))]
    points, batch = torch.cat([shapes.points, centers]), torch.cat([shapes.batch, shapes.batch[chosen[0]]])
    finer = es.Complex(points, [torch.cat([kept, *parts], dim=1)], batch=batch)
    torch.testing.assert_close(second_moments(finer), second_moments(shapes))
    model = harmonic().eval().double()
    torch.testing.assert_close(model(finer.closure()), model(shapes.closure()), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("form", ["clouds", "surfaces"])
def test_gradients_in_the_points_are_exact(form):
    """The axes move with the points."""
    shapes = es.as_complex(clouds(2, num_points=5)) if form == "clouds" else surfaces()[:1]
    layer = es.ECTLayer(3, num_thresholds=4, directions=quadrature(5).directions, learn_directions=False, scale=4.0)
    model = ECTHarmonics(layer, 2, degree=2, channels=(3,), hidden=(4,)).double().eval()
    shapes = shapes.to(dtype=torch.float64)
    chosen = torch.randperm(len(shapes.points), generator=torch.Generator().manual_seed(0))[:4]
    moved = shapes.points[chosen].requires_grad_()
    assert torch.autograd.gradcheck(lambda p: model(shapes.with_points(shapes.points.index_put((chosen,), p))), moved)


def test_gradients_of_symmetric_shapes_stay_small(generator):
    """Second moments of a rotated square differ by rounding only."""
    square = torch.tensor([[1.0, 1], [-1, 1], [-1, -1], [1, -1]])
    torch.manual_seed(0)
    model = FrameAveraging(es.ECTLayer(2, 8, 8, scale=4.0, normalize="unit_ball")).eval()
    for rotation in rotations.random(5, 2, generator).float():
        points = (square @ rotation.T)[None].requires_grad_()
        model(points).square().sum().backward()
        assert points.grad.abs().max() < 1e3


def test_nan_in_a_shape_does_not_reach_the_others():
    shapes = es.as_complex(clouds(3))
    points = shapes.points.index_put((torch.tensor([50]), torch.tensor([1])), torch.tensor(math.nan))
    for model in (harmonic().eval(), FrameAveraging(es.ECTLayer(3)).eval()):
        found = model(shapes.with_points(points)).flatten(1)
        assert found.isnan().any(dim=1).tolist() == [False, True, False]


def test_directions_of_harmonics_are_the_same_for_either_sign_of_an_axis():
    for dim, turns in ((2, [[-1, -1]]), (3, [[-1, -1, 1], [-1, 1, -1], [1, -1, -1]])):
        for degree, guard in ((3, 20), (4, 21), (5, 0)):
            directions = ECTHarmonics.initial_directions(dim, degree, guard)
            for turn in turns:
                assert torch.cdist(directions * torch.tensor(turn), directions).amin(dim=1).max() < 1e-6


def test_meshes_without_principal_axes_need_more_directions():
    """All second moments are equal, so the axes are arbitrary."""
    shapes = surfaces().to(dtype=torch.float64)
    for _ in range(50):
        squares, axes = torch.linalg.eigh(second_moments(shapes))
        root = axes @ torch.diag_embed(squares.rsqrt()) @ axes.mT
        shapes = shapes.with_points((shapes.points[:, None] @ root[shapes.batch])[:, 0]).normalized("unit_ball")
    shapes = shapes.to(dtype=torch.float32)

    def change(guard):
        directions = ECTHarmonics.initial_directions(3, 4, guard)
        layer = es.ECTLayer(
            3, num_thresholds=16, scale=8.0, directions=directions, learn_directions=False, normalize="unit_ball"
        )
        model = trained(ECTHarmonics(layer, 2, degree=4), shapes)
        rotation = rotations.random(1, 3, torch.Generator().manual_seed(0))[0].float()
        with torch.no_grad():
            before, after = model(shapes), model(shapes.with_points(shapes.points @ rotation.T))
        return float((after - before).norm() / before.norm())

    fine, coarse = change(60), change(10)
    assert 1e-5 < fine < 5e-3
    assert fine < 0.3 * coarse  # kinks of higher degrees


def test_too_few_directions_and_a_hard_scale_are_found(generator):
    layer = es.ECTLayer(3, num_thresholds=24, scale=100.0, directions=quadrature(12).directions, learn_directions=False)
    made = trained(ECTHarmonics(layer, 2, degree=6), shapes := clouds())
    with pytest.raises(AssertionError, match="depends on the rotation"):
        assert_rotation_invariant(made, shapes, generator=generator)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_blocks_of_harmonics_are_equivariant(dim, generator):
    """Rotating the coefficients before or after gives the same: exactly, since nothing is sampled in between."""
    nodes = quadrature(24, dim, dtype=torch.float64).directions
    rotate = coefficients(harmonics(nodes @ rotations.random(1, dim, generator)[0], 4), nodes, 4)
    values = torch.randn(len(rotate), 5, 8, 4, generator=generator, dtype=torch.float64)

    def rotated(tensor):
        return torch.einsum("mn,nbhc->mbhc", rotate, tensor)

    for block in (DegreeConvolution(4, 6, 4, dim), DegreeNorm(4, 4, dim), Product(4, dim)):
        torch.testing.assert_close(block.double()(rotated(values)), rotated(block(values)), rtol=1e-6, atol=1e-6)


def test_degree_norm_gives_every_degree_power_one(generator):
    norm = DegreeNorm(3, 2, 3)
    values = norm(5 + 2 * torch.randn(9, 40, 8, 3, generator=generator))
    assert values[0].mean(dim=(0, 1)).abs().max() < 1e-5
    squares = values.square().mean(dim=(1, 2))
    torch.testing.assert_close(squares[1:4].sum(dim=0), torch.ones(3), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(squares[4:].sum(dim=0), torch.ones(3), rtol=1e-4, atol=1e-4)


def test_learned_or_other_directions_are_refused():
    with pytest.raises(ValueError, match="learn_directions=False"):
        ECTHarmonics(es.ECTLayer(3, directions=quadrature(12).directions), 2)
    with pytest.raises(ValueError, match="directions must be those of a quadrature"):
        ECTHarmonics(es.ECTLayer(3, 64, learn_directions=False), 2)
    with pytest.raises(ValueError, match="degree must be at most 32, got 100000"):
        ModelConfig("harmonics", degree=100_000).build(3, 2)
    with pytest.raises(ValueError, match="num_directions must not be given for harmonics"):
        ModelConfig("harmonics", num_directions=64).build(3, 2)
    with pytest.raises(ValueError, match="dim must be 2 or 3"):
        ModelConfig("harmonics").build(4, 2)


@pytest.mark.parametrize("dim", [2, 3])
def test_frames_make_any_model_invariant(dim, generator):
    torch.manual_seed(0)
    model = ECTMLP(es.ECTLayer(dim, normalize="unit_ball"), 3).eval()
    shapes = clouds(dim=dim)
    assert_rotation_invariant(FrameAveraging(model).eval(), shapes, tolerance=1e-3, generator=generator)
    with pytest.raises(AssertionError, match="depends on the rotation"):
        assert_rotation_invariant(model, shapes, generator=generator)


def test_frames_of_an_axis_aligned_cloud_are_its_mirror_images():
    """A cloud that is spread along the third axis most, then along the second: its frames flip two axes each."""
    points = torch.tensor([[[0.1, 0, 0], [-0.1, 0, 0], [0, 0.5, 0], [0, -0.5, 0], [0, 0, 0.9], [0, 0.1, -0.9]]])
    seen = []

    class Recorder(torch.nn.Module):
        def forward(self, complex):
            seen.append(complex.points)
            return complex.points.abs().sum(dim=1).view(1, -1)

    FrameAveraging(Recorder()).eval()(points)
    assert len(seen) == 4
    for signs in ([1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]):
        assert any(torch.allclose(found, points[0] * torch.tensor(signs), atol=0.1) for found in seen)
    assert all(torch.linalg.det(found[[0, 2, 4]]) * torch.linalg.det(points[0, [0, 2, 4]]) > 0 for found in seen)


def test_a_random_frame_in_training_is_one_of_all():
    model = FrameAveraging(es.ECTLayer(3, normalize="unit_ball"))
    shapes = clouds(1)
    with torch.no_grad():
        drawn = {round(float(model(shapes)[0, 0].sum()), 3) for _ in range(40)}
        assert len(drawn) == 4
        assert abs(sum(drawn) / 4 - float(model.eval()(shapes)[0, 0].sum())) < 1e-2


def test_rotated_directions_are_rotated_shapes():
    layer = es.ECTLayer(3, rotate_directions=True)
    shapes = clouds(5)
    torch.manual_seed(7)
    found = layer(shapes)
    torch.manual_seed(7)
    matrices = rotations.random(5, 3).float()
    torch.testing.assert_close(found, es.ECTLayer(3)(shapes @ matrices.transpose(1, 2)), rtol=1e-4, atol=1e-4)
    assert torch.equal(layer.eval()(shapes), es.ECTLayer(3)(shapes))
    assert "rotate_directions=True" in repr(layer)


@pytest.mark.parametrize("make", [lambda: es.ECTLayer(3, rotate_directions=True), lambda: FrameAveraging(es.ECTLayer(3))])
def test_autocast_does_not_round_rotations(make):
    model, shapes, found = make(), clouds(5), []
    for enabled in (False, True):
        torch.manual_seed(7)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            found.append(model(shapes))
    assert torch.equal(*found)


def test_rotated_directions_resume_to_the_same_bits(tmp_path):
    shapes = es.as_complex(clouds(16))
    dataset = Dataset("clouds", shapes, torch.arange(16) % 2, ("a", "b"), {"train": torch.arange(16)})
    settings = TrainingConfig(epochs=3, batch_size=8, learning_rate=1e-2)

    def made():
        torch.manual_seed(0)
        return ECTCurves(es.ECTLayer(3, 8, 8, rotate_directions=True), 2, channels=(4,), hidden=())

    whole, resumed = made(), made()
    train(whole, dataset, settings, progress=False)

    def stop(record):
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(made(), dataset, settings, tmp_path, on_epoch=stop, progress=False)
    train(resumed, dataset, settings, tmp_path, progress=False)
    assert all(torch.equal(a, b) for a, b in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("config", [ModelConfig("harmonics"), ModelConfig("svm", spectrum=True)])
def test_models_on_quadratures_are_built_without_memory(config, dim):
    with torch.device("meta"):
        sizes = config.build(dim, 2).state_dict()
    assert {name: t.shape for name, t in sizes.items()} == {
        name: t.shape for name, t in config.build(dim, 2).state_dict().items()
    }
    assert all(t.is_meta for t in sizes.values())


def test_an_svm_on_rotated_directions_follows_from_the_seed():
    dataset = Dataset("clouds", es.as_complex(clouds(16)), torch.arange(16) % 2, ("a", "b"), {"train": torch.arange(16)})
    one, other = (ModelConfig("svm", rotate_directions=True).build(3, 2) for _ in range(2))
    for model in (one, other):
        train(model, dataset, TrainingConfig(seed=3), progress=False)
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_what_depends_on_rotation_is_said_with_numbers():
    shapes = es.collate([shape.complex for shape in known_shapes().values() if shape.complex.dim == 3])
    assert_rotation_invariant(lambda shape: shape.largest_norms()[:, None], shapes)
    assert_rotation_invariant(lambda shape: shape.largest_norms(), shapes)
    assert_rotation_invariant(lambda shape: torch.zeros(shape.num_complexes, 2), shapes)
    with pytest.raises(AssertionError, match=r"complex \d changes by [\d.]+, relative to.*more than the tolerance 0.001"):
        assert_rotation_invariant(es.ECTLayer(3), shapes)
    with pytest.raises(AssertionError, match=r"training mode: call eval\(\)"):
        assert_rotation_invariant(ECTMLP(es.ECTLayer(3), 2), shapes)
