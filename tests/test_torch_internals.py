"""Each private name of torch does what our function says, in the installed version."""

import ctypes

import pytest
import torch
from torch.autograd import forward_ad, functional
from torch.fx.experimental.proxy_tensor import make_fx

from eulerscan import _torch_internals as internals

ONES = torch.ones(3)


def seen_by(predicate, transform, *inputs):
    """What ``predicate`` says about a tensor inside ``transform``."""
    answers = []

    def function(tensor):
        answers.append(predicate(tensor))
        return tensor.sum()

    transform(function)(*inputs)
    return answers[0]


def jvp(function):
    return lambda x: torch.func.jvp(function, (x,), (x,))


@pytest.mark.parametrize("transform", [torch.vmap, lambda f: torch.vmap(torch.func.grad(f))], ids=["vmap", "vmap of grad"])
def test_vmap_hides_the_values_of_a_tensor(transform):
    assert seen_by(internals.is_vmapped, transform, torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="vmap"):
        transform(lambda tensor: torch.tensor(tensor.sum().item()))(torch.ones(2, 3))


def test_vmap_of_gradients_hides_their_values():
    """``is_grads_batched`` and ``vectorize`` use an older vmap of torch."""
    answers = []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor):
            return tensor.clone()

        @staticmethod
        def backward(ctx, gradient):
            answers.append(internals.is_vmapped(gradient))
            return gradient

    points = torch.ones(3, requires_grad=True)
    torch.autograd.grad(Watched.apply(points), points, torch.eye(3), is_grads_batched=True)
    functional.jacobian(Watched.apply, ONES, vectorize=True)
    functional.jacobian(Watched.apply, ONES)
    assert answers == [True, True, False, False, False]


@pytest.mark.parametrize("transform", [lambda f: f, torch.func.grad, jvp], ids=["plain", "grad", "jvp"])
def test_without_vmap_values_can_be_read(transform):
    assert not seen_by(internals.is_vmapped, transform, ONES)


@pytest.mark.parametrize("transform", [torch.func.grad, torch.vmap, jvp], ids=["grad", "vmap", "jvp"])
def test_torch_func_wraps_tensors_and_is_active(transform):
    assert seen_by(internals.is_wrapped, transform, ONES)
    assert seen_by(lambda tensor: internals.is_func_active(), transform, ONES)
    assert not seen_by(lambda tensor: internals.is_wrapped(ONES), transform, ONES)
    assert not internals.is_wrapped(ONES)
    assert not internals.is_func_active()


def test_forward_mode_is_active_in_a_dual_level_only():
    assert not internals.is_forward_mode()
    with forward_ad.dual_level():
        assert internals.is_forward_mode()
        assert not internals.is_func_active()
    assert not internals.is_forward_mode()
    assert seen_by(lambda tensor: internals.is_forward_mode(), jvp, ONES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "record",
    [lambda f: torch.jit.trace(f, (ONES,), check_trace=False), lambda f: make_fx(f)(ONES)],
    ids=["jit.trace", "make_fx"],
)
def test_recorded_programs_are_noticed(record):
    answers = []

    def function(tensor):
        answers.append(internals.is_recording())
        return tensor.sum()

    record(function)
    assert answers[0]
    assert not internals.is_recording()


def test_a_function_applied_directly_is_differentiated():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor, factor):
            ctx.factor = factor
            return 2 * factor * tensor

        @staticmethod
        def backward(ctx, gradient):
            return 2 * ctx.factor * gradient, None

    points = torch.ones(3, requires_grad=True)
    for apply in (Double.apply, internals.apply_directly(Double)):
        result = apply(points, 5.0)
        assert result.tolist() == [10.0] * 3
        assert torch.autograd.grad(result.sum(), points)[0].tolist() == [10.0] * 3
    assert internals.apply_directly(Double) is not Double.apply


def test_the_library_of_torch_can_be_loaded():
    assert ctypes.CDLL(internals.library_path())


def test_no_other_file_uses_private_names_of_torch():
    from pathlib import Path

    private = ("torch._", "forward_ad._")
    folder = Path(internals.__file__).parent
    for file in folder.rglob("*.py"):
        text = file.read_text(encoding="utf-8").replace("torch.__version__", "")
        assert file.name == "_torch_internals.py" or not any(name in text for name in private), file
