"""Devices: which of them have float64."""

from __future__ import annotations

import torch
from torch import Tensor

WITHOUT_FLOAT64 = {"mps"}


def has_float64(device: torch.device) -> bool:
    """Whether tensors on the device may be float64."""
    return device.type not in WITHOUT_FLOAT64


def double(tensor: Tensor) -> Tensor:
    """The tensor in float64; on the CPU if its device has none."""
    return tensor.double() if has_float64(tensor.device) else tensor.cpu().double()
