"""Lanes that look up different rows: each of eight directions has a polynomial of its own, where its height falls.

The coefficients of one polynomial lie side by side, eight of them in float32, sixteen in float64. So eight rows are
loaded and turned: the first coefficients of all lanes then move together, and so do the second.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .lanes import WIDTH, Lanes, multiply_add

TERMS = {types.float32: WIDTH, types.float64: 2 * WIDTH}


@intrinsic
def whole(typing: Any, value: Any) -> Any:
    """The lanes rounded towards zero, as integers of 32 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fptosi(arguments[0], ir.VectorType(ir.IntType(32), WIDTH))

    return Lanes(types.int32)(value), generate


@intrinsic
def real(typing: Any, value: Any) -> Any:
    """Lanes of integers, as float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sitofp(arguments[0], ir.VectorType(ir.DoubleType(), WIDTH))

    return Lanes(types.float64)(value), generate


@intrinsic
def deposit(typing: Any, matrix: Any, cells: Any, i: Any, value: Any, x: Any) -> Any:
    """Add value, value x, value x^2, ... to the row of each lane: ``matrix[8 * cells[i, lane] + lane]``.

    The matrix is in the dtype of the values, or in float64.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, power = arguments[3:]
        terms = [value, builder.fmul(value, power)]
        while len(terms) < TERMS[x.dtype]:
            power = builder.fmul(power, power)
            terms += [builder.fmul(term, power) for term in terms]
        for start in range(0, len(terms), WIDTH):
            pointers = _rows(context, builder, signature, arguments, start)
            for pointer, row in zip(pointers, _turned(builder, terms[start : start + WIDTH]), strict=True):
                alignment = context.get_abi_sizeof(pointer.type.pointee.element)
                wide = row if matrix.dtype == x.dtype else builder.fpext(row, pointer.type.pointee)
                builder.store(builder.fadd(builder.load(pointer, align=alignment), wide), pointer, align=alignment)
        return context.get_dummy_value()

    return types.void(matrix, cells, types.intp, value, x), generate


@intrinsic
def evaluate(typing: Any, matrix: Any, cells: Any, i: Any, x: Any) -> Any:
    """In each lane the polynomial in x whose coefficients are its row: ``matrix[8 * cells[i, lane] + lane]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, coefficients = arguments[-1], []
        alignment = context.get_abi_sizeof(place.type.element)
        for start in range(0, TERMS[x.dtype], WIDTH):
            pointers = _rows(context, builder, signature, arguments, start)
            coefficients += _turned(builder, [builder.load(pointer, align=alignment) for pointer in pointers])
        result = coefficients.pop()
        while coefficients:
            result = multiply_add(builder, result, place, coefficients.pop())
        return result

    return x(matrix, cells, types.intp, x), generate


@intrinsic
def turn(typing: Any, target: Any, row: Any, column: Any, source: Any, source_row: Any, source_column: Any) -> Any:
    """``target[row + i, column + k] = source[source_row + k, source_column + i]`` for all i and k below eight.

    The source is in float64; the target may be in float32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def pointers(kind: Any, array: Any, row: Any, column: Any) -> list[Any]:
            matrix = context.make_array(kind)(context, builder, array)
            width = builder.extract_value(matrix.shape, 1)
            vector = ir.VectorType(context.get_value_type(kind.dtype), WIDTH).as_pointer()
            entries = [builder.add(builder.mul(builder.add(row, row.type(i)), width), column) for i in range(WIDTH)]
            return [builder.bitcast(builder.gep(matrix.data, [entry]), vector) for entry in entries]

        rows = [builder.load(pointer, align=8) for pointer in pointers(source, *arguments[3:])]
        for pointer, lanes in zip(pointers(target, *arguments[:3]), _turned(builder, rows), strict=True):
            rounded = lanes if target.dtype is types.float64 else builder.fptrunc(lanes, pointer.type.pointee)
            builder.store(rounded, pointer, align=context.get_abi_sizeof(pointer.type.pointee.element))
        return context.get_dummy_value()

    return types.void(target, types.intp, types.intp, source, types.intp, types.intp), generate


def _rows(context: Any, builder: Any, signature: Any, arguments: Any, start: int) -> list[Any]:
    """Pointers to eight numbers of the row of each lane, from column ``start`` on."""
    matrix, cells = (context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 1))
    i, terms = arguments[2], TERMS[signature.args[-1].dtype]
    vector = ir.VectorType(context.get_value_type(signature.args[0].dtype), WIDTH).as_pointer()
    pointers = []
    for lane in range(WIDTH):
        cell = builder.load(builder.gep(cells.data, [builder.add(builder.mul(i, i.type(WIDTH)), i.type(lane))]))
        entry = builder.mul(builder.zext(cell, i.type), i.type(WIDTH * terms))
        pointers.append(builder.bitcast(builder.gep(matrix.data, [builder.add(entry, i.type(terms * lane + start))]), vector))
    return pointers


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """The transpose of eight vectors: entries, then blocks of two and of four, change places across the diagonal."""
    size = 1
    while size < WIDTH:
        low = [i + (WIDTH - size if i & size else 0) for i in range(WIDTH)]
        high = [i + (WIDTH if i & size else size) for i in range(WIDTH)]
        turned = list(rows)
        for i in range(WIDTH):
            if not i & size:
                turned[i], turned[i + size] = (
                    builder.shuffle_vector(rows[i], rows[i + size], ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), pattern))
                    for pattern in (low, high)
                )
        rows, size = turned, 2 * size
    return rows
