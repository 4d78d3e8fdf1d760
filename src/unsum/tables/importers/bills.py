"""Bills: totals with start and end, with one of them and a number of days, or with an end alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unsum.errors import TableError, require_choice
from unsum.findings import MAX_DETAILS
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.clock import Clock, read_clock
from unsum.tables.importers.columns import find_columns, list_columns
from unsum.tables.importers.imported import Draft, Imported, finish
from unsum.tables.importers.reading import number_groups, read_sheet
from unsum.tables.importers.repeats import settle_repeats
from unsum.tables.importers.sheet import Sheet
from unsum.tables.importers.units import multiply
from unsum.tables.ledger import count
from unsum.tables.source import Source

REQUIRED = ("series", "total")
OPTIONAL = ("start", "end", "duration", "quality", "unit")
LONGEST = 36_525  # days: a century


def import_bills(asked: Asked, *, end: str = "exclusive", from_previous: bool = False) -> Imported:
    """Bills as they are kept; with `from_previous` each begins where the one before it ended."""
    require_choice("end", end, ("exclusive", "inclusive"))
    asked.check_roles(REQUIRED + OPTIONAL)
    source = asked.open_table()
    columns = find_columns(source, asked, REQUIRED, OPTIONAL)
    dated = _choose_dates(source, columns, from_previous=from_previous)
    kept = {role: name for role, name in columns.items() if role not in OPTIONAL[:3]}
    sheet = read_sheet(
        asked, source, REQUIRED, columns=kept | {role: columns[role] for role in dated}
    )
    sheet.judge((*REQUIRED, *(["end"] if from_previous else dated)))
    _judge_duration(sheet)
    clock, moments = read_clock(sheet, tuple(role for role in dated if role != "duration"))
    if "end" in moments and end == "inclusive":
        moments["end"] = clock.after_day(moments["end"])
        sheet.notes.append(
            "Ends are the last day of each bill, as told; they are written a day on."
        )
    estimated = sheet.estimated()
    rows = np.arange(len(sheet))
    if from_previous:
        rows = _begin_at_previous(sheet, clock, moments)
    elif "duration" in sheet.numbers:
        _count_days(sheet, clock, moments)
    _judge_order(sheet, clock, moments, rows)
    scale = sheet.scale("total")
    used = rows[sheet.ledger.in_use[rows]]
    names = sheet.labels["series"]
    draft = Draft(
        series=pa.array(names.names, pa.string()).take(pa.array(names.codes[used])),
        start=moments["start"][used],
        end=moments["end"][used],
        total=multiply(sheet.numbers["total"][used], scale.factor[used]),
        estimated=None if estimated is None else estimated[used],
        unit=scale.unit,
    )
    return finish(asked, draft, clock, sheet.ledger, sheet.notes)


def _choose_dates(source: Source, columns: dict[str, str], *, from_previous: bool) -> list[str]:
    """The columns that say when a bill begins and ends."""
    if from_previous:
        if "end" in columns:
            return [role for role in ("end", "duration") if role in columns]
    elif "start" in columns and "end" in columns:
        return ["start", "end"]
    elif "duration" in columns and ("start" in columns or "end" in columns):
        return [role for role in ("start", "end", "duration") if role in columns]
    known = ", ".join(f"{role} {columns[role]!r}" for role in OPTIONAL[:3] if role in columns)
    remedy = "name the column of starts (--start), of ends (--end) or of days (--duration)"
    if "end" in columns and not from_previous:
        remedy += ", or let each bill begin where the one before ended: from_previous=True "
        remedy += "(--from-previous)"
    raise TableError(
        f"{source.label} does not say when bills begin and end: of start, end and duration it has "
        f"{known or 'none'}; {list_columns(source)}. To help, {remedy}."
    )


def _judge_duration(sheet: Sheet) -> None:
    if "duration" not in sheet.numbers:
        return
    days = sheet.numbers["duration"]
    bad = ~np.isnan(days) & ~((days > 0) & (days <= LONGEST) & (np.floor(days) == days))
    where = np.flatnonzero(bad & sheet.ledger.in_use)
    if len(where):
        sheet.ledger.add(
            "unreadable-value",
            f"{count(len(where), 'row')} where column {sheet.columns['duration']!r} is not a whole "
            f"number of days, 1 to {LONGEST:,}; correct it.",
            where,
            details=(f"{sheet.where(i)}: {days[i]:.15g}" for i in where[:MAX_DETAILS]),
            set_aside=where,
        )
    sheet.numbers["duration"] = np.where(bad, np.nan, days)


def _count_days(sheet: Sheet, clock: Clock, moments: dict[str, np.ndarray]) -> None:
    days = np.nan_to_num(sheet.numbers["duration"]).astype(np.int64)
    name = sheet.columns["duration"]
    if "end" in moments:
        moments["start"] = clock.add_days(moments["end"], -days)
        sheet.notes.append(f"Bills begin as many days before their end as {name!r} says.")
    else:
        moments["end"] = clock.add_days(moments["start"], days)
        sheet.notes.append(f"Bills end as many days after their start as {name!r} says.")


def _begin_at_previous(sheet: Sheet, clock: Clock, moments: dict[str, np.ndarray]) -> np.ndarray:
    """Each bill from the end of the one before; the first from its days, where they are known.

    Returns the rows, each bill once, by series and end.
    """
    codes, end = sheet.labels["series"].codes, moments["end"]
    known = sheet.judge_followers("end")
    rows = known[sheet.ledger.in_use[known]]
    kept = settle_repeats(
        sheet.ledger, rows, codes[rows], end[rows], sheet.numbers["total"][rows],
        lambda i: f"{sheet.name(rows[i])!r}, {clock.text(end[rows[i]])}",
        remedy="keep the right one of each",
    )  # fmt: skip
    order: np.ndarray = rows[kept]
    group = number_groups(codes[known], end[known])  # also of bills that were set aside
    heads = known[np.unique(group, return_index=True)[1]]
    begin, alike = end[heads].copy(), np.flatnonzero(np.diff(codes[heads]) == 0)
    begin[alike + 1] = end[heads[alike]]
    start = end.copy()
    start[known] = begin[group]
    firsts = order[start[order] == end[order]]
    if "duration" in sheet.numbers:
        days = np.nan_to_num(sheet.numbers["duration"][firsts]).astype(np.int64)
        start[firsts] = clock.add_days(end[firsts], -days)
    moments["start"] = start
    sheet.notes.append("Bills begin where the one before ended.")
    where = firsts[start[firsts] == end[firsts]]
    if len(where):
        sheet.ledger.add(
            "open-reading",
            f"{count(len(where), 'first bill')} of a series, whose start is not known.",
            where,
            details=(f"{sheet.name(i)!r}: {sheet.where(i)}" for i in where[:MAX_DETAILS]),
            set_aside=where,
        )
    return order


def _judge_order(
    sheet: Sheet, clock: Clock, moments: dict[str, np.ndarray], rows: np.ndarray
) -> None:
    start, end = moments["start"], moments["end"]
    where = rows[sheet.ledger.in_use[rows] & (start[rows] >= end[rows])]
    if len(where):
        sheet.ledger.add(
            "start-not-before-end",
            f"{count(len(where), 'row')} whose start is not before its end; swap them, or use "
            "inclusive ends (--inclusive-end) if the end is the last day of the bill.",
            where,
            details=(
                f"{sheet.where(i)}: {sheet.name(i)!r}, {clock.text(start[i])} to "
                f"{clock.text(end[i])}"
                for i in where[:MAX_DETAILS]
            ),
            set_aside=where,
        )
