"""From rows to readings: the one validator behind every entry point.

Rows are judged in three rounds: cell by cell, against the calendar, and series by series. A row
that fails a round is left out of the next ones, so that one mistake is named once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.calendar import (
    DAY,
    MAX_PERIODS,
    Calendar,
    TimeZone,
    moment_of,
    offset_name,
)
from unsum.errors import ParameterError, ReadingsError, TableError
from unsum.findings import MAX_DETAILS, Findings
from unsum.readings import Readings
from unsum.tables.cells import judge_cells
from unsum.tables.ledger import Ledger, count
from unsum.tables.moments import NAIVE
from unsum.tables.rows import (
    DATE_ONLY,
    ESTIMATED,
    MISSING,
    REQUIRED,
    UNREADABLE,
    MomentColumn,
    Options,
    Rows,
    read_rows,
)
from unsum.tables.runs import Runs, judge_runs
from unsum.tables.source import FrameSource, Source, open_source


@dataclass(frozen=True)
class Intake:
    """The outcome: findings, and the readings that remain when bad rows are set aside."""

    findings: Findings
    source: Source
    usable: Readings | None

    def readings(self, *, drop_bad: bool) -> Readings:
        """The readings, or an error that names every bad row."""
        if self.usable is None or (self.findings.errors and not drop_bad):
            raise ReadingsError(self.findings)
        return self.usable


def take_in(table: Any, options: Options) -> Intake:
    """Judge a file or dataframe of readings."""
    source = open_source(table)
    absent = [role for role in REQUIRED if options.column(role) not in source.columns]
    wrong = [
        role
        for role, name in (options.columns or {}).items()
        if role not in REQUIRED and name not in source.columns
    ]
    if absent or wrong:
        ledger = Ledger(source, 0)
        for role in absent + wrong:
            ledger.stop(
                "missing-column",
                f"{source.label} has no column {options.column(role)!r}; its columns are "
                f"{', '.join(map(repr, source.columns))}. Say which one holds the {role}: "
                f"columns={{{role!r}: ...}}, or --{role.replace('_', '-')} on the command line.",
            )
        return Intake(ledger.close(), source, None)
    try:
        rows = read_rows(source, options)
    except pa.ArrowException as error:
        raise TableError(
            f"{source.label} holds a column of a kind that cannot be understood: {error}"
        ) from error
    ledger = Ledger(source, len(rows))
    if not len(rows) and not source.skipped:
        ledger.stop("empty-table", f"{source.label} has a header but no rows; add readings to it.")
        return Intake(ledger.close(), source, None)
    judge_cells(rows, options, ledger)
    placed = _place(rows, options, ledger)
    usable = None
    if placed is not None:
        rows.start.wall = rows.end.wall = np.empty(0, np.int64)  # no longer needed, and large
        usable = _assemble(rows, *placed, options, ledger)
    return _close(ledger, usable)


def _close(ledger: Ledger, usable: Readings | None) -> Intake:
    source = ledger.source
    if usable is None and not ledger.fatal:
        ledger.stop(
            "empty-table",
            f"{source.label} holds no usable reading; the other findings say why.",
        )
    findings = ledger.close()
    if usable is not None:
        usable = replace(usable, findings=findings, backend=source.backend)
    return Intake(findings, source, usable)


def take_in_arrays(
    series: Any,
    start: Any,
    stop: Any,
    total: Any,
    n_series: int,
    n_periods: int,
    names: Any,
    calendar: Calendar | None,
) -> Intake:
    """Judge readings given as integers."""
    columns = {
        "series": _whole("series", series, 0, n_series - 1),
        "start": _whole("start", start, 0, n_periods),
        "stop": _whole("stop", stop, 0, n_periods),
        "total": np.asarray(total, np.float64),
    }
    lengths = {name: len(array) for name, array in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ParameterError(f"the arrays must have one length; got {lengths}.")
    if calendar is not None and calendar.n_periods != n_periods:
        raise ParameterError(
            f"the calendar has {calendar.n_periods} periods, but n_periods is {n_periods}."
        )
    labels = pa.array(np.arange(n_series)) if names is None else pa.array(names)
    if len(labels) != n_series or len(labels.unique()) != n_series:
        raise ParameterError(f"names must be {n_series} different names, one for each series.")
    source = FrameSource({"series": columns["series"]}, "the arrays")
    flags = np.zeros(len(columns["total"]), np.uint8)
    ledger = Ledger(source, len(flags))
    if not len(flags):
        ledger.stop("empty-table", "the arrays are empty; give at least one reading.")
        return Intake(ledger.close(), source, None)
    order = np.asarray(pc.sort_indices(labels))
    rank = np.empty(n_series, np.int32)
    rank[order] = np.arange(n_series, dtype=np.int32)
    rows = Rows(
        names=labels.take(pa.array(order)),
        series=rank[columns["series"]],
        start=MomentColumn(columns["start"], flags, numbered=True),
        end=MomentColumn(columns["stop"], flags, numbered=True),
        total=columns["total"],
        total_flags=np.where(np.isnan(columns["total"]), MISSING, 0).astype(np.uint8),
    )
    options = Options(freq="period")
    judge_cells(rows, options, ledger)
    grid = calendar or Calendar.numbered(n_periods)
    first, last = columns["start"].astype(np.int32), columns["stop"].astype(np.int32)
    _judge_order(rows, first, last, ledger)
    return _close(ledger, _assemble(rows, grid, first, last, options, ledger))


def _whole(name: str, values: Any, low: int, high: int) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or (len(array) and not np.issubdtype(array.dtype, np.integer)):
        raise ParameterError(f"{name} must be a one-dimensional array of integers.")
    outside = np.flatnonzero((array < low) | (array > high))
    if len(outside):
        raise ParameterError(
            f"{name} must lie between {low} and {high}; {name}[{outside[0]}] is "
            f"{array[outside[0]]}."
        )
    return array.astype(np.int64)


def _place(
    rows: Rows, options: Options, ledger: Ledger
) -> tuple[Calendar, np.ndarray, np.ndarray] | None:
    """The calendar, and the first and last edge of every row on it."""
    if not ledger.in_use.any():
        return None
    zone = _choose_zone(rows, options, ledger)
    if ledger.fatal:
        return None
    starts = _moments(rows.start, zone, options, ledger, "start")
    ends = _moments(rows.end, zone, options, ledger, "end")
    if options.end == "inclusive":
        # An inclusive end that has a time of day stands for the period that contains it.
        ends = ends + ~rows.end.has(DATE_ONLY)
    _judge_order(rows, starts, ends, ledger)
    keep = ledger.in_use
    if not keep.any():
        return None
    calendar = _make_calendar(starts, ends, zone, options, ledger)
    if calendar is None:
        return None

    outside = keep & ((starts < calendar.edges[0]) | (ends > calendar.edges[-1]))
    if outside.any():
        where = np.flatnonzero(outside)
        ledger.add(
            "outside-range",
            f"{count(len(where), 'reading')} not wholly inside the range "
            f"{calendar.text(0)} to {calendar.text(calendar.n_periods)}.",
            where,
            set_aside=where,
        )
    first, start_exact = calendar.locate(starts)
    last, end_exact = calendar.locate(ends)
    if options.end == "inclusive":
        timed = ~rows.end.has(DATE_ONLY)
        last[timed] = np.searchsorted(calendar.edges, ends[timed], side="left")
        end_exact |= timed
    off = ledger.in_use & ~(start_exact & end_exact)
    if off.any():
        _judge_off_grid(rows, calendar, np.flatnonzero(off), first, last, options, ledger)
    return calendar, first, last


def _choose_zone(rows: Rows, options: Options, ledger: Ledger) -> str | None:
    """The time zone of the calendar: given, or the column's, or the one offset in use."""
    given = options.tz or rows.start.tz or rows.end.tz
    keep = ledger.in_use
    offsets: set[int] = set()
    for column in (rows.start, rows.end):
        offsets |= (
            {int(NAIVE)}
            if column.offset is None
            else {int(offset) for offset in np.unique(column.offset[keep])}
        )
    if given or offsets == {int(NAIVE)} or options.frequency.numbered:
        return None if options.frequency.numbered else given
    if len(offsets) == 1:
        return offset_name(offsets.pop())
    examples, positions = [], []
    for offset in sorted(offsets):
        for column in (rows.start, rows.end):
            of_row = np.full(len(rows), NAIVE) if column.offset is None else column.offset
            found = np.flatnonzero(keep & (of_row == offset))
            if len(found):
                name = "no offset" if offset == NAIVE else f"offset {offset_name(offset)}"
                examples.append(f"row {ledger.row(found[0])} has {name}")
                positions.append(found[0])
                break
    ledger.stop(
        "differing-offsets",
        "timestamps have differing offsets from UTC and no time zone is given; say which zone the "
        "periods are in: tz='Europe/Paris', or --tz Europe/Paris.",
        positions=np.array(positions),
        details=examples,
    )
    return None


