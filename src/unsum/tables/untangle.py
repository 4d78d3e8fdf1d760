"""Overlapping readings of one series, turned into disjoint ones that say the same.

The level of a series is its running sum. A reading of [start, stop) says by how much the level
rises from start to stop, and a nonnegative series says that it never falls. Each of these limits
the difference of two levels, so levels that meet all limits are shortest paths; where there are
none, some limits contradict each other around a cycle (Bellman and Ford).

Totals are turned into whole numbers of a common unit, so that no verdict depends on the rounding
of sums. Only the totals given may be rounded, each by one part in 2**31 of itself: this keeps every
reading within 1e-9 of the sum of the readings derived from it. A cut is a period where a reading
starts or stops.

What to do with readings in conflict, and how to name them to a user, is decided elsewhere.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

FINENESS = 1 << 50
# By how much of itself a total may be off: the first of these that suffices, so that readings
# that agree exactly stay exact, and the rounding of decimals moves nothing by more than that.
SLACKS = (0, 1, 1 << 10, 1 << 19)


@dataclass(frozen=True)
class Untangled:
    """Disjoint readings that follow from overlapping ones, and those that cannot be made disjoint.

    Disjoint readings are in order of time. `rest` holds start, stop and total of the readings that
    interleave with them. Together they imply every reading given.
    """

    start: np.ndarray
    stop: np.ndarray
    total: np.ndarray
    rest: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Conflict:
    """Readings that no nonnegative series can meet together; without any one of them, some could.

    `readings` are their places in the input, [first, last) the periods they span, and `amount` is
    by how much they miss each other.
    """

    readings: np.ndarray
    first: int
    last: int
    amount: float


class _Reading(NamedTuple):
    place: int
    start: int
    stop: int
    amount: int  # the total, as a whole number of units


class _Limit(NamedTuple):
    """The level at `head` is at most that at `tail` plus `rise`, because of `reading` if any."""

    tail: int
    head: int
    rise: int
    reading: _Reading | None


def untangle(start: np.ndarray, stop: np.ndarray, total: np.ndarray) -> Untangled | Conflict:
    """Disjoint readings of one series that follow from these, or the first conflict among these.

    Readings are sorted by start. A reading that overlaps with no other stays as it is.
    """
    heads, sizes = _clusters(start, stop)
    alone = heads[sizes == 1]
    chosen: list[tuple[int, int, float]] = []
    rest: list[tuple[int, int, float]] = []
    for low, size in zip(heads[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        cluster = slice(low, low + size)
        derived = _derive(start[cluster].tolist(), stop[cluster].tolist(), total[cluster].tolist())
        if isinstance(derived, Conflict):
            return replace(derived, readings=derived.readings + low)
        kept = _covering_most(derived)
        chosen += [reading for reading, keep in zip(derived, kept, strict=True) if keep]
        rest += [reading for reading, keep in zip(derived, kept, strict=True) if not keep]
    more_start, more_stop, more_total = _columns(chosen)
    in_time = np.argsort(np.concatenate([start[alone], more_start]))
    return Untangled(
        start=np.concatenate([start[alone], more_start])[in_time].astype(np.int32),
        stop=np.concatenate([stop[alone], more_stop])[in_time].astype(np.int32),
        total=np.concatenate([total[alone], more_total])[in_time].astype(np.float64),
        rest=_columns(rest),
    )


def _clusters(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First reading and number of readings of each cluster, between which no period is shared."""
    fresh = np.ones(len(start), bool)
    fresh[1:] = start[1:] >= np.maximum.accumulate(stop)[:-1]
    heads = np.flatnonzero(fresh)
    return heads, np.diff(np.append(heads, len(start)))


