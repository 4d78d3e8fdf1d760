"""Tables of fine series, wide or long, to panels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.calendar import DAY, HOUR, MINUTE, Calendar, Frequency, TimeZone, offset_name
from unsum.errors import TableError
from unsum.panel import Panel
from unsum.tables.moments import NAIVE, MomentParser, Moments
from unsum.tables.rows import parse_totals, plain_column
from unsum.tables.source import Source, open_source

LONG = ("series", "time", "value")


def read_panel(
    source: str | Path | Any,
    freq: str | None = None,
    *,
    tz: str | None = None,
    time: str = "time",
    series: str = "series",
    value: str = "value",
) -> Panel:
    """Read fine series from a file or dataframe.

    A long table has columns series, time, value; a wide one has a column of times and one column
    per series. The frequency is that of the times when it is not given.
    """
    opened = open_source(source)
    if time not in opened.columns:
        raise TableError(
            f"{opened.label} has no column {time!r}; its columns are "
            f"{', '.join(map(repr, opened.columns[:8]))}. Say which one holds the times (--time)."
        )
    if series in opened.columns and value in opened.columns:
        cells = _read_long(opened, series, time, value)
    else:
        cells = _read_wide(opened, time)
    if not len(cells.values):
        raise TableError(f"{opened.label} has no rows; add values to it.")
    lines, zone = _time_line(cells.moments, tz, opened)
    frequency = Frequency.parse(freq) if freq else guess_frequency(lines, zone)
    last = int(lines.max()) + 1
    calendar = Calendar.covering(frequency, zone, int(lines.min()), last)
    return _fill(opened, cells, lines, calendar)


@dataclass
class Cells:
    """The cells of a table, one after the other: whose, when, how much, and covered or not."""

    names: pa.Array
    codes: np.ndarray
    moments: Moments
    values: np.ndarray
    covered: np.ndarray | None = None


def _read_long(source: Source, series: str, time: str, value: str) -> Cells:
    covered = ["covered"] if "covered" in source.columns else []
    table = _gather(source, [series, time, value, *covered])
    encoded = pc.dictionary_encode(_plain(table[series]))
    if encoded.null_count:
        raise TableError(f"{source.label} has rows without a series; fill in their names.")
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    values, _ = parse_totals(_plain(table[value]))
    codes = rank[np.asarray(encoded.indices)] if len(order) else np.empty(0, np.int64)
    names = encoded.dictionary.take(pa.array(order))
    cells = Cells(names, codes, _parse_times(source, table[time]), values)
    if covered:
        text = _plain(table["covered"]).cast(pa.string())
        cells.covered = np.asarray(pc.equal(pc.utf8_lower(pc.fill_null(text, "")), "true"))
    return cells


def _read_wide(source: Source, time: str) -> Cells:
    columns = sorted(name for name in source.columns if name != time)
    if not columns:
        raise TableError(f"{source.label} has no column of values beside {time!r}.")
    table = _gather(source, [time, *columns])
    moments = _parse_times(source, table[time])
    n, width = len(table), len(columns)
    every = Moments(
        wall=np.tile(moments.wall, width),
        offset=np.tile(moments.offset, width),
        date_only=np.tile(moments.date_only, width),
        missing=np.tile(moments.missing, width),
        unreadable=np.tile(moments.unreadable, width),
        tz=moments.tz,
    )
    values = [parse_totals(_plain(table[name]))[0] for name in columns]
    codes = np.repeat(np.arange(width), n)
    return Cells(pa.array(columns), codes, every, np.concatenate(values))


def _gather(source: Source, columns: list[str]) -> pa.Table:
    batches = list(source.batches(columns))
    if not batches:
        raise TableError(f"{source.label} has no rows; add values to it.")
    table = pa.Table.from_batches(batches)
    if source.skipped:
        row, text = next(iter(source.skipped.items()))
        raise TableError(
            f"row {row} of {source.label} has more or fewer fields than the header: {text[:80]!r}."
        )
    return table


def _plain(column: pa.ChunkedArray) -> pa.Array:
    return plain_column(column.combine_chunks())


def _parse_times(source: Source, column: pa.ChunkedArray) -> Moments:
    plain = _plain(column)
    numbered = pa.types.is_integer(plain.type) and len(plain) and pc.max(plain).as_py() < 10**7
    moments = MomentParser(numbered=bool(numbered)).parse(plain)
    bad = np.flatnonzero(moments.missing | moments.unreadable)
    if len(bad):
        row = source.row_numbers(bad[:1])[0]
        raise TableError(
            f"row {row} of {source.label} has the time {plain[int(bad[0])].as_py()!r}, which "
            "cannot be read; write times as 2024-01-31 or 2024-01-31T06:00."
        )
    if numbered:
        moments.tz = "period"
    return moments


def _time_line(moments: Moments, tz: str | None, source: Source) -> tuple[np.ndarray, str | None]:
    """Times on one line, and the zone they are in ('period' for plain numbers)."""
    naive = moments.offset == NAIVE
    if moments.tz == "period":
        return moments.wall, "period"
    if naive.all():
        if tz is None:
            return moments.wall, None
        zone = TimeZone(tz, int(moments.wall.min()), int(moments.wall.max()))
        return zone.to_utc(moments.wall)[0], tz
    offsets = np.unique(moments.offset)
    chosen = tz or moments.tz or (offset_name(int(offsets[0])) if len(offsets) == 1 else None)
    if chosen is None or naive.any():
        raise TableError(
            f"{source.label} has times with differing offsets; say which zone they are in "
            "(tz='Europe/Paris', --tz Europe/Paris)."
        )
    return moments.wall - moments.offset.astype(np.int64) * 1_000_000, chosen


def guess_frequency(lines: np.ndarray, zone: str | None) -> Frequency:
    """The frequency of regular times: the smallest step, in the largest unit that fits."""
    if zone == "period":
        return Frequency("period")
    times = np.unique(lines)
    if len(times) < 2:
        return Frequency.parse("D")
    step = int(np.diff(times).min())
    if 28 * DAY <= step <= 31 * DAY:
        return Frequency.parse("MS")
    if 23 * HOUR <= step <= 24 * HOUR:
        return Frequency.parse("D")
    for unit, name in ((7 * DAY, "W"), (DAY, "D"), (HOUR, "h"), (MINUTE, "min")):
        if step % unit == 0:
            return Frequency.parse(f"{step // unit}{name}" if step > unit else name)
    raise TableError(
        f"the times are {step / 1e6:g} seconds apart at the least, which is no known step; give "
        "the frequency (freq='h', --freq h)."
    )


def _fill(source: Source, cells: Cells, lines: np.ndarray, calendar: Calendar) -> Panel:
    if calendar.frequency.numbered:
        periods, exact = lines - calendar.edges[0], np.ones(len(lines), bool)
    else:
        periods, exact = calendar.locate(lines)
    if not exact.all():
        raise TableError(
            f"{source.label} has times that are not on a grid of {calendar.frequency.text!r}; give "
            "the frequency (--freq)."
        )
    names = cells.names
    panel = np.full((len(names), calendar.n_periods), np.nan)
    flat = cells.codes * calendar.n_periods + periods
    if len(np.unique(flat)) < len(flat):
        raise TableError(f"{source.label} has more than one value for a series and time.")
    panel.ravel()[flat] = cells.values
    bad = ~(np.isfinite(panel) & (panel >= 0))
    if bad.any():
        n, t = np.argwhere(bad)[0]
        raise TableError(
            f"{source.label}: series {names[int(n)].as_py()!r} has the value {panel[n, t]:g} at "
            f"{calendar.text(int(t))}; every value must be present, finite and nonnegative "
            f"({int(bad.sum()):,} are not)."
        )
    covered = None
    if cells.covered is not None:
        covered = np.zeros(panel.shape, np.bool_)
        covered.ravel()[flat] = cells.covered
    return Panel(names, calendar, panel, covered)