def _moments(
    column: MomentColumn, tz: str | None, options: Options, ledger: Ledger, role: str
) -> np.ndarray:
    """A column on the time line of the calendar (UTC where there is a zone)."""
    wall = column.wall
    if role.endswith(("end", "to")) and options.end == "inclusive":
        unit = 1 if options.frequency.numbered else DAY
        wall = wall + unit * column.has(DATE_ONLY)
    if tz is None:
        return wall
    naive = np.ones(len(wall), bool) if column.offset is None else column.offset == NAIVE
    moments = wall.copy()
    if column.offset is not None:
        moments[~naive] -= column.offset[~naive].astype(np.int64) * 1_000_000
    relevant = naive & ledger.in_use & ~column.has(MISSING | UNREADABLE)
    if relevant.any():
        zone = TimeZone(tz, int(wall[relevant].min()), int(wall[relevant].max()))
        utc, twice, never = zone.to_utc(wall[relevant])
        moments[relevant] = utc
        if not options.frequency.daily_or_longer:
            where = np.flatnonzero(relevant)
            for code, what, found in (
                ("ambiguous-time", "happens twice", where[twice]),
                ("skipped-time", "never happens", where[never]),
            ):
                _judge_clock_change(code, what, column, found, role, tz, ledger)
    return moments