def _columns(readings: list[tuple[int, int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, stop, total = zip(*readings, strict=True) if readings else ((), (), ())
    return np.array(start, np.int32), np.array(stop, np.int32), np.array(total, np.float64)


def _derive(
    start: list[int], stop: list[int], total: list[float]
) -> list[tuple[int, int, float]] | Conflict:
    """All readings between neighbouring cuts of a group, in order of time, or a conflict."""
    ratios = [value.as_integer_ratio() for value in total]
    unit = max(denominator for _, denominator in ratios)
    amounts = [numerator * (unit // denominator) for numerator, denominator in ratios]
    readings = [
        _Reading(*each) for each in zip(range(len(total)), start, stop, amounts, strict=True)
    ]
    for slack in SLACKS:
        levels, cycle = _solve(readings, slack)
        if not cycle:
            break
    else:
        return _conflict(cycle, unit)

    given = {(start[i], stop[i]): total[i] for i in reversed(range(len(total)))}
    most = max(amounts) * FINENESS  # slack must not carry a total past the largest float
    derived = []
    for cuts in _groups(readings):
        for low, high in pairwise(sorted(cuts)):
            amount = min(levels[high] - levels[low], most) / (unit * FINENESS)
            derived.append((low, high, given.get((low, high), amount)))
    return sorted(derived)


def _solve(readings: list[_Reading], slack: int) -> tuple[dict[int, int], list[_Limit]]:
    """Levels that meet all readings and never fall, or else limits that form a negative cycle.

    Whole numbers are exact, so this ends: where there is no negative cycle, levels settle, and
    where there is one, the limits that last lowered each level sooner or later form one.
    """
    cuts = sorted({cut for reading in readings for cut in (reading.start, reading.stop)})
    limits = _limits(readings, cuts, slack)
    levels = dict.fromkeys(cuts, 0)
    lowered_by: dict[int, _Limit] = {}
    while True:
        settled = True
        for limit in limits:
            tail, head, rise, _ = limit
            level = levels[tail] + rise
            if level < levels[head]:
                levels[head] = level
                lowered_by[head] = limit
                settled = False
        cycle = [] if settled else _cycle(lowered_by)
        if settled or cycle:
            return levels, cycle


def _limits(readings: list[_Reading], cuts: list[int], slack: int) -> list[_Limit]:
    """What readings and nonnegativity say of the levels, once forward and once backward in time.

    In this order one pass carries a level along a whole chain of readings.
    """
    forward = [
        _Limit(each.start, each.stop, each.amount * (FINENESS + slack), each) for each in readings
    ]
    backward = [
        _Limit(each.stop, each.start, -each.amount * (FINENESS - slack), each) for each in readings
    ]
    backward += [_Limit(later, earlier, 0, None) for earlier, later in pairwise(cuts)]
    forward.sort(key=lambda limit: limit.tail)
    backward.sort(key=lambda limit: -limit.tail)
    return forward + backward


def _cycle(lowered_by: dict[int, _Limit]) -> list[_Limit]:
    """The limits of a cycle met on the way back from some cut, or none; no cut is on it twice."""
    met: dict[int, int] = {}
    for begin in lowered_by:
        cut = begin
        while cut in lowered_by and cut not in met:
            met[cut] = begin
            cut = lowered_by[cut].tail
        if met.get(cut) == begin:
            cycle = [lowered_by[cut]]
            while cycle[-1].tail != cut:
                cycle.append(lowered_by[cycle[-1].tail])
            return cycle
    return []


def _conflict(cycle: list[_Limit], unit: int) -> Conflict:
    """The readings of a cycle, reduced to some of which none can be spared.

    The readings of one cycle may form another that needs fewer of them, since each limits the
    level in both directions; so each is left out in turn.
    """
    for spared in _readings_of(cycle):
        others = [reading for reading in _readings_of(cycle) if reading is not spared]
        cycle = _solve(others, SLACKS[-1])[1] or cycle
    readings = _readings_of(cycle)
    rise = sum(
        limit.reading.amount if limit.head > limit.tail else -limit.reading.amount
        for limit in cycle
        if limit.reading
    )
    # A miss beyond every total would leave a conflict without one of them, but for the slack.
    amount = min(-rise, max(reading.amount for reading in readings))
    return Conflict(
        readings=np.array(sorted(reading.place for reading in readings)),
        first=min(reading.start for reading in readings),
        last=max(reading.stop for reading in readings),
        amount=amount / unit,
    )


def _readings_of(cycle: list[_Limit]) -> list[_Reading]:
    return [limit.reading for limit in cycle if limit.reading]


def _groups(readings: list[_Reading]) -> list[set[int]]:
    """Cuts by group: within one, readings tell the difference between any two levels."""
    group_of: dict[int, set[int]] = {}
    for reading in readings:
        large = group_of.setdefault(reading.start, {reading.start})
        small = group_of.setdefault(reading.stop, {reading.stop})
        if large is small:
            continue
        if len(large) < len(small):
            large, small = small, large
        large |= small
        group_of.update(dict.fromkeys(small, large))
    return list({id(group): group for group in group_of.values()}.values())


def _covering_most(readings: list[tuple[int, int, float]]) -> list[bool]:
    """Which of these, sorted by start, to keep so that they are disjoint and cover most periods.

    Among equals, more readings win, and then the first that starts earlier.
    """
    starts = [start for start, _, _ in readings]
    following = [bisect_left(starts, stop) for _, stop, _ in readings]
    best = [(0, 0)] * (len(readings) + 1)  # periods and readings kept, from each reading on
    taken = [False] * len(readings)
    for i in reversed(range(len(readings))):
        start, stop, _ = readings[i]
        covered, count = best[following[i]]
        with_it = (covered + stop - start, count + 1)
        taken[i] = with_it >= best[i + 1]
        best[i] = max(with_it, best[i + 1])
    kept = [False] * len(readings)
    i = 0
    while i < len(readings):
        kept[i] = taken[i]
        i = following[i] if taken[i] else i + 1
    return kept
