"""From rows to readings: the one validator behind every entry point.

Rows are judged in three rounds: cell by cell (`cells`), against the calendar (`placing`), and
series by series (`runs`). A row that fails a round is left out of the next ones, so that one
mistake is named once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.calendar import MAX_PERIODS, Calendar
from unsum.errors import ParameterError, ReadingsError, TableError
from unsum.findings import Findings
from unsum.measures import Measures
from unsum.readings import Readings
from unsum.tables.cells import judge_cells
from unsum.tables.ledger import Ledger
from unsum.tables.overlaps import judge_overlaps
from unsum.tables.pairing import pair_readings
from unsum.tables.placing import judge_activity, judge_order, place
from unsum.tables.rows import ESTIMATED, MISSING, REQUIRED, MomentColumn, Options, Rows, read_rows
from unsum.tables.runs import Runs, judge_duplicates, judge_runs, merge_repeats
from unsum.tables.source import FrameSource, Source, open_source

MAX_SIZE = {"n_series": 2**31 - 1, "n_periods": MAX_PERIODS}


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
    absent = find_absent(source, options)
    if absent:
        ledger = Ledger(source, 0)
        for role in absent:
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
    placed = None if ledger.fatal else place(rows, options, ledger)
    usable = None
    if placed is not None:
        rows.start.wall = rows.end.wall = np.empty(0, np.int64)  # no longer needed, and large
        usable = _assemble(rows, *placed, options, ledger)
    return _close(ledger, usable, rows)


def find_absent(source: Source, options: Options) -> list[str]:
    """The roles that need a column which the table does not have."""
    required = REQUIRED if options.with_totals else REQUIRED[:-1]
    absent = [role for role in required if options.column(role) not in source.columns]
    wrong = [
        role
        for role, name in (options.columns or {}).items()
        if role not in REQUIRED and name not in source.columns
    ]
    return absent + wrong


def _close(ledger: Ledger, usable: Readings | None, rows: Rows) -> Intake:
    source = ledger.source
    if usable is None and not ledger.fatal:
        ledger.stop(
            "empty-table",
            f"{source.label} holds no usable reading; the other findings say why.",
            details=[item.sentence for item in ledger.items],
        )
    known = np.isfinite(rows.total)
    findings = replace(
        ledger.close(),
        total_read=float(np.sum(rows.total, where=known)),
        total_set_aside=float(np.sum(rows.total, where=known & ~ledger.in_use)),
    )
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
    for name, size in (("n_series", n_series), ("n_periods", n_periods)):
        if not isinstance(size, int | np.integer) or not 0 < size <= MAX_SIZE[name]:
            raise ParameterError(
                f"{name} must be a whole number from 1 to {MAX_SIZE[name]:,}; got {size!r}."
            )
    columns = {
        "series": _whole("series", series, 0, n_series - 1),
        "start": _whole("start", start, 0, n_periods),
        "stop": _whole("stop", stop, 0, n_periods),
        "total": _numbers("total", total),
    }
    lengths = {name: len(array) for name, array in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ParameterError(f"the arrays must have one length; got {lengths}.")
    if calendar is not None and calendar.n_periods != n_periods:
        raise ParameterError(
            f"the calendar has {calendar.n_periods} periods, but n_periods is {n_periods}."
        )
    labels = _names(names, n_series)
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
    judge_order(rows, first, last, ledger)
    return _close(ledger, _assemble(rows, grid, first, last, options, ledger), rows)


def _names(names: Any, n_series: int) -> pa.Array:
    if names is None:
        return pa.array(np.arange(n_series))
    try:
        labels = pa.array(names)
    except (pa.ArrowException, TypeError) as error:
        raise ParameterError(f"names must be all text or all whole numbers: {error}.") from None
    if len(labels) != n_series or len(labels.unique()) != n_series or labels.null_count:
        raise ParameterError(f"names must be {n_series} different names, one for each series.")
    return labels


def _numbers(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise ParameterError(f"{name} must be a one-dimensional array of numbers.")
    return array.astype(np.float64)


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


def _assemble(
    rows: Rows,
    calendar: Calendar,
    first: np.ndarray,
    last: np.ndarray,
    options: Options,
    ledger: Ledger,
) -> Readings | None:
    """Sort by series and time, judge the runs of each series, and build the arrays."""
    active, bounded = judge_activity(rows, calendar, first, last, options, ledger)
    keep = np.flatnonzero(ledger.in_use)
    key = rows.series[keep].astype(np.int64) * (calendar.n_periods + 1) + first[keep]
    if (np.diff(key) < 0).any():
        keep = keep[np.argsort(key, kind="stable")]
    del key
    runs = Runs(
        names=rows.names,
        calendar=calendar,
        series=rows.series[keep],
        start=first[keep],
        stop=last[keep],
        total=rows.total[keep],
        estimated=None if rows.quality is None else rows.quality[keep] == ESTIMATED,
        position=keep,
    )
    runs = merge_repeats(runs, ledger)
    runs, guesses = pair_readings(runs, options, ledger)
    runs = judge_duplicates(runs, ledger)
    runs, rest = judge_overlaps(runs, options, ledger)
    rest = rest.join([guesses])
    judge_runs(runs, rest.series, rows.series, options, ledger)
    heads = np.flatnonzero(np.diff(runs.series, prepend=-1))
    present = runs.series[heads]
    if not len(present):
        return None
    everything = len(present) == len(rows.names)
    readings = Readings(
        names=rows.names if everything else rows.names.take(pa.array(present)),
        calendar=calendar,
        indptr=np.append(heads, len(runs.series)),
        start=runs.start,
        stop=runs.stop,
        total=runs.total + 0.0,  # no negative zeros
        active=active[present],
        estimated=runs.estimated,
        bounded=None if bounded is None else bounded[present],
    )
    if not len(rest.series):
        return readings
    firm = rest if rest.estimated is None else rest.take(~rest.estimated)
    also = np.column_stack([np.searchsorted(present, firm.series), firm.start, firm.stop])
    also = also[np.argsort(also[:, 0], kind="stable")]
    return replace(readings, further=_measure(rest, present), also=also if len(also) else None)


def _measure(rest: Runs, present: np.ndarray) -> Measures:
    """Readings that interleave with others, as measures of single series."""
    labels = tuple(f"series {rest.name(i)!r}, {rest.span(i)}" for i in range(len(rest.series)))
    return Measures.of_intervals(
        np.searchsorted(present, rest.series), rest.start, rest.stop, rest.total, labels,
        n_series=len(present), n_periods=rest.calendar.n_periods, estimated=rest.estimated,
    )  # fmt: skip
