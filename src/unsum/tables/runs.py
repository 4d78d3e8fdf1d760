"""The third round of judgement: the run of readings of each series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from unsum.calendar import DAY, WEEK, Calendar
from unsum.findings import MAX_DETAILS
from unsum.tables.ledger import Ledger, count
from unsum.tables.rows import Options

AGREEMENT = 1e-9  # duplicates whose totals differ by less are one reading
MANY = 10  # readings, before a common length means anything
ABSURD = 1000.0
SERIES_AT_ONCE = 1 << 16
SLICE = 1 << 20


@dataclass(frozen=True)
class Runs:
    """Readings sorted by series and start; `position` is the row each came from."""

    names: pa.Array
    calendar: Calendar
    series: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    total: np.ndarray
    position: np.ndarray
    estimated: np.ndarray | None = None

    def take(self, which: np.ndarray) -> Runs:
        arrays = {
            item.name: getattr(self, item.name)[which]
            for item in fields(self)
            if isinstance(getattr(self, item.name), np.ndarray)
        }
        return replace(self, **arrays)

    def with_intervals(self, start: np.ndarray, stop: np.ndarray, total: np.ndarray) -> Runs:
        """The same series and rows with other intervals and totals."""
        return replace(self, start=start, stop=stop, total=total)

    def with_estimated(self, estimated: np.ndarray) -> Runs:
        """The same readings with other qualities."""
        return replace(self, estimated=estimated)

    def join(self, others: Sequence[Runs]) -> Runs:
        """These and others, one after the other."""
        arrays: dict[str, Any] = {
            item.name: np.concatenate([getattr(each, item.name) for each in (self, *others)])
            for item in fields(self)
            if isinstance(getattr(self, item.name), np.ndarray)
        }
        return replace(self, **arrays)

    def name(self, i: int) -> object:
        return self.names[int(self.series[i])].as_py()

    def span(self, i: int) -> str:
        return (
            f"{self.calendar.text(int(self.start[i]))} to {self.calendar.text(int(self.stop[i]))}"
        )

    def series_names(self, which: np.ndarray) -> list[object]:
        names: list[object] = self.names.take(pa.array(np.unique(which))).to_pylist()
        return names


def judge_runs(
    runs: Runs, interleaved: np.ndarray, series_of_rows: np.ndarray, options: Options,
    ledger: Ledger,
) -> None:  # fmt: skip
    """Note what is worth knowing about disjoint readings; some series have others beside them."""
    lost = np.setdiff1d(np.arange(len(runs.names)), runs.series)
    if len(lost):
        where = np.flatnonzero(np.isin(series_of_rows, lost))
        ledger.add(
            "no-usable-reading",
            f"{count(len(lost), 'series')} without any usable reading.",
            where,
            series=runs.series_names(lost),
        )
    if len(runs.series):
        _judge_gaps(runs.take(~np.isin(runs.series, interleaved)), options, ledger)
        if options.with_totals:
            _judge_levels(runs, ledger)
        _judge_shapes(runs, ledger)


def merge_repeats(runs: Runs, ledger: Ledger) -> Runs:
    """Rows that repeat another, total and all, count once; the actual one stays."""
    keys = [runs.position, runs.total, runs.stop, runs.start, runs.series]
    if runs.estimated is not None:
        keys.insert(1, runs.estimated)
    tied = (runs.series[1:] == runs.series[:-1]) & (runs.start[1:] == runs.start[:-1])
    if not tied.any():
        return runs
    runs = runs.take(np.lexsort(keys))
    same = np.zeros(len(runs.series), bool)
    same[1:] = (
        (runs.series[1:] == runs.series[:-1])
        & (runs.start[1:] == runs.start[:-1])
        & (runs.stop[1:] == runs.stop[:-1])
        & (np.abs(np.diff(runs.total)) <= AGREEMENT * np.abs(runs.total[1:]))
    )
    repeats = np.flatnonzero(same)
    if len(repeats):
        ledger.add(
            "merged-duplicates",
            f"{count(len(repeats), 'row')} repeating another reading with the same total.",
            runs.position[repeats],
            series=runs.series_names(runs.series[repeats]),
        )
    kept = runs.take(~same)
    return kept.take(np.lexsort([kept.position, kept.start, kept.series]))


def judge_duplicates(runs: Runs, ledger: Ledger) -> Runs:
    """Readings of the same interval are a conflict."""
    tied = (runs.series[1:] == runs.series[:-1]) & (runs.start[1:] == runs.start[:-1])
    if not tied.any():
        return runs
    runs = runs.take(np.lexsort([runs.position, runs.stop, runs.start, runs.series]))
    fresh = np.ones(len(runs.series), bool)
    fresh[1:] = (
        (runs.series[1:] != runs.series[:-1])
        | (runs.start[1:] != runs.start[:-1])
        | (runs.stop[1:] != runs.stop[:-1])
    )
    heads = np.flatnonzero(fresh)
    group = np.cumsum(fresh) - 1
    agree = np.bincount(group) == 1
    conflict = np.flatnonzero(~agree[group])
    if len(conflict):
        firsts = heads[~agree]
        ledger.add(
            "conflicting-duplicate",
            f"{count(len(firsts), 'interval')} read more than once with different totals; keep the "
            "right row of each.",
            runs.position[conflict],
            details=(_conflict_text(runs, group, i, ledger) for i in firsts[:MAX_DETAILS]),
            series=runs.series_names(runs.series[conflict]),
            set_aside=runs.position[conflict],
        )
    return runs.take(agree[group])


def _conflict_text(runs: Runs, group: np.ndarray, first: int, ledger: Ledger) -> str:
    copies = np.flatnonzero(group == group[first])[:4]
    versions = ", ".join(
        f"{runs.total[i]:g} (row {ledger.row(int(runs.position[i]))})" for i in copies
    )
    return f"series {runs.name(first)!r}, {runs.span(first)}: totals {versions}"


def _judge_gaps(runs: Runs, options: Options, ledger: Ledger) -> None:
    inside = runs.series[1:] == runs.series[:-1]
    width = np.where(inside, runs.start[1:] - runs.stop[:-1], 0)
    after = np.flatnonzero(width > 0) + 1
    if not len(after):
        return
    if options.end == "exclusive" and inside.sum() >= 3:
        single = int((width == 1).sum())
        if single >= 0.9 * inside.sum():
            ledger.add(
                "ends-look-inclusive",
                f"{single:,} of {inside.sum():,} readings begin exactly one period after the one "
                "before ends; if end is the last day of a reading, use end='inclusive' "
                "(--inclusive-end).",
            )
    n_series = len(np.unique(runs.series[after]))
    ledger.add(
        "gap",
        f"{count(len(after), 'gap')} between readings of {count(n_series, 'series')}, "
        f"{count(int(width.sum()), 'period')} in all.",
        runs.position[after],
        details=(
            f"series {runs.name(i)!r}: nothing from {runs.calendar.text(int(runs.stop[i - 1]))} to "
            f"{runs.calendar.text(int(runs.start[i]))}, before row "
            f"{ledger.row(int(runs.position[i]))}"
            for i in after[:MAX_DETAILS]
        ),
        series=runs.series_names(runs.series[after]),
    )


def _judge_levels(runs: Runs, ledger: Ledger) -> None:
    """Series that are all zero, and readings far above the usual level of their series."""
    heads = np.flatnonzero(np.diff(runs.series, prepend=-1))
    zero = np.maximum.reduceat(runs.total, heads) == 0
    if zero.any():
        names = runs.series_names(runs.series[heads[zero]])
        where = runs.position[np.isin(runs.series, runs.series[heads[zero]])]
        ledger.add("all-zero", f"{count(len(names), 'series')} with totals of zero only.", where,
                   series=names)  # fmt: skip

    absurd, times = _absurd(runs, heads)
    if len(absurd):
        ledger.add(
            "absurd-magnitude",
            f"{count(len(absurd), 'reading')} at more than {ABSURD:,.0f} times the usual level of "
            "its series; check the unit and the decimal point.",
            runs.position[absurd],
            details=(
                f"row {ledger.row(int(runs.position[i]))}: series {runs.name(i)!r}, total "
                f"{runs.total[i]:g} over {runs.span(i)}, {ratio:,.0f} times its usual level"
                for i, ratio in zip(absurd[:MAX_DETAILS], times, strict=False)
            ),
            series=runs.series_names(runs.series[absurd]),
        )


def _absurd(runs: Runs, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Readings far above the median rate of their series, and how far.

    Only positive readings count, and only series with three of them. Works through a block of
    whole series at a time, to hold no large temporaries.
    """
    found, times = [np.empty(0, np.int64)], [np.empty(0)]
    bounds = np.append(heads[::SERIES_AT_ONCE], len(runs.series))
    for low, high in pairwise(bounds):
        positive = low + np.flatnonzero(runs.total[low:high] > 0)
        if not len(positive):
            continue
        rate = runs.total[positive] / (runs.stop[positive] - runs.start[positive])
        series = runs.series[positive]
        by_rate = np.lexsort((rate, series))
        first = np.flatnonzero(np.diff(series, prepend=-1))
        sizes = np.diff(np.append(first, len(series)))
        usual = np.repeat(rate[by_rate][first + (sizes - 1) // 2], sizes)
        above = np.flatnonzero(np.repeat(sizes >= 3, sizes) & (rate / ABSURD > usual))
        found.append(positive[above])
        with np.errstate(over="ignore"):
            times.append(rate[above] / usual[above])
    return np.concatenate(found), np.concatenate(times)


def _judge_shapes(runs: Runs, ledger: Ledger) -> None:
    """Readings of whole weeks, days, or g periods sum the shape of these away, at any dates."""
    calendar = runs.calendar
    frequency = calendar.frequency
    for step, code, name, parts in (
        (WEEK, "no-weekly-shape", "week", "days"), (DAY, "no-daily-shape", "day", "parts"),
    ):  # fmt: skip
        if 0 < frequency.step < step and _all_span(runs, step):
            ledger.add(
                code,
                f"these readings cannot show the shape of a {name}: every one of them spans whole "
                f"{name}s, so how a {name} is divided into its {parts} is left to the method.",
            )
            return
    common = 0
    for low in range(0, len(runs.start), SLICE):
        lengths = runs.stop[low : low + SLICE] - runs.start[low : low + SLICE]
        common = int(np.gcd(common, np.gcd.reduce(lengths)))
    if common > 1 and len(runs.start) >= MANY and calendar.n_periods >= 2 * common:
        ledger.add(
            "hidden-rhythm",
            f"every reading spans a multiple of {common} periods, so a rhythm that repeats after "
            f"{common} periods cannot be seen in them, whatever their dates.",
        )


def _all_span(runs: Runs, step: int) -> bool:
    """Whether all readings begin and end at the same moment of a week, or of a day."""
    walls = runs.calendar.walls
    phase = walls % step
    return bool(walls[-1] - walls[0] >= 2 * step) and all(
        (phase[runs.stop[low : low + SLICE]] == phase[runs.start[low : low + SLICE]]).all()
        for low in range(0, len(runs.start), SLICE)
    )
