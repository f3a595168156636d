"""Sigmoids and their slopes, by the fast exponential and division of the hardware in float32."""

import os

import triton
import triton.language as tl
from triton.language.extra import libdevice

# The interpreter, which is chosen when triton is imported, has no libdevice.
FAST = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") != "1")


@triton.jit
def exponential(x):
    """In float32 one multiplication and one ``ex2.approx.ftz``, to 2 ulp: ``tl.exp`` keeps denormals, which takes four more."""
    if FAST and x.dtype == tl.float32:
        power = libdevice.fast_expf(x)
    else:
        power = tl.exp(x)
    return power


@triton.jit
def ratio(x, y):
    """``x / y`` to 2 ulp where ``y < 2 ** 126``."""
    if FAST and y.dtype == tl.float32:
        found = libdevice.fast_dividef(x, y)
    else:
        found = x / y
    return found


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)), for any x."""
    e = exponential(-x)  # may well be infinite
    return ratio(tl.full(e.shape, 1.0, e.dtype), 1.0 + e)


@triton.jit
def slope(x):
    """The derivative of the sigmoid, for any x."""
    e = exponential(-tl.abs(x))
    return ratio(e, (1.0 + e) * (1.0 + e))
