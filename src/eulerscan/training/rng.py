"""Random numbers that follow from a few integers, and leave those of others alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def generator(*numbers: int) -> torch.Generator:
    """A generator of its own for these numbers; any other numbers give independent ones."""
    return torch.Generator().manual_seed(_seed(*numbers))


@contextmanager
def seeded(*numbers: int) -> Iterator[None]:
    """Inside, torch's own random numbers follow from ``numbers``; outside, nothing has happened."""
    with torch.random.fork_rng():
        torch.manual_seed(_seed(*numbers))
        yield


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
