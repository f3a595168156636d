"""Forward mode and the transforms of torch.func: what they give must be what they give for the reference."""

import numpy as np
import pytest
import torch
from drawing import random_complex
from torch import func
from torch.autograd import forward_ad, functional

import eulerscan as es
from eulerscan.kernels import reference

SHAPE = random_complex(np.random.default_rng(3), num_points=9, top=2, dtype=torch.float64)
THRESHOLDS = torch.linspace(-2, 2, 7, dtype=torch.float64)
POINTS, DIRECTIONS, OTHER_POINTS, OTHER_DIRECTIONS = (
    torch.from_numpy(np.random.default_rng(seed).normal(size=(count, SHAPE.dim)))
    for seed, count in enumerate((len(SHAPE.points), 5, len(SHAPE.points), 5))
)


def ours(points, directions, scale=3.0):
    return es.ect(SHAPE.with_points(points), directions, THRESHOLDS, scale=scale)


def dense(points, directions, scale=3.0):
    layout = (SHAPE.packed_simplices, SHAPE.offsets, SHAPE.rows)
    return reference.ect(points, directions, THRESHOLDS, torch.as_tensor(scale, dtype=torch.float64), None, *layout)


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
        batched_gradients,
    ],
)
def test_rules_of_torch_hold(use):
    torch.testing.assert_close(use(ours), use(dense))


def test_the_exact_transform_does_not_move():
    value, tangent = func.jvp(lambda points: ours(points, DIRECTIONS, np.inf), (POINTS,), (OTHER_POINTS,))
    torch.testing.assert_close(value, ours(POINTS, DIRECTIONS, np.inf))
    assert not tangent.any()


def test_what_is_wrong_is_said_there_too():
    with pytest.raises(ValueError, match="scale must be positive"):
        func.jvp(lambda scale: ours(POINTS, DIRECTIONS, scale), (torch.tensor(-1.0).double(),), (torch.ones(()).double(),))
