"""No kernel reads scratch memory that it has not written.

The scratch comes from malloc. In a process where glibc fills fresh memory with 0x7F, which is a huge number in any dtype,
the results have the same bits.
"""

import math
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
import torch
from numba import njit

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels import operation
from eulerscan.kernels.convolution import pooled_convolution

POISON = "glibc.malloc.perturb=128:glibc.malloc.tcache_count=0"  # fills with 128 ^ 255; recycled chunks too


def shapes():
    generator = torch.Generator().manual_seed(0)
    cloud = es.Complex(torch.rand(3000, 3, generator=generator, dtype=torch.float64) - 0.5)
    tetrahedron = es.Complex(torch.eye(4, dtype=torch.float64)[:, :3], [torch.tensor([[0], [1], [2], [3]])]).closure()
    empty = es.Complex(torch.zeros(0, 3, dtype=torch.float64))
    return {
        "small": es.collate([tetrahedron, empty, testing.sphere(1).complex]),
        "large": es.collate([testing.sphere(4).complex, cloud, empty]),  # on several threads; the cloud by moments
    }


def values_and_gradients():
    """Of every path through the kernels."""
    found = {}
    for name, shape in shapes().items():
        generator = torch.Generator().manual_seed(1)
        weights = torch.rand(sum(shape.counts), generator=generator, dtype=torch.float64)
        directions = torch.randn(19, 3, generator=generator, dtype=torch.float64)
        for dtype in (torch.float32, torch.float64):
            for num_directions, num_thresholds, scale in ((1, 11, 8.0), (19, 16, math.inf), (9, 700, 5000.0), (19, 13, 8.0)):
                for weighted in (False, True):
                    thresholds = es.thresholds(num_thresholds)
                    inputs = [shape.points, directions[:num_directions], thresholds, torch.tensor(scale), weights]
                    inputs = [tensor.to(dtype).requires_grad_() for tensor in inputs][: 4 + weighted]
                    layout = (shape.packed.simplices, shape.offsets, shape.rows)
                    result = operation.ect(*inputs, *[None] * (not weighted), *layout)
                    gradient = torch.linspace(-1, 1.3, result.numel(), dtype=dtype).view_as(result)
                    key = f"{name}, {dtype}, {num_directions}, {num_thresholds}, {scale}, {weighted}"
                    gradients = torch.autograd.grad(result, inputs, gradient, materialize_grads=True)
                    found[key] = torch.cat([tensor.detach().reshape(-1) for tensor in (result, *gradients)])
    images, weight, bias = (
        torch.rand(size, generator=generator).requires_grad_() for size in ((11, 2, 9, 12), (3, 2, 3, 3), (3,))
    )
    result = pooled_convolution(images, weight, bias, relu=True)
    gradients = torch.autograd.grad(result.square().sum(), (images, weight, bias))
    found["convolution"] = torch.cat([tensor.detach().reshape(-1) for tensor in (result, *gradients)])
    return found


@njit
def fresh_memory():
    return np.empty(4096, np.uint8)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="fills fresh memory by an option of glibc")
def test_poisoned_scratch_changes_no_bit(tmp_path):
    file = tmp_path / "found.pt"
    environment = {**os.environ, "GLIBC_TUNABLES": POISON}
    poisoned = subprocess.run([sys.executable, __file__, file], capture_output=True, text=True, timeout=600, env=environment)
    assert poisoned.returncode == 0, poisoned.stderr
    expected, found = values_and_gradients(), torch.load(file)
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        assert value.isfinite().all(), key
        assert torch.equal(found[key], value), key


if __name__ == "__main__":
    assert (fresh_memory() == 0x7F).all(), "memory is not poisoned"
    torch.save(values_and_gradients(), sys.argv[1])
