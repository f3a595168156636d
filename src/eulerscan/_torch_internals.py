"""Private names of torch, one plain function each. ``tests/test_torch_internals.py`` checks them for the installed version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def is_vmapped(tensor: Tensor) -> bool:
    """Whether ``vmap`` hides an axis of the tensor, so that its values cannot be read."""
    while is_wrapped(tensor):
        if torch._C._functorch.is_batchedtensor(tensor):
            return True
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return torch._C._functorch.is_legacy_batchedtensor(tensor)


def is_wrapped(tensor: Tensor) -> bool:
    """Whether a transform of ``torch.func`` tracks the tensor."""
    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def is_func_active() -> bool:
    """Whether a transform of ``torch.func`` (``grad``, ``jvp``, ``vmap``, ...) is running."""
    active: bool = torch._C._are_functorch_transforms_active()
    return active


def is_forward_mode() -> bool:
    """Whether forward-mode differentiation (``forward_ad.dual_level``) is running."""
    return forward_ad._current_level >= 0


def is_recording() -> bool:
    """Whether ``torch.jit.trace`` or a dispatch mode (``make_fx``, fake tensors) records operations."""
    return torch._C._get_tracing_state() is not None or torch._C._len_torch_dispatch_stack() > 0


def apply_directly(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """``function.apply`` without the preparations for ``torch.func``, which cost several microseconds per call."""
    base: Any = super(torch.autograd.Function, function)
    apply: Callable[..., Any] = base.apply
    return apply


def library_path() -> str:
    """The shared library of torch, through which its OpenMP runtime can be found."""
    path: str = torch._C.__file__
    return path
