"""Readings that say something only together.

A credit and what it corrects: their sum counts. An estimated reading and the actual one after it,
where meters are read by registers: the actual one makes up for what was estimated wrongly, so their
sum is exact and the estimate is a guess at its part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise

import numpy as np

from unsum.findings import MAX_DETAILS
from unsum.tables.ledger import Ledger, count
from unsum.tables.rows import Options
from unsum.tables.runs import Runs

ROUNDING = 1e-12  # of totals: what is smaller is nothing


@dataclass(frozen=True)
class _Item:
    """A reading, or several that became one; `parts` are their places in the runs."""

    start: int
    stop: int
    total: float
    estimated: bool
    parts: tuple[int, ...]
    guesses: tuple[int, ...] = field(default=())  # the estimates among the parts
    size: float = 0.0  # the sum of absolute totals, which rounding is judged by

    @property
    def is_credit(self) -> bool:
        return self.total < -ROUNDING * self.size

    def join(self, other: _Item) -> _Item:
        """Both as one; an estimate stays a guess at its part."""
        guesses = self.guesses + other.guesses
        for each in (self, other):
            if each.estimated and not each.guesses:
                guesses += each.parts
        return _Item(
            min(self.start, other.start), max(self.stop, other.stop), self.total + other.total,
            self.estimated and other.estimated, self.parts + other.parts, guesses,
            self.size + other.size,
        )  # fmt: skip


def pair_readings(runs: Runs, options: Options, ledger: Ledger) -> tuple[Runs, Runs]:
    """Net credits and join estimates with what makes up for them, as the options say.

    Returns the readings, sorted as before, and the estimates that are now only guesses.
    """
    nothing = runs.take(np.empty(0, np.int64))
    affected = np.unique(runs.series[_touched(runs, options)])
    if not len(affected):
        return runs, nothing
    alone = np.flatnonzero(~np.isin(runs.series, affected))
    parts, guesses = [runs.take(alone)], [nothing]
    made_up: list[_Item] = []
    netted: list[_Item] = []
    lost: list[int] = []
    for low, high in np.searchsorted(runs.series, [affected, affected + 1]).T:
        items = [_item(runs, i) for i in range(low, high)]
        if options.true_up:
            items = _make_up(items, made_up)
        items = _net(items, netted, lost)
        parts.append(_runs_of(runs, items))
        guesses += [runs.take(_possible(runs, each)) for each in items if each.guesses]
    _report(runs, made_up, netted, lost, ledger)
    together = parts[0].join(parts[1:])
    order = np.lexsort((together.start, together.series))
    return together.take(order), guesses[0].join(guesses[1:])


def _possible(runs: Runs, item: _Item) -> np.ndarray:
    """The guesses that can be a part of what they were joined to."""
    guesses = np.array(item.guesses)
    amounts = runs.total[guesses]
    return np.asarray(guesses[(amounts >= 0) & (amounts <= item.total)])


def _touched(runs: Runs, options: Options) -> np.ndarray:
    """Readings for whose series something is to be done."""
    touched = runs.total < 0
    if options.true_up and runs.estimated is not None:
        touched = touched | runs.estimated
    return touched


def _item(runs: Runs, i: int) -> _Item:
    estimated = runs.estimated is not None and bool(runs.estimated[i])
    total = float(runs.total[i])
    return _Item(
        int(runs.start[i]), int(runs.stop[i]), total, estimated, (int(i),), size=abs(total)
    )


def _runs_of(runs: Runs, items: list[_Item]) -> Runs:
    """Items as readings that stand where the last of their rows does."""
    source = np.array([each.parts[-1] for each in items], np.int64)
    made = runs.take(source).with_intervals(
        np.array([each.start for each in items], np.int32),
        np.array([each.stop for each in items], np.int32),
        np.array([max(each.total, 0.0) for each in items], np.float64),
    )
    if runs.estimated is None:
        return made
    return made.with_estimated(np.array([each.estimated for each in items], np.bool_))


def _make_up(items: list[_Item], made_up: list[_Item]) -> list[_Item]:
    """Estimates, one after the other, joined with the actual reading that follows them."""
    made: list[_Item] = []
    waiting: list[_Item] = []
    for item in items:
        if waiting and item.start != waiting[-1].stop:
            made += waiting
            waiting = []
        if item.estimated:
            waiting.append(item)
            continue
        if waiting:
            item = reduce(_Item.join, [*waiting, item])
            made_up.append(item)
            waiting = []
        made.append(item)
    return made + waiting


def _net(items: list[_Item], netted: list[_Item], lost: list[int]) -> list[_Item]:
    """Credits joined with what they correct, one after the other."""
    given = set(items)
    while True:
        credit = next((each for each in items if each.is_credit), None)
        if credit is None:
            netted += [each for each in items if each not in given]
            return items
        others = [each for each in items if each is not credit]
        joined = _find_cover(credit, others)
        if joined is None:
            lost += credit.parts
            items = others
        else:
            used = set(joined.parts)
            items = [each for each in others if not used & set(each.parts)]
            again = [
                each for each in items if (each.start, each.stop) == (joined.start, joined.stop)
            ]
            if again and abs(joined.total) <= ROUNDING * joined.size:  # cancelled, billed again
                items = [each for each in items if each is not again[0]]
                joined = joined.join(again[0])
            items = sorted([*items, joined], key=lambda each: (each.start, each.stop))


def _find_cover(credit: _Item, others: list[_Item]) -> _Item | None:
    """A credit with as many others as it takes to be negative no more, or None."""
    while credit.is_credit:
        partners = _partners(credit, others)
        if not partners:
            return None
        credit = reduce(_Item.join, [*partners, credit])
        others = [each for each in others if each not in partners]
    return credit


def _partners(credit: _Item, others: list[_Item]) -> list[_Item]:
    """What a credit corrects: a row of the same interval, or what it overlaps, or what it touches.

    Of several rows of its interval it cancels the one of its amount. Rows that overlap each other
    say nothing clear about a credit.
    """
    span = (credit.start, credit.stop)
    same = [each for each in others if (each.start, each.stop) == span and not each.is_credit]
    if same:
        equal = [each for each in same if abs(each.total + credit.total) <= ROUNDING * each.size]
        return equal[:1] or (same if len(same) == 1 else [])
    rules: tuple[Callable[[_Item], bool], ...] = (
        lambda each: each.start < credit.stop and credit.start < each.stop,
        lambda each: each.stop == credit.start,
        lambda each: each.start == credit.stop,
    )
    for rule in rules:
        found = [each for each in others if rule(each)]
        if found:
            apart = all(one.stop <= two.start for one, two in pairwise(found))
            return found if apart else []
    return []


def _report(
    runs: Runs, made_up: list[_Item], netted: list[_Item], lost: list[int], ledger: Ledger
) -> None:
    for code, items, sentence in (
        ("made-up", made_up, "made up of estimates and the actual reading after them"),
        ("netted", netted, "made up of a credit and what it corrects"),
    ):
        if items:
            where = np.array(sorted({part for each in items for part in each.parts}))
            ledger.add(
                code,
                f"{count(len(items), 'total')} {sentence}; only these bind.",
                runs.position[where],
                details=(_text(runs, each, ledger) for each in items[:MAX_DETAILS]),
                series=runs.series_names(runs.series[where]),
            )
    if lost:
        where = np.array(sorted(set(lost)))
        ledger.add(
            "negative-total",
            f"{count(len(where), 'row')} with a negative total (a credit or correction) and "
            "nothing to net it with.",
            runs.position[where],
            set_aside=runs.position[where],
        )


def _text(runs: Runs, item: _Item, ledger: Ledger) -> str:
    rows = ", ".join(
        f"{runs.total[part]:g} (row {ledger.row(int(runs.position[part]))})"
        for part in item.parts[:6]
    )
    span = f"{runs.calendar.text(item.start)} to {runs.calendar.text(item.stop)}"
    return f"series {runs.name(item.parts[0])!r}, {span}: {rows} make {item.total:g}"
