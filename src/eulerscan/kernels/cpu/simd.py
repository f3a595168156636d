"""SIMD vectors of eight lanes for numba.

numba rarely vectorizes the inner loop over eight directions by itself. The kernels spell the vector operations out with the
intrinsics below, and LLVM maps them to the instructions of the processor. Nothing here checks bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

WIDTH = 8
POLYNOMIAL_TERMS = {types.float32: WIDTH, types.float64: 2 * WIDTH}

EXP_LIMIT = 700.0  # arguments of exp are clamped to [-EXP_LIMIT, EXP_LIMIT]
EXP_TERMS = 14  # the next term of the power series is below the rounding of float64
ROUND_TO_INTEGER = 1.5 * 2.0**52  # adding it rounds a float64 to an integer, stored in the lowest bits
LOG_2 = (float.fromhex("0x1.62E42FEEp-1"), float.fromhex("0x1.A39EF35793C76p-33"))  # two parts: n times the first is exact


class Lanes(types.Type):
    """The numba type of eight values of one dtype."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        element = ir.IntType(1) if lanes.dtype is types.boolean else manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(element, WIDTH))


# Memory


@intrinsic
def load(typing: Any, array: Any, row: Any, column: Any) -> Any:
    """``array[row, column : column + 8]`` of a C-contiguous matrix."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, alignment = _vector_at(context, builder, array, *arguments)
        return builder.load(pointer, align=alignment)

    return Lanes(array.dtype)(array, types.intp, types.intp), generate


@intrinsic
def store(typing: Any, array: Any, row: Any, column: Any, value: Any) -> Any:
    """``array[row, column : column + 8] = value``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, alignment = _vector_at(context, builder, array, *arguments[:3])
        builder.store(arguments[3], pointer, align=alignment)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), generate


@intrinsic
def prefetch(typing: Any, array: Any, row: Any, column: Any) -> Any:
    """Fetch the cache line of ``array[row, column]``, which is read soon, once. The row may be outside."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(_vector_at(context, builder, array, *arguments)[0], ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, *[ir.IntType(32)] * 3])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, *(ir.IntType(32)(n) for n in (0, 0, 1))])  # to read, no reuse, data
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


@intrinsic
def transpose(typing: Any, target: Any, row: Any, column: Any, source: Any, source_row: Any, source_column: Any) -> Any:
    """``target[row + i, column + k] = source[source_row + k, source_column + i]`` for all i and k below eight.

    The target may be float32 where the source is float64.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def vectors(kind: Any, array: Any, row: Any, column: Any) -> list[Any]:
            return [_vector_at(context, builder, kind, array, builder.add(row, row.type(i)), column)[0] for i in range(WIDTH)]

        alignment = context.get_abi_sizeof(context.get_value_type(source.dtype))
        rows = [builder.load(pointer, align=alignment) for pointer in vectors(source, *arguments[3:])]
        for pointer, lanes in zip(vectors(target, *arguments[:3]), _transposed(builder, rows), strict=True):
            rounded = lanes if target.dtype == source.dtype else builder.fptrunc(lanes, pointer.type.pointee)
            builder.store(rounded, pointer, align=context.get_abi_sizeof(pointer.type.pointee.element))
        return context.get_dummy_value()

    return types.void(target, types.intp, types.intp, source, types.intp, types.intp), generate


