"""Billing frames of OpenDSM and eemeter: a value where a period begins, nothing where it goes on.

A period ends where the next value stands, and the last one at the last row, which has no value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unsum.findings import MAX_DETAILS
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.clock import Clock, read_clock
from unsum.tables.importers.columns import find_columns
from unsum.tables.importers.imported import Draft, Imported, finish
from unsum.tables.importers.joined import Joined
from unsum.tables.importers.reading import number_groups, read_sheet
from unsum.tables.importers.repeats import settle_repeats
from unsum.tables.importers.sheet import Sheet
from unsum.tables.importers.units import multiply
from unsum.tables.ledger import count
from unsum.tables.rows import MISSING

ROLES = ("series", "time", "value", "quality", "unit")


def import_opendsm(asked: Asked) -> Imported:
    """Periods between values; a file without a column of series is one series."""
    asked.check_roles(ROLES)
    source = asked.open_table()
    columns = find_columns(source, asked, ("time", "value"), ("series", "quality", "unit"))
    if isinstance(source, Joined) and asked.name is None:
        columns.setdefault("series", source.file_column)
    sheet = read_sheet(asked, source, (), columns=columns)
    sheet.judge(("series", "time"))
    clock, moments = read_clock(sheet, ("time",))
    estimated = sheet.estimated()
    scale = sheet.scale("value")
    first, stop = _periods(sheet, clock, moments["time"])
    names = sheet.labels["series"]
    draft = Draft(
        series=pa.array(names.names, pa.string()).take(pa.array(names.codes[first])),
        start=moments["time"][first],
        end=moments["time"][stop],
        total=multiply(sheet.numbers["value"][first], scale.factor[first]),
        estimated=None if estimated is None else estimated[first],
        unit=scale.unit,
    )
    sheet.notes.append("Periods end where the next value stands, the last one at the last row.")
    return finish(asked, draft, clock, sheet.ledger, sheet.notes)


def _periods(sheet: Sheet, clock: Clock, moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row that begins each period, and the row that ends it."""
    codes, empty = sheet.labels["series"].codes, (sheet.flags["value"] & MISSING) > 0
    known = sheet.judge_followers("time")
    rows = known[sheet.ledger.in_use[known]]
    values = np.where(empty, np.inf, sheet.numbers["value"])  # nothing differs from every value
    alone = settle_repeats(
        sheet.ledger, rows, codes[rows], moments[rows], values[rows],
        lambda i: f"{sheet.name(rows[i])!r}, {clock.text(moments[rows[i]])}",
        remedy="keep the right one of each",
    )  # fmt: skip
    group = np.zeros(len(sheet), np.int64)
    group[known] = number_groups(codes[known], moments[known])
    heads = known[np.unique(group[known], return_index=True)[1]]
    final = np.diff(codes[heads], append=-1) != 0
    marked = final.copy()  # where a period begins or ends, whether its value can be used or not
    marked[group[known[~empty[known]]]] = True
    marks = np.flatnonzero(marked)
    begins = rows[alone]
    begins = begins[~empty[begins]]
    unclosed = final[group[begins]]
    where = begins[unclosed]
    if len(where):
        sheet.ledger.add(
            "open-reading",
            f"{count(len(where), 'last value')} of a series, whose end is not known: no row "
            "without a value follows.",
            where,
            details=(f"{sheet.name(i)!r}: {sheet.where(i)}" for i in where[:MAX_DETAILS]),
            set_aside=where,
        )
    begins = begins[~unclosed]
    return begins, heads[marks[np.searchsorted(marks, group[begins], side="right")]]
