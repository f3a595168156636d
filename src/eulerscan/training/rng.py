"""Random numbers that depend on a few integers only, and leave torch's global state unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def generator(*numbers: int) -> torch.Generator:
    """A generator seeded by ``numbers``. Different numbers give independent generators."""
    return torch.Generator().manual_seed(_seed(*numbers))


@contextmanager
def seeded(*numbers: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's global generators by ``numbers`` inside the block, and restore those of CPU and device afterwards."""
    gpus = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(gpus):  # of one GPU: by default it is all of them
        torch.manual_seed(_seed(*numbers))
        yield


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
