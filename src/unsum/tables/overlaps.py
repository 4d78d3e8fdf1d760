"""Readings of one series that overlap: refused, or solved as a system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsum.findings import MAX_DETAILS
from unsum.tables.ledger import Ledger, count
from unsum.tables.rows import Options
from unsum.tables.runs import Runs
from unsum.tables.untangle import Conflict, untangle


def judge_overlaps(runs: Runs, options: Options, ledger: Ledger) -> tuple[Runs, Runs]:
    """Readings that share periods: refused, or solved for disjoint ones.

    Returns disjoint readings, and those that interleave with them or are estimates of a part.
    """
    nothing = runs.take(np.empty(0, np.int64))
    pairs = _overlapping_pairs(runs)
    if not len(pairs):
        return runs, nothing
    if options.overlaps == "solve":
        return _solve(runs, np.unique(runs.series[pairs[:, 1]]), ledger)
    return _refuse(runs, pairs, options, ledger), nothing


def _overlapping_pairs(runs: Runs) -> np.ndarray:
    """Each reading that begins in an earlier one of its series, with the one that it begins in."""
    if len(runs.series) < 2:
        return np.empty((0, 2), np.int64)
    reach = runs.series * np.int64(runs.calendar.n_periods + 1) + runs.stop
    furthest = np.maximum.accumulate(reach)
    # For each reading, the one that reaches furthest among those up to it.
    holder = np.maximum.accumulate(np.where(reach == furthest, np.arange(len(reach)), 0))
    same = runs.series[1:] == runs.series[:-1]
    later = np.flatnonzero(same & (runs.start[1:] < runs.stop[holder[:-1]])) + 1
    return np.column_stack([holder[later - 1], later])


def _refuse(runs: Runs, pairs: np.ndarray, options: Options, ledger: Ledger) -> Runs:
    """As few as possible are set aside."""
    later = pairs[:, 1]
    hint = (
        "correct their dates, remove one of each pair, or solve for what they say together: "
        "overlaps='solve' (--overlaps solve)"
    )
    if options.end == "inclusive" and all(runs.stop[pairs[:, 0]] - runs.start[later] == 1):
        hint = "each shares one period with the next, so the ends look exclusive: drop inclusive"
    involved = np.unique(pairs)
    drop = _fewest_to_drop(runs, np.unique(runs.series[later]))
    ledger.add(
        "overlap",
        f"{count(len(pairs), 'pair')} of readings of one series overlap; {hint}.",
        runs.position[involved],
        details=(_overlap_text(runs, i, j, ledger) for i, j in pairs[:MAX_DETAILS].tolist()),
        series=runs.series_names(runs.series[later]),
        set_aside=runs.position[drop],
    )
    keep = np.ones(len(runs.series), bool)
    keep[drop] = False
    return runs.take(keep)


def _overlap_text(runs: Runs, i: int, j: int, ledger: Ledger) -> str:
    until = min(int(runs.stop[i]), int(runs.stop[j]))
    shared = until - int(runs.start[j])
    return (
        f"series {runs.name(i)!r}: row {ledger.row(int(runs.position[i]))}, {runs.span(i)}, total "
        f"{runs.total[i]:g}, and row {ledger.row(int(runs.position[j]))}, {runs.span(j)}, total "
        f"{runs.total[j]:g}, share {count(shared, 'period')} from "
        f"{runs.calendar.text(int(runs.start[j]))}"
    )


def _fewest_to_drop(runs: Runs, series: np.ndarray) -> np.ndarray:
    """By series, keep the largest set of disjoint readings: always the one that ends first."""
    bounds = np.searchsorted(runs.series, [series, series + 1])
    drop: list[int] = []
    for low, high in bounds.T:
        reach = -1
        for i in low + np.lexsort((-runs.start[low:high], runs.stop[low:high])):
            if runs.start[i] >= reach:
                reach = runs.stop[i]
            else:
                drop.append(int(i))
    return np.array(drop, np.int64)


@dataclass(frozen=True)
class _Dispute:
    """Readings in conflict, by their places, and the one that is left out if rows may be."""

    readings: np.ndarray
    left_out: int
    conflict: Conflict


def _solve(runs: Runs, series: np.ndarray, ledger: Ledger) -> tuple[Runs, Runs]:
    """Disjoint readings that follow from overlapping ones, and the rest.

    Estimates that overlap with actual readings are part of the rest: they bind nothing.
    """
    alone = np.flatnonzero(~np.isin(runs.series, series))
    parts, rest = [runs.take(alone)], []
    conflicts: list[_Dispute] = []
    for low, high in np.searchsorted(runs.series, [series, series + 1]).T:
        own = np.arange(low, high)
        for some, estimates in _layers(runs, own):
            rest.append(runs.take(estimates))
            disjoint, more = _untangle(runs, some, conflicts)
            parts.append(disjoint)
            rest.append(more)
    solved = _join(parts)
    others = _join(rest)
    _report(runs, conflicts, ledger)
    names = runs.series_names(series)
    ledger.add(
        "solved-overlaps",
        f"{count(len(series), 'series')} with readings that overlap, taken as a system.",
        runs.position[np.isin(runs.series, series)],
        series=names,
    )
    return solved, others


def _layers(runs: Runs, own: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Readings that must agree with each other, and estimates that overlap with actual ones."""
    if runs.estimated is None or not runs.estimated[own].any():
        return [(own, own[:0])]
    actual, estimates = own[~runs.estimated[own]], own[runs.estimated[own]]
    covered = np.zeros(runs.calendar.n_periods + 1)
    np.add.at(covered, runs.start[actual], 1)
    np.add.at(covered, runs.stop[actual], -1)
    read = np.concatenate([[0], np.cumsum(np.cumsum(covered) > 0)])
    overlap = read[runs.stop[estimates]] > read[runs.start[estimates]]
    return [(actual, estimates[overlap]), (estimates[~overlap], own[:0])]


