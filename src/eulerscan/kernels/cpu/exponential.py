"""The exponential of eight numbers at once.

The library of C has it for one number at a time, which takes longer than all else that a vertex of a small complex needs.
With n the nearest integer to x / log 2 and r the rest,

    exp(x) = 2^n exp(r),    |r| <= log(2) / 2,

where a short power series serves for exp(r), and 2^n is a sum of exponents.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .lanes import WIDTH, Lanes, multiply_add

LARGEST = 700.0  # of either sign; beyond, the result is that of the largest
TERMS = 14  # the next one is below the rounding of float64
MAGIC = 1.5 * 2.0**52  # what is added to it is rounded to an integer, which then stands in its last bits
# In two parts, so that n times the first is exact.
LOG_2 = (float.fromhex("0x1.62E42FEEp-1"), float.fromhex("0x1.A39EF35793C76p-33"))


@intrinsic
def exponential(typing: Any, x: Any) -> Any:
    """exp of eight float64. NaN gives that of the least."""
    if x != Lanes(types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x,) = arguments
        for sign, limit in ((">", -LARGEST), ("<", LARGEST)):
            bound = _fill(limit)
            x = builder.select(builder.fcmp_ordered(sign, x, bound), x, bound)
        shifted = builder.fadd(builder.fmul(x, _fill(1 / math.log(2))), _fill(MAGIC))
        n = builder.fsub(shifted, _fill(MAGIC))
        rest = x
        for part in LOG_2:
            rest = multiply_add(builder, n, _fill(-part), rest)
        result = _fill(1 / math.factorial(TERMS - 1))
        for k in reversed(range(TERMS - 1)):
            result = multiply_add(builder, result, rest, _fill(1 / math.factorial(k)))
        whole = ir.VectorType(ir.IntType(64), WIDTH)
        exponents = builder.shl(builder.bitcast(shifted, whole), ir.Constant(whole, [52] * WIDTH))
        return builder.bitcast(builder.add(builder.bitcast(result, whole), exponents), result.type)

    return x(x), generate


def _fill(value: float) -> Any:
    return ir.Constant(ir.VectorType(ir.DoubleType(), WIDTH), [value] * WIDTH)
