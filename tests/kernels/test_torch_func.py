"""Forward mode and torch.func give the same for the transform as for the reference."""

import numpy as np
import pytest
import torch
from drawing import random_complex
from torch import func
from torch.autograd import forward_ad, functional
from torch.fx.experimental.proxy_tensor import make_fx

import eulerscan as es
from eulerscan.kernels import reference
from eulerscan.nn.models import ECTMLP

SHAPE = random_complex(np.random.default_rng(3), num_points=9, top=2, dtype=torch.float64)
THRESHOLDS = torch.linspace(-2, 2, 7, dtype=torch.float64)
POINTS, DIRECTIONS, OTHER_POINTS, OTHER_DIRECTIONS = (
    torch.from_numpy(np.random.default_rng(seed).normal(size=(count, SHAPE.dim)))
    for seed, count in enumerate((len(SHAPE.points), 5, len(SHAPE.points), 5))
)


def ours(points, directions, scale=3.0, thresholds=THRESHOLDS, weights=None):
    shape = SHAPE.with_points(points)
    if weights is not None:
        shape = es.Complex(points, SHAPE.simplices, weights=weights.split(SHAPE.counts))
    return es.ect(shape, directions, thresholds, scale=scale)


def dense(points, directions, scale=3.0, thresholds=THRESHOLDS, weights=None):
    layout = (SHAPE.packed.simplices, SHAPE.offsets, SHAPE.rows)
    scale = scale if isinstance(scale, torch.Tensor) else torch.tensor(scale, dtype=torch.float64)
    return reference.ect(points, directions, thresholds, scale, weights, *layout)


def with_grid(transform):
    """As a function of thresholds and weights."""
    return lambda thresholds, weights: transform(POINTS, DIRECTIONS, 3.0, thresholds, weights)


def dual_gradient(transform):
    directions = DIRECTIONS.clone().requires_grad_()
    result = transform(POINTS, directions)
    with forward_ad.dual_level():
        gradient = forward_ad.make_dual(torch.ones_like(result), torch.full_like(result, 2.0))
        return tuple(forward_ad.unpack_dual(torch.autograd.grad(result, directions, gradient)[0]))


def energy(transform):
    return lambda points: transform(points, DIRECTIONS).square().sum()


def dual(transform):
    with forward_ad.dual_level():
        points = forward_ad.make_dual(POINTS, OTHER_POINTS)
        return tuple(forward_ad.unpack_dual(transform(points, DIRECTIONS)))


def batched_gradients(transform):
    directions = DIRECTIONS.clone().requires_grad_()
    result = transform(POINTS, directions)
    basis = torch.eye(result.numel(), dtype=result.dtype).view(-1, *result.shape)
    (old,) = torch.autograd.grad(result, directions, basis, is_grads_batched=True, retain_graph=True)
    new = torch.vmap(lambda gradient: torch.autograd.grad(result, directions, gradient, retain_graph=True)[0])(basis)
    return old, new


ONES = torch.ones(sum(SHAPE.counts), dtype=torch.float64)  # sums of them vanish, their derivatives do not
SLOPES = torch.linspace(1, 2, len(ONES), dtype=torch.float64)
BOTH = (torch.stack([POINTS, OTHER_POINTS]), torch.stack([DIRECTIONS, OTHER_DIRECTIONS]))