def _untangle(runs: Runs, some: np.ndarray, conflicts: list[_Dispute]) -> tuple[Runs, Runs]:
    """Disjoint readings and the rest of one series; of a conflict, the longest is left out."""
    while len(some):
        found = untangle(runs.start[some], runs.stop[some], runs.total[some])
        if not isinstance(found, Conflict):
            # What follows from several rows stands where the first of them that begins there does.
            source = some[np.searchsorted(runs.start[some], found.start, side="right") - 1]
            others = some[np.searchsorted(runs.start[some], found.rest[0], side="right") - 1]
            return (
                runs.take(source).with_intervals(found.start, found.stop, found.total),
                runs.take(others).with_intervals(*found.rest),
            )
        lengths = runs.stop[some] - runs.start[some]
        longest = max(found.readings.tolist(), key=lambda i: (lengths[i], i))
        conflicts.append(_Dispute(some[found.readings], int(some[longest]), found))
        some = np.delete(some, longest)
    return runs.take(some), runs.take(some)


def _report(runs: Runs, conflicts: list[_Dispute], ledger: Ledger) -> None:
    if not conflicts:
        return
    involved = np.unique(np.concatenate([each.readings for each in conflicts]))
    ledger.add(
        "conflicting-readings",
        f"{count(len(conflicts), 'conflict')} between readings that no nonnegative series can meet "
        "together; correct one of each.",
        runs.position[involved],
        details=(_dispute_text(runs, each, ledger) for each in conflicts[:MAX_DETAILS]),
        series=runs.series_names(runs.series[involved]),
        set_aside=runs.position[np.array([each.left_out for each in conflicts])],
    )


def _dispute_text(runs: Runs, dispute: _Dispute, ledger: Ledger) -> str:
    rows, found = dispute.readings, dispute.conflict
    listed = ", ".join(
        f"row {ledger.row(int(runs.position[i]))} ({runs.span(i)}, total {runs.total[i]:g})"
        for i in rows[:6]
    )
    more = f" and {len(rows) - 6} more" if len(rows) > 6 else ""
    calendar = runs.calendar
    return (
        f"series {runs.name(rows[0])!r}, {calendar.text(found.first)} to "
        f"{calendar.text(found.last)}: {listed}{more} miss each other by {found.amount:g}"
    )


def _join(parts: list[Runs]) -> Runs:
    """All of them, in order of series and time."""
    together = parts[0].join(parts[1:])
    return together.take(np.lexsort((together.start, together.series)))
