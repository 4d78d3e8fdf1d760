"""The second round of judgement: rows on the calendar, with its zone, its grid and its range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from unsum.calendar import DAY, MAX_PERIODS, Calendar, TimeZone, moment_of, offset_name
from unsum.errors import ParameterError
from unsum.findings import MAX_DETAILS
from unsum.tables.ledger import Ledger, count
from unsum.tables.moments import NAIVE
from unsum.tables.rows import DATE_ONLY, MISSING, UNREADABLE, MomentColumn, Options, Rows


def place(
    rows: Rows, options: Options, ledger: Ledger
) -> tuple[Calendar, np.ndarray, np.ndarray] | None:
    """The calendar, and the first and last edge of every row on it."""
    if not ledger.in_use.any():
        return None
    zone = _choose_zone(rows, options, ledger)
    if ledger.fatal:
        return None
    starts = moments_of(rows.start, zone, options, ledger, "start")
    ends = moments_of(rows.end, zone, options, ledger, "end")
    judge_order(rows, starts, ends, ledger)
    keep = ledger.in_use
    if not keep.any():
        return None
    calendar = _make_calendar(starts, ends, zone, options, ledger)
    if calendar is None:
        return None

    early, late = calendar.edges[0] - starts, ends - calendar.edges[-1]
    outside = keep & ((early > 0) | (late > 0))
    if options.snap == "nearest":  # what is nearest to the edge of the range is in it
        half = np.diff(calendar.edges)[[0, -1]] / 2
        outside = keep & ((early > half[0]) | (late > half[1]))
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
    first, last = np.maximum(first, 0), np.minimum(last, calendar.n_periods)
    if options.end == "inclusive" and options.frequency.step < DAY:
        # A moment of an inclusive end stands for the period that contains it.
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
    if options.calendar is not None:
        ledger.stop(
            "differing-offsets",
            "timestamps have offsets from UTC, but the periods they belong to have no time zone; "
            "write local times.",
        )
        return None
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


def moments_of(
    column: MomentColumn, tz: str | None, options: Options, ledger: Ledger, role: str
) -> np.ndarray:
    """A column on the time line of the calendar (UTC where there is a zone)."""
    moments = _to_line(column, tz, options, ledger, role)
    if role in ("end", "active_to") and options.end == "inclusive":
        return _past_inclusive(moments, column, tz, options, ledger)
    return moments


def _past_inclusive(
    moments: np.ndarray, column: MomentColumn, tz: str | None, options: Options, ledger: Ledger
) -> np.ndarray:
    """The first moment after inclusive ends.

    A date, and on daily or longer grids any moment, stands for its whole day; so do timestamps
    when all of them are midnights. On finer grids a moment stands for the period that contains it.
    """
    if options.frequency.numbered:
        return moments + 1
    known = ledger.in_use & ~column.has(MISSING | UNREADABLE)
    if not known.any():
        return moments
    zone = TimeZone(tz, int(moments[known].min()), int(moments[known].max()) + DAY) if tz else None
    walls = moments if zone is None else zone.to_wall(moments)
    whole_day = column.has(DATE_ONLY)
    if options.frequency.daily_or_longer or not (walls[known] % DAY).any():
        whole_day = np.ones(len(moments), bool)
        column.flags |= np.uint8(DATE_ONLY)
    following = walls // DAY * DAY + DAY
    if zone is not None:
        following = zone.to_utc(following)[0]
    return np.where(whole_day, following, moments + 1)


def _to_line(
    column: MomentColumn, tz: str | None, options: Options, ledger: Ledger, role: str
) -> np.ndarray:
    wall = column.wall
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


def judge_order(rows: Rows, starts: np.ndarray, ends: np.ndarray, ledger: Ledger) -> None:
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
    if options.calendar is not None:
        return options.calendar
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
    if frequency.step > DAY and frequency.weekday is None:
        # Count steps of several days from the phase that most readings share.
        walls = starts[keep]
        if tz is not None:
            walls = TimeZone(tz, int(walls.min()), int(walls.max())).to_wall(walls)
        phases = walls // DAY % (frequency.step // DAY)
        common = np.bincount(phases).argmax()
        anchor = int(walls[np.argmax(phases == common)])
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


def judge_activity(
    rows: Rows,
    calendar: Calendar,
    first: np.ndarray,
    last: np.ndarray,
    options: Options,
    ledger: Ledger,
) -> tuple[np.ndarray, np.ndarray | None]:
    """The active periods of every series, and whether they were given; readings are trimmed."""
    n_periods = calendar.n_periods
    active = np.tile(np.array([0, n_periods], np.int32), (len(rows.names), 1))
    bounded = None
    if rows.active_from is not None or rows.active_to is not None:
        bounded = np.zeros(active.shape, np.bool_)
    for side, (role, column) in enumerate(
        (("active_from", rows.active_from), ("active_to", rows.active_to))
    ):
        if column is None:
            continue
        given = np.flatnonzero(ledger.in_use & ~column.has(MISSING | UNREADABLE))
        if not len(given):
            continue
        moments = moments_of(column, calendar.tz, options, ledger, role)[given]
        edge, exact = calendar.locate(moments)
        edge = np.clip(edge, 0, n_periods)
        inside = (moments > calendar.edges[0]) & (moments < calendar.edges[-1])
        if (inside & ~exact).any():
            where = given[inside & ~exact]
            ledger.add("adjusted", f"{role} moved to the nearest point of the grid.", where)
        series = rows.series[given]
        active[series, side] = edge
        if bounded is not None:
            bounded[series, side] = True
        conflict = np.isin(series, series[active[series, side] != edge])
        if conflict.any():
            active[series[conflict], side] = (0, n_periods)[side]
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
        idle = cut[nothing & (rows.total[cut] == 0)]
        if len(idle):
            ledger.add(
                "idle-reading",
                f"{count(len(idle), 'reading')} of zero where the series is not active.",
                idle,
                set_aside=idle,
            )
        outside = cut[nothing & (rows.total[cut] > 0)]
        if len(outside):
            ledger.add(
                "outside-activity",
                f"{count(len(outside), 'reading')} with a positive total where the series is not "
                "active; correct active_from and active_to, or the reading.",
                outside,
                set_aside=outside,
            )
        trimmed = cut[~nothing]
        if len(trimmed):
            ledger.add(
                "trimmed-to-activity",
                f"{count(len(trimmed), 'reading')} reaching outside the active time of its series.",
                trimmed,
            )
    return active, bounded