@pytest.mark.parametrize(
    "use",
    [
        dual,
        lambda f: func.jvp(f, (POINTS, DIRECTIONS), (OTHER_POINTS, OTHER_DIRECTIONS)),
        lambda f: func.jvp(
            lambda scale: f(POINTS, DIRECTIONS, scale), (torch.tensor(3.0).double(),), (torch.ones(()).double(),)
        ),
        lambda f: func.grad(energy(f))(POINTS),
        lambda f: func.jacrev(f, argnums=(0, 1))(POINTS, DIRECTIONS),
        lambda f: func.jacfwd(f, argnums=(0, 1))(POINTS, DIRECTIONS),
        lambda f: func.hessian(energy(f))(POINTS),
        lambda f: torch.vmap(f)(*BOTH),
        lambda f: torch.vmap(f, in_dims=(None, 0))(POINTS, BOTH[1]),
        lambda f: torch.vmap(func.grad(energy(f)))(BOTH[0]),
        lambda f: functional.jacobian(lambda directions: f(POINTS, directions), DIRECTIONS, vectorize=True),
        lambda f: functional.jacobian(
            lambda directions: f(POINTS, directions), DIRECTIONS, vectorize=True, strategy="forward-mode"
        ),
        lambda f: func.jvp(with_grid(f), (THRESHOLDS, ONES), (THRESHOLDS.square(), SLOPES)),
        lambda f: func.jacfwd(with_grid(f), argnums=(0, 1))(THRESHOLDS, ONES),
        lambda f: func.grad(lambda w: func.grad(lambda p: f(p, DIRECTIONS, 3.0, THRESHOLDS, w).square().sum())(POINTS).sum())(
            ONES
        ),
        lambda f: torch.vmap(with_grid(f))(torch.stack([THRESHOLDS, 2 * THRESHOLDS]), torch.stack([ONES, SLOPES])),
        batched_gradients,
        dual_gradient,
    ],
)
def test_rules_of_torch_hold(use):
    torch.testing.assert_close(use(ours), use(dense))


def test_scales_may_be_many():
    scales = torch.tensor([1.0, 3.0], dtype=torch.float64)
    many = torch.vmap(lambda scale: ours(POINTS, DIRECTIONS, scale))(scales)
    torch.testing.assert_close(many, torch.stack([dense(POINTS, DIRECTIONS, scale) for scale in scales]))


def test_ensembles_and_gradients_of_each_sample():
    models, clouds = [ECTMLP(es.ECTLayer(2), 3).eval() for _ in range(2)], torch.rand(4, 5, 2)
    votes = torch.vmap(lambda *state: func.functional_call(models[0], state, (clouds,)))(*func.stack_module_state(models))
    torch.testing.assert_close(votes, torch.stack([model(clouds) for model in models]))

    def energy(parameters, cloud):
        return func.functional_call(models[0], parameters, (cloud,)).square().sum()

    parameters = dict(models[0].named_parameters())
    each = torch.vmap(func.grad(energy), in_dims=(None, 0))(parameters, clouds)
    for name, parameter in parameters.items():
        alone = [torch.autograd.grad(energy(parameters, cloud), parameter)[0] for cloud in clouds]
        torch.testing.assert_close(each[name], torch.stack(alone), rtol=1e-4, atol=1e-5)


def test_the_exact_transform_does_not_move():
    value, tangent = func.jvp(lambda points: ours(points, DIRECTIONS, np.inf), (POINTS,), (OTHER_POINTS,))
    torch.testing.assert_close(value, ours(POINTS, DIRECTIONS, np.inf))
    assert not tangent.any()


def test_what_is_wrong_is_said_there_too():
    with pytest.raises(ValueError, match="scale must be positive"):
        func.jvp(lambda scale: ours(POINTS, DIRECTIONS, scale), (torch.tensor(-1.0).double(),), (torch.ones(()).double(),))
    directions = DIRECTIONS.clone().requires_grad_()
    result = ours(POINTS, directions)
    ones = torch.ones_like(result)
    with pytest.raises(NotImplementedError, match="call the transform inside"):
        func.jvp(lambda gradient: torch.autograd.grad(result, directions, gradient)[0], (ones,), (ones,))


def test_recorded_programs_hold_the_operation():
    recorded = make_fx(lambda directions: ours(POINTS, directions))(DIRECTIONS)
    torch.testing.assert_close(recorded(OTHER_DIRECTIONS), ours(POINTS, OTHER_DIRECTIONS))


def test_a_compiled_program_leaves_transforms_of_torch_to_torch():
    compiled = torch.compile(func.grad(energy(ours)))
    torch.testing.assert_close(compiled(POINTS), func.grad(energy(dense))(POINTS))
    torch._dynamo.reset()
