"""Several processes that train one model together, started by ``torchrun``; alone, all of this does nothing."""

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
    """Join the processes that ``torchrun`` started, if it did."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    # Its functions have the group that is there when they are loaded as a default. Were that this one, its threads would
    # outlive it, and now and then abort a process that ends.
    importlib.import_module("torch.distributed.nn")
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def device() -> torch.device:
    """Where this process computes: on its own GPU if there are any."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else torch.device("cpu")


def rank() -> int:
    """The number of this process."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_first() -> bool:
    """Whether this is the process that writes."""
    return rank() == 0


def share(indices: Tensor) -> Tensor:
    """What this process does of the work that all of them know."""
    return indices[rank() :: world_size()]


def add_up(tensor: Tensor) -> Tensor:
    """The sum of what all processes have."""
    if dist.is_initialized():
        dist.all_reduce(tensor)
    return tensor


def wait() -> None:
    """Until all processes are here."""
    if dist.is_initialized():
        dist.barrier()


def agree(model: nn.Module) -> None:
    """What a model remembers beside its parameters, as running means are, becomes that of the first process everywhere."""
    if dist.is_initialized():
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)


def together(model: nn.Module) -> nn.Module:
    """The model with gradients that are the mean over all processes."""
    if not dist.is_initialized():
        return model
    return cast(nn.Module, nn.parallel.DistributedDataParallel(model))