def _vector_at(context: Any, builder: Any, kind: Any, array: Any, row: Any, column: Any) -> tuple[Any, int]:
    """Pointer to the eight values of a C-contiguous matrix from ``[row, column]`` on, and their alignment."""
    matrix = context.make_array(kind)(context, builder, array)
    element = context.get_value_type(kind.dtype)
    index = builder.add(builder.mul(row, builder.extract_value(matrix.shape, 1)), column)
    vector = ir.VectorType(element, WIDTH).as_pointer()
    return builder.bitcast(builder.gep(matrix.data, [index]), vector), context.get_abi_sizeof(element)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Transpose eight vectors: swap single entries, then blocks of two and of four, across the diagonal."""
    size = 1
    while size < WIDTH:
        low = [i + (WIDTH - size if i & size else 0) for i in range(WIDTH)]
        high = [i + (WIDTH if i & size else size) for i in range(WIDTH)]
        swapped = list(rows)
        for i in range(WIDTH):
            if not i & size:
                swapped[i], swapped[i + size] = (
                    builder.shuffle_vector(rows[i], rows[i + size], ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), pattern))
                    for pattern in (low, high)
                )
        rows, size = swapped, 2 * size
    return rows


# Arithmetic, lane by lane


def _unary(operation: Callable[..., Any], result: types.Type) -> Any:
    """An intrinsic of one argument, with a result of this type."""

    @intrinsic
    def apply(typing: Any, a: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return operation(builder, *arguments)

        return result(a), generate

    return apply


def _ternary(operation: Callable[..., Any]) -> Any:
    """An intrinsic of three vectors. The result has the type of the last."""

    @intrinsic
    def apply(typing: Any, a: Any, b: Any, c: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return operation(builder, *arguments)

        return c(a, b, c), generate

    return apply


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    bits = 32 if isinstance(a.type.element, ir.FloatType) else 64
    kind = ir.FunctionType(a.type, [a.type] * 3)
    return builder.call(builder.module.declare_intrinsic(f"llvm.fmuladd.v{WIDTH}f{bits}", fnty=kind), (a, b, c))


def _bits(builder: Any, mask: Any) -> Any:
    return builder.bitcast(mask, ir.IntType(WIDTH))


def _binary(operation: Callable[..., Any], result: types.Type | None = None) -> Any:
    """An intrinsic of two vectors. The result has the type of the first, or the dtype ``result``."""

    @intrinsic
    def apply(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return operation(builder, *arguments)

        return (a if result is None else Lanes(result))(a, b), generate

    return apply


add = _binary(lambda builder, a, b: builder.fadd(a, b))
multiply = _binary(lambda builder, a, b: builder.fmul(a, b))
divide = _binary(lambda builder, a, b: builder.fdiv(a, b))
greater_equal = _binary(lambda builder, a, b: builder.fcmp_ordered(">=", a, b), types.boolean)  # False for NaN
not_equal = _binary(lambda builder, a, b: builder.fcmp_unordered("!=", a, b), types.boolean)  # True for NaN
maximum = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))  # b if either is NaN
minimum = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))  # b if either is NaN
logical_or = _binary(lambda builder, a, b: builder.or_(a, b))
and_not = _binary(lambda builder, a, b: builder.and_(a, builder.not_(b)))  # a and not b
select = _ternary(lambda builder, mask, a, b: builder.select(mask, a, b))  # a where mask is True, else b
fma = _ternary(_fma)  # a * b + c, fused where the processor can
to_int32 = _unary(lambda builder, a: builder.fptosi(a, ir.VectorType(ir.IntType(32), WIDTH)), Lanes(types.int32))  # toward zero
to_float64 = _unary(lambda builder, a: builder.sitofp(a, ir.VectorType(ir.DoubleType(), WIDTH)), Lanes(types.float64))
any_lane = _unary(lambda builder, mask: builder.icmp_unsigned("!=", _bits(builder, mask), ir.IntType(WIDTH)(0)), types.boolean)
# A mask as an integer with one bit per lane: iterate over its lanes by the position of the lowest set bit.
bitmask = _unary(lambda builder, mask: builder.zext(_bits(builder, mask), ir.IntType(64)), types.int64)
mask = _unary(  # of such an integer
    lambda builder, bits: builder.bitcast(builder.trunc(bits, ir.IntType(WIDTH)), ir.VectorType(ir.IntType(1), WIDTH)),
    Lanes(types.boolean),
)
count_trailing_zeros = _unary(lambda builder, bits: builder.cttz(bits, ir.IntType(1)(1)), types.int64)  # of no zero


@intrinsic
def broadcast(typing: Any, value: Any) -> Any:
    """The same number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        undefined = ir.Constant(ir.VectorType(arguments[0].type, WIDTH), ir.Undefined)
        first = builder.insert_element(undefined, arguments[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))

    return Lanes(value)(value), generate


@intrinsic
def exp(typing: Any, x: Any) -> Any:
    """exp of eight float64. NaN gives the result of ``-EXP_LIMIT``.

    With n the integer nearest to x / log 2 and r = x - n log 2, exp(x) = 2^n exp(r). A short power series gives exp(r), since
    -log(2) / 2 <= r <= log(2) / 2, and n is added to its exponent. The C library takes one number at a time, which would cost
    more than everything else a vertex of a small complex needs.
    """
    if x != Lanes(types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x,) = arguments
        for sign, limit in ((">", -EXP_LIMIT), ("<", EXP_LIMIT)):
            bound = _constant(limit)
            x = builder.select(builder.fcmp_ordered(sign, x, bound), x, bound)
        shifted = builder.fadd(builder.fmul(x, _constant(1 / math.log(2))), _constant(ROUND_TO_INTEGER))
        n = builder.fsub(shifted, _constant(ROUND_TO_INTEGER))
        remainder = x
        for part in LOG_2:
            remainder = _fma(builder, n, _constant(-part), remainder)
        result = _constant(1 / math.factorial(EXP_TERMS - 1))
        for k in reversed(range(EXP_TERMS - 1)):
            result = _fma(builder, result, remainder, _constant(1 / math.factorial(k)))
        integers = ir.VectorType(ir.IntType(64), WIDTH)
        exponents = builder.shl(builder.bitcast(shifted, integers), ir.Constant(integers, [52] * WIDTH))
        return builder.bitcast(builder.add(builder.bitcast(result, integers), exponents), result.type)

    return x(x), generate


