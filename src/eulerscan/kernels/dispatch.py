"""The choice of a kernel: by the device of the tensors, or by the environment variable ``EULERSCAN_KERNEL``."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace

import torch

KERNELS = ("reference", "portable", "cpu", "triton")
VARIABLE = "EULERSCAN_KERNEL"
forced = SimpleNamespace(kernel=os.environ.get(VARIABLE) or None)  # read once, since every transform asks


def kernel_for(device: torch.device) -> str:
    """The name of the kernel for tensors on a device."""
    kernel: str | None = forced.kernel
    if kernel is None:
        if device.type == "cpu":
            return "cpu"
        if device.type != "cuda":
            return "portable"
        if not has_triton():
            _warn_of_portable()
            return "portable"
        return "triton"
    if kernel not in KERNELS:
        raise ValueError(f"{VARIABLE} must be one of {', '.join(KERNELS)}, got {kernel!r}.")
    if kernel not in kernels_for(device):
        hint = "" if has_triton() or kernel == "cpu" else " It needs the package triton, which is not installed."
        hint = hint or (" TRITON_INTERPRET=1 runs it on the CPU." if kernel == "triton" else "")
        raise ValueError(f"{VARIABLE}={kernel} does not support tensors on {device}.{hint}")
    return kernel


def kernels_for(device: torch.device) -> list[str]:
    """The kernels that support tensors on a device."""
    supported = ["reference", "portable"]
    if device.type == "cpu":
        supported.append("cpu")
    if has_triton() and (device.type == "cuda" or is_interpreted()):
        supported.append("triton")
    return supported


@cache
def has_triton() -> bool:
    """Whether triton is installed. It is not imported."""
    return importlib.util.find_spec("triton") is not None


def is_interpreted() -> bool:
    """Whether Triton's interpreter runs kernels on the CPU."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


@contextmanager
def use(kernel: str) -> Iterator[None]:
    """Force a kernel inside the block, for tests and comparisons."""
    before, forced.kernel = forced.kernel, kernel
    try:
        yield
    finally:
        forced.kernel = before


@cache
def _warn_of_portable() -> None:
    """Once."""
    warnings.warn(
        "Transforms on this GPU run in PyTorch operations, several times slower than in Triton kernels. Install triton.",
        stacklevel=2,
    )
