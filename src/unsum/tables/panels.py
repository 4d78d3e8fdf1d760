"""Tables of fine series, wide or long, to panels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.calendar import DAY, HOUR, MINUTE, WEEK, Calendar, Frequency, TimeZone, offset_name
from unsum.errors import ParameterError, TableError
from unsum.panel import Panel
from unsum.tables.moments import NAIVE, MomentParser, Moments
from unsum.tables.rows import parse_totals, plain_column
from unsum.tables.source import Source, cell_text, open_source


@dataclass
class Cells:
    """The cells of a table, one after the other: whose, when, how much, and covered or not."""

    names: pa.Array
    codes: np.ndarray
    moments: Moments
    values: np.ndarray
    covered: np.ndarray | None = None


def read_panel(
    source: str | Path | Any,
    freq: str | None = None,
    *,
    tz: str | None = None,
    time: str = "time",
    series: str = "series",
    value: str = "value",
    decimal: str = ".",
    signed: bool = False,
) -> Panel:
    """Read fine series from a file or dataframe.

    A long table has columns series, time, value (and covered, where values were recovered); a wide
    one has a column of times and one column per series. The frequency is that of the times when it
    is not given. Values must be nonnegative, unless they are `signed`.
    """
    opened = open_source(source)
    if time not in opened.columns:
        raise TableError(
            f"{opened.label} has no column {time!r}; its columns are "
            f"{', '.join(map(repr, opened.columns[:8]))}. Say which one holds the times (--time)."
        )
    try:
        if series in opened.columns and value in opened.columns:
            cells = _read_long(opened, freq, series, time, value, decimal, signed)
        else:
            cells = _read_wide(opened, freq, time, decimal, signed)
    except pa.ArrowException as error:
        raise TableError(
            f"{opened.label} holds a column of a kind that cannot be understood: {error}"
        ) from error
    lines, zone = _time_line(cells.moments, tz, opened)
    frequency = Frequency.parse(freq) if freq else guess_frequency(lines, zone)
    calendar = Calendar.covering(frequency, zone, int(lines.min()), int(lines.max()) + 1)
    return _fill(opened, cells, lines, calendar)


def _read_long(
    source: Source,
    freq: str | None,
    series: str,
    time: str,
    value: str,
    decimal: str,
    signed: bool,
) -> Cells:
    covered = ["covered"] if "covered" in source.columns else []
    table, rows = _gather(source, [series, time, value, *covered])
    names = table[series]
    if not pa.types.is_integer(names.type):
        names = names.cast(pa.string())
        names = pc.if_else(pc.equal(names, ""), pa.scalar(None, pa.string()), names)
    if names.null_count:
        row = rows[np.flatnonzero(np.asarray(names.is_null()))[0]]
        raise TableError(f"row {row} of {source.label} has no {series}; fill it in.")
    encoded = pc.dictionary_encode(names)
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    cells = Cells(
        names=encoded.dictionary.take(pa.array(order)),
        codes=rank[np.asarray(encoded.indices)],
        moments=_parse_times(source, table[time], rows, freq),
        values=_parse_values(source, table[value], value, rows, decimal, signed),
    )
    if covered:
        text = pc.utf8_lower(pc.fill_null(table["covered"].cast(pa.string()), ""))
        cells.covered = np.asarray(pc.equal(text, "true"))
    return cells


def _read_wide(source: Source, freq: str | None, time: str, decimal: str, signed: bool) -> Cells:
    columns = sorted(name for name in source.columns if name != time)
    if not columns:
        raise TableError(f"{source.label} has no column of values beside {time!r}.")
    table, rows = _gather(source, [time, *columns])
    moments = _parse_times(source, table[time], rows, freq)
    n, width = len(rows), len(columns)
    every = Moments(
        wall=np.tile(moments.wall, width),
        offset=np.tile(moments.offset, width),
        date_only=np.tile(moments.date_only, width),
        missing=np.tile(moments.missing, width),
        unreadable=np.tile(moments.unreadable, width),
        tz=moments.tz,
    )
    values = [_parse_values(source, table[name], name, rows, decimal, signed) for name in columns]
    return Cells(pa.array(columns), np.repeat(np.arange(width), n), every, np.concatenate(values))


def _gather(source: Source, columns: list[str]) -> tuple[dict[str, pa.Array], np.ndarray]:
    """The columns, without blank rows, and the numbers of the rows."""
    batches = list(source.batches(columns))
    source.refuse_malformed()
    if not sum(map(len, batches)):
        raise TableError(f"{source.label} has no rows; add values to it.")
    table = pa.Table.from_batches(batches)
    plain = {name: plain_column(table[name].combine_chunks()) for name in columns}
    blank = np.ones(len(table), bool)
    for column in plain.values():
        empty = column.is_null()
        if pa.types.is_string(column.type):
            empty = pc.or_(empty, pc.fill_null(pc.equal(column, ""), True))
        blank &= np.asarray(empty)
    rows = source.row_numbers(np.flatnonzero(~blank))
    if blank.any():
        keep = pa.array(~blank)
        plain = {name: column.filter(keep) for name, column in plain.items()}
    return plain, rows


def _parse_times(source: Source, column: pa.Array, rows: np.ndarray, freq: str | None) -> Moments:
    """Times as moments; plain numbers of periods are marked by the zone 'period'."""
    numbered = freq == "period"
    if freq is None and len(column):
        first = cell_text(column, 0).strip()
        numbered = first.isdigit() and len(first) < 8
    moments = MomentParser(numbered=numbered).parse(column)
    bad = np.flatnonzero(moments.missing | moments.unreadable)
    if len(bad):
        text = cell_text(column, int(bad[0]))
        raise TableError(
            f"row {rows[bad[0]]} of {source.label} has the time {text!r}, which cannot be "
            "read; write times as 2024-01-31 or 2024-01-31T06:00."
        )
    if numbered:
        moments.tz = "period"
    return moments


def _parse_values(
    source: Source, column: pa.Array, name: str, rows: np.ndarray, decimal: str, signed: bool
) -> np.ndarray:
    values, _ = parse_totals(column, decimal)
    bad = np.flatnonzero(~(((values >= 0) | signed) & np.isfinite(values)))
    if len(bad):
        text = cell_text(column, int(bad[0]))
        raise TableError(
            f"row {rows[bad[0]]} of {source.label} has {text!r} in column {name!r}; every "
            f"value must be a number, finite{'' if signed else ' and nonnegative'} "
            f"({len(bad):,} of this column are not)."
        )
    return values


def _time_line(moments: Moments, tz: str | None, source: Source) -> tuple[np.ndarray, str | None]:
    """Times on one line, and the zone they are in ('period' for plain numbers)."""
    if moments.tz == "period":
        return moments.wall, "period"
    naive = moments.offset == NAIVE
    offsets = np.unique(moments.offset)
    chosen = tz or moments.tz
    if chosen is None and len(offsets) == 1:
        chosen = None if naive.all() else offset_name(int(offsets[0]))
    elif chosen is None:
        raise TableError(
            f"{source.label} has times with differing offsets; say which zone they are in "
            "(tz='Europe/Paris', --tz Europe/Paris)."
        )
    if chosen is None:
        return moments.wall, None
    zone = TimeZone(chosen, int(moments.wall.min()), int(moments.wall.max()))
    aware = moments.wall - np.where(naive, 0, moments.offset).astype(np.int64) * 1_000_000
    return np.where(naive, zone.to_utc(moments.wall)[0], aware), chosen


def guess_frequency(lines: np.ndarray, zone: str | None) -> Frequency:
    """The frequency of regular times: their most common step on the wall clock."""
    if zone == "period":
        return Frequency("period")
    times = np.unique(lines)
    if len(times) < 2:
        raise TableError("a single time does not show its step; give it (freq='D', --freq D).")
    walls = TimeZone(zone, int(times[0]), int(times[-1])).to_wall(times) if zone else times
    months = walls.astype("datetime64[us]").astype("datetime64[M]")
    if (months.astype("datetime64[us]").astype(np.int64) == walls).all():
        steps, counts = np.unique(np.diff(months.astype(np.int64)), return_counts=True)
        return Frequency.parse(f"{steps[counts.argmax()]}MS")
    steps, counts = np.unique(np.diff(walls), return_counts=True)
    step = int(steps[counts.argmax()])
    for unit, name in ((WEEK, "W"), (DAY, "D"), (HOUR, "h"), (MINUTE, "min")):
        if step % unit == 0:
            try:
                return Frequency.parse(f"{step // unit}{name}")
            except ParameterError:
                break
    raise TableError(
        f"most times are {step / 6e7:g} minutes apart, which is no known step; give it (freq='h', "
        "--freq h)."
    )


def _fill(source: Source, cells: Cells, lines: np.ndarray, calendar: Calendar) -> Panel:
    names = cells.names

    def where(i: Any, t: Any) -> str:
        return f"series {names[int(i)].as_py()!r} at {calendar.text(int(t))}"

    if calendar.frequency.numbered:
        periods, exact = lines - calendar.edges[0], np.ones(len(lines), bool)
    else:
        periods, exact = calendar.locate(lines)
    if not exact.all():
        i = int(np.argmin(exact))
        raise TableError(
            f"{source.label} has times that are not on a grid of {calendar.frequency.text!r}, as "
            f"near {where(cells.codes[i], min(max(periods[i], 0), calendar.n_periods))}; give the "
            "step (freq='h', --freq h)."
        )
    shape = (len(names), calendar.n_periods)
    flat = cells.codes * calendar.n_periods + periods
    times = np.bincount(flat, minlength=shape[0] * shape[1])
    if times.max() > 1:
        place = np.unravel_index(int(times.argmax()), shape)
        raise TableError(
            f"{source.label} has more than one value for {where(*place)}; local times that happen "
            "twice need their offsets."
        )
    if times.min() == 0:
        place = np.unravel_index(int(times.argmin()), shape)
        raise TableError(
            f"{source.label} has no value for {where(*place)} ({int((times == 0).sum()):,} are "
            "missing); every series needs a value at every time."
        )
    values = np.empty(shape)
    values.ravel()[flat] = cells.values
    covered = None
    if cells.covered is not None:
        covered = np.zeros(shape, np.bool_)
        covered.ravel()[flat] = cells.covered
    return Panel(names, calendar, values, covered)