def _constant(value: float) -> Any:
    return ir.Constant(ir.VectorType(ir.DoubleType(), WIDTH), [value] * WIDTH)


# Conversions


@intrinsic
def cast(typing: Any, value: Any, like: Any) -> Any:
    """``value`` in the dtype of the array ``like``, float32 or float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = ir.VectorType(context.get_value_type(like.dtype), WIDTH)
        if value.dtype.bitwidth == like.dtype.bitwidth:
            return arguments[0]
        convert = builder.fptrunc if value.dtype.bitwidth > like.dtype.bitwidth else builder.fpext
        return convert(arguments[0], target)

    return Lanes(like.dtype)(value, like), generate


# Reductions over the lanes


@intrinsic
def sum_lanes(typing: Any, value: Any) -> Any:
    """The sum of the lanes, in a fixed order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (lanes,), width = arguments, WIDTH
        while width > 1:
            width //= 2
            low, high = (
                builder.shuffle_vector(lanes, lanes, ir.Constant(ir.VectorType(ir.IntType(32), width), list(half)))
                for half in (range(width), range(width, 2 * width))
            )
            lanes = builder.fadd(low, high)
        return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))

    return value.dtype(value), generate


# Polynomials: one per lane, with its coefficients in the row ``matrix[8 * bins[i, lane] + lane]``. Eight rows are loaded and
# transposed, so that coefficients of the same power of all lanes share a vector.


@intrinsic
def add_powers(typing: Any, matrix: Any, bins: Any, i: Any, value: Any, x: Any) -> Any:
    """Add value, value x, value x^2, ... to the row of each lane. The matrix has the dtype of the values or float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, power = arguments[3:]
        terms = [value, builder.fmul(value, power)]
        while len(terms) < POLYNOMIAL_TERMS[x.dtype]:
            power = builder.fmul(power, power)
            terms += [builder.fmul(term, power) for term in terms]
        for start in range(0, len(terms), WIDTH):
            pointers = _polynomial_rows(context, builder, signature, arguments, start)
            for pointer, row in zip(pointers, _transposed(builder, terms[start : start + WIDTH]), strict=True):
                alignment = context.get_abi_sizeof(pointer.type.pointee.element)
                wide = row if matrix.dtype == x.dtype else builder.fpext(row, pointer.type.pointee)
                builder.store(builder.fadd(builder.load(pointer, align=alignment), wide), pointer, align=alignment)
        return context.get_dummy_value()

    return types.void(matrix, bins, types.intp, value, x), generate


@intrinsic
def evaluate_polynomials(typing: Any, matrix: Any, bins: Any, i: Any, x: Any) -> Any:
    """The polynomial of each lane at ``x``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x_lanes, coefficients = arguments[-1], []
        alignment = context.get_abi_sizeof(x_lanes.type.element)
        for start in range(0, POLYNOMIAL_TERMS[x.dtype], WIDTH):
            pointers = _polynomial_rows(context, builder, signature, arguments, start)
            coefficients += _transposed(builder, [builder.load(pointer, align=alignment) for pointer in pointers])
        result = coefficients.pop()
        while coefficients:
            result = _fma(builder, result, x_lanes, coefficients.pop())
        return result

    return x(matrix, bins, types.intp, x), generate


def _polynomial_rows(context: Any, builder: Any, signature: Any, arguments: Any, start: int) -> list[Any]:
    """Pointers to eight coefficients of each lane, from column ``start`` on."""
    matrix, bins = (context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 1))
    i, terms = arguments[2], POLYNOMIAL_TERMS[signature.args[-1].dtype]
    vector = ir.VectorType(context.get_value_type(signature.args[0].dtype), WIDTH).as_pointer()
    pointers = []
    for lane in range(WIDTH):
        bin = builder.load(builder.gep(bins.data, [builder.add(builder.mul(i, i.type(WIDTH)), i.type(lane))]))
        row = builder.mul(builder.zext(bin, i.type), i.type(WIDTH * terms))
        pointers.append(builder.bitcast(builder.gep(matrix.data, [builder.add(row, i.type(terms * lane + start))]), vector))
    return pointers