def _judge_clock_change(
    code: str,
    what: str,
    column: MomentColumn,
    where: np.ndarray,
    role: str,
    tz: str,
    ledger: Ledger,
) -> None:
    if len(where):
        ledger.add(
            code,
            f"{count(len(where), 'row')} whose {role} {what} on the clocks of {tz}; write these "
            "times with their offset, or all times in UTC.",
            where,
            details=(f"row {ledger.row(i)}: {column.text(i)}" for i in where[:MAX_DETAILS]),
            set_aside=where,
        )


def _judge_order(rows: Rows, starts: np.ndarray, ends: np.ndarray, ledger: Ledger) -> None:
    where = np.flatnonzero(ledger.in_use & (starts >= ends))
    if len(where):
        ledger.add(
            "start-not-before-end",
            f"{count(len(where), 'row')} whose start is not before its end; swap them, or use "
            "inclusive ends if end is the last day of the reading.",
            where,
            details=(
                f"row {ledger.row(i)}: series {rows.name(i)!r}, start {rows.start.text(i)}, "
                f"end {rows.end.text(i)}"
                for i in where[:MAX_DETAILS]
            ),
            set_aside=where,
        )


def _make_calendar(
    starts: np.ndarray, ends: np.ndarray, tz: str | None, options: Options, ledger: Ledger
) -> Calendar | None:
    """The calendar of the readings, or of the range that was asked for."""
    keep = np.flatnonzero(ledger.in_use)
    frequency = options.frequency
    earliest, latest = keep[np.argmin(starts[keep])], keep[np.argmax(ends[keep])]
    first, last = int(starts[earliest]), int(ends[latest])
    given_first = _given(options.range_start, tz, "range_start")
    given_last = _given(options.range_end, tz, "range_end")
    first = first if given_first is None else given_first
    last = last if given_last is None else given_last
    if first >= last:
        raise ParameterError(
            "the range holds no reading: its start is not before its end, or not before the last "
            "reading; check range_start and range_end."
        )
    step = frequency.step or (1 if frequency.numbered else 28 * DAY * frequency.months)
    if (last - first) // step > MAX_PERIODS:
        ledger.stop(
            "range-too-long",
            f"the readings span {(last - first) // step:,} periods of {frequency.text!r}, more "
            f"than {MAX_PERIODS:,}: rows {ledger.row(earliest)} and {ledger.row(latest)} are the "
            "first and the last. Correct their dates, use a coarser freq, or give a range.",
            positions=np.unique([earliest, latest]),
        )
        return None
    anchor = None
    if frequency.step > DAY and frequency.weekday is None and given_first is None:
        # Count steps of several days from the phase that most readings share.
        phases = starts[keep] // DAY % (frequency.step // DAY)
        common = np.bincount(phases.astype(np.int64)).argmax()
        anchor = int(starts[keep[np.argmax(phases == common)]])
    calendar = Calendar.covering(frequency, tz, first, last, anchor)
    moved = [
        name
        for name, given, edge in (
            ("range_start", given_first, calendar.edges[0]),
            ("range_end", given_last, calendar.edges[-1]),
        )
        if given is not None and given != edge
    ]
    if moved:
        ledger.add(
            "adjusted",
            f"{' and '.join(moved)} moved outwards to whole periods: "
            f"{calendar.text(0)} to {calendar.text(calendar.n_periods)}.",
        )
    return calendar


def _given(when: Any, tz: str | None, name: str) -> int | None:
    if when is None:
        return None
    try:
        wall = moment_of(when)
    except ParameterError as error:
        raise ParameterError(f"{name}: {error}") from None
    if tz is None:
        return wall
    return int(TimeZone(tz, wall, wall).to_utc(np.array([wall]))[0][0])


