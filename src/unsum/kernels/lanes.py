"""Rows of numbers held in vector registers, for kernels whose inner loop is over profiles.

Left to itself the compiler handles ten profiles one by one: it does not know how many there are. So
tables are padded to whole lanes, four numbers each, and kernels are compiled for a number of lanes.
They receive it as the length of a tuple (`lanes(rank)`), the first argument of `zero` and `load`;
each operation below becomes one instruction for each lane. Nothing checks that a table is that
wide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

WIDTH = 4
LANE = ir.VectorType(ir.DoubleType(), WIDTH)
FLAGS = ("reassoc", "contract")


def lanes(rank: int) -> tuple[int, ...]:
    """As many lanes as hold `rank` numbers. Above eight only some counts are used: every count is
    compiled for itself.
    """
    count, step = -(-rank // WIDTH), 1
    while count > 8 * step:
        step *= 2
    return (0,) * (-(-count // step) * step)


def padded(n: int, rank: int) -> np.ndarray:
    """A table of zeros with rows of whole lanes."""
    return np.zeros((n, WIDTH * len(lanes(rank))))


class Row(types.Type):
    """A row of numbers, in lanes."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"Row({count})")


@register_model(Row)
class RowModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Row) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(LANE, fe_type.count))


def _pack(builder: Any, parts: list[Any]) -> Any:
    row = ir.Constant(ir.ArrayType(LANE, len(parts)), ir.Undefined)
    for i, part in enumerate(parts):
        row = builder.insert_value(row, part, i)
    return row


def _unpack(builder: Any, row: Any) -> list[Any]:
    return [builder.extract_value(row, i) for i in range(row.type.count)]


def _pick(builder: Any, lane: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
    return builder.shuffle_vector(lane, ir.Constant(lane.type, ir.Undefined), mask)


def _address(context: Any, builder: Any, kinds: Any, args: Any) -> Any:
    """Where a table has the number at (row, column), as the beginning of lanes."""
    view = context.make_array(kinds[0])(context, builder, args[0])
    place = [context.cast(builder, args[i], kinds[i], types.intp) for i in (1, 2)]
    first = cgutils.get_item_pointer(context, builder, kinds[0], view, place, wraparound=False)
    return builder.bitcast(first, LANE.as_pointer())


def _lane_at(builder: Any, address: Any, i: int) -> Any:
    return builder.gep(address, [ir.Constant(ir.IntType(64), i)], inbounds=True)


@intrinsic
def zero(typingctx, like):
    """A row of zeros."""

    def generate(context, builder, signature, args):
        return ir.Constant(ir.ArrayType(LANE, len(like)), None)

    return Row(len(like))(like), generate


@intrinsic
def load(typingctx, like, table, row, column):
    """The numbers of a table from (row, column) on."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[1:], args[1:])
        parts = [builder.load(_lane_at(builder, address, i), align=8) for i in range(len(like))]
        return _pack(builder, parts)

    return Row(len(like))(like, table, row, column), generate


@intrinsic
def store(typingctx, table, row, column, values):
    """Write the numbers of a table from (row, column) on."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args, args)
        for i, part in enumerate(_unpack(builder, args[3])):
            builder.store(part, _lane_at(builder, address, i), align=8)
        return context.get_dummy_value()

    return types.void(table, row, column, values), generate


@intrinsic
def add_multiple(typingctx, row, factor, other):
    """`row + factor * other`, where `factor` is a number."""

    def generate(context, builder, signature, args):
        lane = ir.Constant(LANE, ir.Undefined)
        lane = builder.insert_element(lane, args[1], ir.Constant(ir.IntType(32), 0))
        factors = _pick(builder, lane, [0] * WIDTH)
        parts = [
            builder.fadd(x, builder.fmul(factors, y, flags=FLAGS), flags=FLAGS)
            for x, y in zip(_unpack(builder, args[0]), _unpack(builder, args[2]), strict=True)
        ]
        return _pack(builder, parts)

    return row(row, types.float64, other), generate


@intrinsic
def positive(typingctx, row):
    """The larger of each number and zero."""

    def generate(context, builder, signature, args):
        nothing = ir.Constant(LANE, None)
        parts = [
            builder.select(builder.fcmp_ordered(">", x, nothing), x, nothing)
            for x in _unpack(builder, args[0])
        ]
        return _pack(builder, parts)

    return row(row), generate


@intrinsic
def dot(typingctx, row, other):
    """The sum of the products of two rows."""

    def generate(context, builder, signature, args):
        products = [
            builder.fmul(x, y, flags=FLAGS)
            for x, y in zip(_unpack(builder, args[0]), _unpack(builder, args[1]), strict=True)
        ]
        total = products[0]
        for product in products[1:]:
            total = builder.fadd(total, product, flags=FLAGS)
        low, high = _pick(builder, total, [0, 1]), _pick(builder, total, [2, 3])
        pair = builder.fadd(low, high, flags=FLAGS)
        ends = [builder.extract_element(pair, ir.Constant(ir.IntType(32), i)) for i in (0, 1)]
        return builder.fadd(*ends, flags=FLAGS)

    return types.float64(row, other), generate
