"""Devices: which of them have float64, and the way to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

WITHOUT_FLOAT64 = {"mps"}


def has_float64(device: torch.device) -> bool:
    """Whether tensors on the device may be float64."""
    return device.type not in WITHOUT_FLOAT64


def double(tensor: Tensor) -> Tensor:
    """The tensor in float64; on the CPU if its device has none."""
    return tensor.double() if has_float64(tensor.device) else tensor.cpu().double()


def as_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The values as an array, without gradients. NumPy has no bfloat16, which becomes float32."""
    tensor = tensor.detach().cpu()
    array: np.ndarray[Any, Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return array
