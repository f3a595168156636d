"""Distributed training with ``torchrun``. In a single process, all of this does nothing."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor, nn


@contextmanager
def process_group() -> Iterator[None]:
    """Join the process group of ``torchrun``, if it started this process."""
    if not is_launched():
        yield
        return
    # Its functions take the group that exists when the module is first imported as a default argument. If that were ours, its
    # threads would outlive the group and occasionally abort the process at exit.
    importlib.import_module("torch.distributed.nn")
    if torch.cuda.is_available():
        torch.cuda.set_device(device())  # otherwise every process would use memory of the first GPU
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def is_launched() -> bool:
    """Whether ``torchrun`` started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def device() -> torch.device:
    """The device of this process: its own GPU, if there are any."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else torch.device("cpu")


def rank() -> int:
    """Rank of this process."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """Number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_first() -> bool:
    """Whether this process has rank 0, which writes all files."""
    return rank() == 0


def shard(indices: Tensor) -> Tensor:
    """The indices of this process."""
    return indices[rank() :: world_size()]


def all_reduce(tensor: Tensor) -> Tensor:
    """The sum over all processes."""
    if dist.is_initialized():
        dist.all_reduce(tensor)
    return tensor


def barrier() -> None:
    """Wait for all processes."""
    if dist.is_initialized():
        dist.barrier()


def broadcast_buffers(model: nn.Module) -> None:
    """Copy the buffers of the first process, such as running means, to all processes."""
    if dist.is_initialized():
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)


def parallel(model: nn.Module) -> nn.Module:
    """The model with gradients averaged over all processes."""
    if not dist.is_initialized():
        return model
    return cast(nn.Module, nn.parallel.DistributedDataParallel(model))
