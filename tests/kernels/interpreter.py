"""The Triton kernels on the CPU by Triton's interpreter, in any order of programs, and with guards around every tensor."""

from __future__ import annotations

import itertools
import random
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from eulerscan.kernels import dispatch, operation

triton = pytest.importorskip("triton", reason="triton is not installed")

from triton.runtime import interpreter  # noqa: E402

from eulerscan.kernels.triton import problem  # noqa: E402

WIDE = problem.Tiles(vertices=64, directions=32, thresholds=64)  # fewer programs: the interpreter needs milliseconds for each
LONG = problem.Tiles(chunk=4096, vertices=4096, thresholds=4)
SMALL = problem.Tiles(chunk=4, vertices=2, directions=1, thresholds=4, simplices=64, weights=8)  # several programs everywhere
GUARD = 256  # entries before and behind every tensor
POISON = 1 << 28  # in integers; in floats it is NaN


def _execute(self, *args, run=interpreter.GridExecutor.__call__, patch_language=interpreter._patch_lang, **kwargs):
    """Faster than the interpreter alone, which patches triton.language anew for every function that a kernel calls.

    Infinities that NumPy warns of are as silent as on a GPU.
    """
    whole = SimpleNamespace(__globals__={"tl": triton.language, "core": triton.language.core})
    scope = patch_language(whole)
    interpreter._patch_lang = lambda function: SimpleNamespace(restore=lambda: None)
    try:
        with np.errstate(all="ignore"):
            run(self, *args, **kwargs)
    finally:
        scope.restore()
        interpreter._patch_lang = patch_language


interpreter.GridExecutor.__call__ = _execute


@contextmanager
def tiles(chosen):
    before, problem.TILES = problem.TILES, chosen
    try:
        yield
    finally:
        problem.TILES = before


def ect(*arguments, tiled=None):
    """``operation.ect`` by the Triton kernels."""
    with dispatch.use("triton"), tiles(tiled or (LONG if len(arguments[0]) > 1000 else WIDE)):
        return operation.ect(*arguments)


def on_gpu_tiles(*arguments):
    """With the tiles that a GPU takes."""
    return ect(*arguments, tiled=problem.Tiles())


def on_small_tiles(*arguments):
    return ect(*arguments, tiled=SMALL)


@contextmanager
def shuffled(seed):
    """Programs run in random order."""
    orders = random.Random(seed)
    plain = interpreter.InterpreterBuilder.set_grid_idx

    def call(self, *args, **kwargs):
        grid = self.grid(kwargs) if callable(self.grid) else self.grid
        grid = (*grid, 1, 1)[:3]
        programs = list(itertools.product(*(range(n) for n in grid)))
        orders.shuffle(programs)
        following = iter(programs)
        # The executor counts; another program takes its turn.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                interpreter.InterpreterBuilder, "set_grid_idx", lambda builder, x, y, z: plain(builder, *next(following))
            )
            execute(self, *args, **kwargs)
        assert next(following, None) is None

    execute = interpreter.GridExecutor.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter.GridExecutor, "__call__", call)
        yield


@contextmanager
def guarded():
    """Every tensor lies between poisoned guards: a read outside gives NaN, and a write is found. Yields the launches."""
    execute = interpreter.GridExecutor.__call__
    launches = []

    def call(self, *args, **kwargs):
        storages = {}

        def wrap(value):
            if not isinstance(value, torch.Tensor):
                return value
            storage = value.untyped_storage()
            if storage.data_ptr() not in storages:
                flat = torch.empty(0, dtype=value.dtype).set_(storage)
                poison = torch.full((GUARD,), float("nan") if value.is_floating_point() else POISON).to(value.dtype)
                storages[storage.data_ptr()] = (flat, torch.cat([poison, flat, poison]))
            return storages[storage.data_ptr()][1].as_strided(value.shape, value.stride(), GUARD + value.storage_offset())

        execute(self, *[wrap(a) for a in args], **{name: wrap(a) for name, a in kwargs.items()})
        for flat, padded in storages.values():
            for guard in (padded[:GUARD], padded[GUARD + len(flat) :]):
                assert bool((guard.isnan() if flat.is_floating_point() else guard == POISON).all()), self.fn
            flat.copy_(padded[GUARD : GUARD + len(flat)])
        launches.append(self.fn.__name__)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter.GridExecutor, "__call__", call)
        yield launches
