"""Eight numbers that move together: a vector type for numba.

numba vectorises the inner loop of a plain array program only by luck. The collapse (see ``collapse.py``) is all
comparisons and additions on the heights of one vertex in eight directions, so it says what it means
with the few operations below; LLVM turns them into the vector instructions that the processor has.
All of them are bounds-free: whoever calls :func:`load` or :func:`store` has checked the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

WIDTH = 8


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


def _address(context: Any, builder: Any, signature: Any, array: Any, row: Any, column: Any) -> tuple[Any, int]:
    """Pointer to the eight values of a C-contiguous matrix from ``[row, column]`` on, and their alignment."""
    matrix = context.make_array(signature.args[0])(context, builder, array)
    element = context.get_value_type(signature.args[0].dtype)
    index = builder.add(builder.mul(row, builder.extract_value(matrix.shape, 1)), column)
    vector = ir.VectorType(element, WIDTH).as_pointer()
    return builder.bitcast(builder.gep(matrix.data, [index]), vector), context.get_abi_sizeof(element)


@intrinsic
def load(typing: Any, array: Any, row: Any, column: Any) -> Any:
    """``array[row, column : column + 8]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, alignment = _address(context, builder, signature, *arguments)
        return builder.load(pointer, align=alignment)

    return Lanes(array.dtype)(array, types.intp, types.intp), generate


@intrinsic
def store(typing: Any, array: Any, row: Any, column: Any, value: Any) -> Any:
    """``array[row, column : column + 8] = value``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, alignment = _address(context, builder, signature, *arguments[:3])
        builder.store(arguments[3], pointer, align=alignment)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), generate


@intrinsic
def fill(typing: Any, value: Any) -> Any:
    """The same number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing = ir.Constant(ir.VectorType(arguments[0].type, WIDTH), ir.Undefined)
        first = builder.insert_element(nothing, arguments[0], ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(first, nothing, everywhere)

    return Lanes(value)(value), generate


def _lanewise(operation: Callable[..., Any], result: types.Type | None = None) -> Any:
    """An intrinsic of two vectors; the result is a vector like the first, or of the dtype ``result``."""

    @intrinsic
    def apply(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return operation(builder, *arguments)

        return (a if result is None else Lanes(result))(a, b), generate

    return apply


add = _lanewise(lambda builder, a, b: builder.fadd(a, b))
multiply = _lanewise(lambda builder, a, b: builder.fmul(a, b))
divide = _lanewise(lambda builder, a, b: builder.fdiv(a, b))
at_least = _lanewise(lambda builder, a, b: builder.fcmp_ordered(">=", a, b), types.boolean)
differs = _lanewise(lambda builder, a, b: builder.fcmp_unordered("!=", a, b), types.boolean)
larger = _lanewise(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
smaller = _lanewise(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))
either = _lanewise(lambda builder, a, b: builder.or_(a, b))
but_not = _lanewise(lambda builder, a, b: builder.and_(a, builder.not_(b)))


@intrinsic
def choose(typing: Any, mask: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes where ``mask`` holds, ``b`` in the others."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return a(mask, a, b), generate


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    bits = 32 if isinstance(a.type.element, ir.FloatType) else 64
    kind = ir.FunctionType(a.type, [a.type] * 3)
    return builder.call(builder.module.declare_intrinsic(f"llvm.fmuladd.v{WIDTH}f{bits}", fnty=kind), (a, b, c))


@intrinsic
def fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, in one instruction where the processor has one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return multiply_add(builder, *arguments)

    return a(a, b, c), generate


@intrinsic
def any_lane(typing: Any, mask: Any) -> Any:
    """Whether ``mask`` holds in at least one lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(mask), generate


@intrinsic
def marked(typing: Any, mask: Any) -> Any:
    """``mask`` as an integer, with the bit of every lane where it holds; to go through those lanes with :func:`lowest`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.bitcast(arguments[0], ir.IntType(WIDTH)), ir.IntType(64))

    return types.int64(mask), generate


@intrinsic
def lowest(typing: Any, bits: Any) -> Any:
    """The number of the lowest bit that is set; there must be one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@intrinsic
def cast(typing: Any, value: Any, like: Any) -> Any:
    """The lanes of ``value`` rounded or widened to the dtype of the array ``like``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = ir.VectorType(context.get_value_type(like.dtype), WIDTH)
        if value.dtype.bitwidth == like.dtype.bitwidth:
            return arguments[0]
        convert = builder.fptrunc if value.dtype.bitwidth > like.dtype.bitwidth else builder.fpext
        return convert(arguments[0], target)

    return Lanes(like.dtype)(value, like), generate


@intrinsic
def total(typing: Any, value: Any) -> Any:
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