def _judge_off_grid(
    rows: Rows,
    calendar: Calendar,
    where: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    options: Options,
    ledger: Ledger,
) -> None:
    details = (
        f"row {ledger.row(i)}: series {rows.name(i)!r}, {rows.start.text(i)} to "
        f"{rows.end.text(i)}, nearest grid points {calendar.text(int(first[i]))} to "
        f"{calendar.text(int(last[i]))}"
        for i in where[:MAX_DETAILS]
    )
    if options.snap == "error":
        ledger.add(
            "off-grid",
            f"{count(len(where), 'row')} with a boundary inside a period of "
            f"{options.freq!r}; use a finer freq, or snap='nearest' (--snap nearest).",
            where,
            details=details,
            set_aside=where,
        )
        return
    ledger.add(
        "snapped",
        f"{count(len(where), 'row')} with a boundary moved to the nearest point of the grid.",
        where,
        details=details,
    )
    empty = where[first[where] >= last[where]]
    if len(empty):
        ledger.add(
            "start-not-before-end",
            f"{count(len(empty), 'row')} with nothing left between start and end after snapping; "
            "use a finer freq.",
            empty,
            set_aside=empty,
        )


def _assemble(
    rows: Rows,
    calendar: Calendar,
    first: np.ndarray,
    last: np.ndarray,
    options: Options,
    ledger: Ledger,
) -> Readings | None:
    """Sort by series and time, judge the runs of each series, and build the arrays."""
    active = _active(rows, calendar, first, last, options, ledger)
    keep = np.flatnonzero(ledger.in_use)
    key = rows.series[keep].astype(np.int64) * (calendar.n_periods + 1) + first[keep]
    if (np.diff(key) < 0).any():
        keep = keep[np.argsort(key, kind="stable")]
    del key
    runs = Runs(
        rows.names, calendar, rows.series[keep], first[keep], last[keep], rows.total[keep], keep
    )
    runs = judge_runs(runs, rows.series, options, ledger)
    heads = np.flatnonzero(np.diff(runs.series, prepend=-1))
    present = runs.series[heads]
    if not len(present):
        return None
    estimated = None
    if rows.quality is not None:
        estimated = rows.quality[runs.position] == ESTIMATED
    everything = len(present) == len(rows.names)
    return Readings(
        names=rows.names if everything else rows.names.take(pa.array(present)),
        calendar=calendar,
        indptr=np.append(heads, len(runs.series)),
        start=runs.start,
        stop=runs.stop,
        total=runs.total + 0.0,  # no negative zeros
        active=active[present],
        estimated=estimated,
    )


def _active(
    rows: Rows,
    calendar: Calendar,
    first: np.ndarray,
    last: np.ndarray,
    options: Options,
    ledger: Ledger,
) -> np.ndarray:
    """The active periods of every series; readings are trimmed to them in place."""
    n_periods = calendar.n_periods
    active = np.tile(np.array([0, n_periods], np.int32), (len(rows.names), 1))
    for side, (role, column) in enumerate(
        (("active_from", rows.active_from), ("active_to", rows.active_to))
    ):
        if column is None:
            continue
        given = np.flatnonzero(ledger.in_use & ~column.has(MISSING | UNREADABLE))
        if not len(given):
            continue
        moments = _moments(column, calendar.tz, options, ledger, role)[given]
        edge, exact = calendar.locate(moments)
        edge = np.clip(edge, 0, n_periods)
        inside = (moments > calendar.edges[0]) & (moments < calendar.edges[-1])
        if (inside & ~exact).any():
            where = given[inside & ~exact]
            ledger.add("adjusted", f"{role} moved to the nearest point of the grid.", where)
        series = rows.series[given]
        active[series, side] = edge
        conflict = np.isin(series, series[active[series, side] != edge])
        if conflict.any():
            ledger.add(
                "conflicting-activity",
                f"{role} differs between rows of one series; give every row of a series the same.",
                given[conflict],
                series=rows.names.take(pa.array(np.unique(series[conflict]))).to_pylist(),
                set_aside=given[conflict],
            )
    low, high = active[rows.series, 0], active[rows.series, 1]
    cut = np.flatnonzero(ledger.in_use & ((first < low) | (last > high)))
    if len(cut):
        first[cut] = np.maximum(first[cut], low[cut])
        last[cut] = np.minimum(last[cut], high[cut])
        nothing = first[cut] >= last[cut]
        outside = cut[nothing & (rows.total[cut] > 0)]
        if len(outside):
            ledger.add(
                "outside-activity",
                f"{count(len(outside), 'reading')} with a positive total where the series is not "
                "active; correct active_from and active_to, or the reading.",
                outside,
                set_aside=outside,
            )
        trimmed = np.setdiff1d(cut, outside)
        if len(trimmed):
            ledger.add(
                "trimmed-to-activity",
                f"{count(len(trimmed), 'reading')} reaching outside the active time of its series.",
                trimmed,
            )
    return active
