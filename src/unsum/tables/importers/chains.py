"""Reads of registers, one after the other: what they differ by, and where that says nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsum.calendar import DAY
from unsum.findings import MAX_DETAILS
from unsum.tables.importers.clock import Clock
from unsum.tables.importers.joined import find_row
from unsum.tables.ledger import Ledger, count

FASTEST = 10.0  # a rollover may be so many times as fast as the fastest other days of its register
SHARE = 0.1  # with no others to compare with, it may be this share of the register


@dataclass
class Reads:
    """Reads by register and date. Only reads of one chain may be subtracted."""

    names: list[str]  # of the registers
    clock: Clock
    ledger: Ledger
    position: np.ndarray  # the row of each read
    register: np.ndarray
    chain: np.ndarray
    moment: np.ndarray
    index: np.ndarray
    size: np.ndarray  # where the index begins again at zero; infinite where it is not known

    def take(self, places: np.ndarray) -> Reads:
        """Some of the reads."""
        arrays = (self.position, self.register, self.chain, self.moment, self.index, self.size)
        return Reads(self.names, self.clock, self.ledger, *(each[places] for each in arrays))

    def text(self, place: int) -> str:
        """Where and what a read is."""
        row = find_row(self.ledger.source, int(self.position[place]))
        when = self.clock.text(self.moment[place])
        return f"{self.index[place]:.15g} on {when} ({row})"

    def name(self, place: int | np.integer) -> str:
        return self.names[int(self.register[place])]


def subtract(reads: Reads, *, keep_negative: bool) -> tuple[np.ndarray, np.ndarray]:
    """The places of the first read of each usable pair, and the difference to the next read.

    Reads must be sorted by chain and moment. Rollovers are undone; other decreases are errors,
    after which a register starts anew, unless they are kept.
    """
    _judge_changes(reads)
    pairs = np.flatnonzero(np.diff(reads.chain) == 0)
    amount = reads.index[pairs + 1] - reads.index[pairs]
    decrease = amount < 0
    if decrease.any():
        size = reads.size[pairs + 1]
        rolled = decrease & _is_rollover(reads, pairs, amount, size)
        amount = np.where(rolled, amount + np.where(np.isfinite(size), size, 0.0), amount)
        _report_rollovers(reads, pairs[rolled], amount[rolled])
        decrease &= ~rolled
    if decrease.any() and not keep_negative:
        _judge_decreases(reads, pairs[decrease])
        usable = reads.ledger.in_use[reads.position[pairs]]
        usable &= reads.ledger.in_use[reads.position[pairs + 1]]
        pairs, amount = pairs[usable], amount[usable]
    _judge_lone(reads, pairs)
    return pairs, amount


def _judge_changes(reads: Reads) -> None:
    """New meters: the first read of every chain of a register but its first."""
    heads = np.flatnonzero(np.diff(reads.chain, prepend=-1))
    begun = heads[np.lexsort((reads.moment[heads], reads.register[heads]))]
    later = begun[np.diff(reads.register[begun], prepend=-1) == 0]
    if len(later):
        reads.ledger.add(
            "meter-change",
            f"{count(len(later), 'new meter')} (or new constant or unit): "
            "differences are taken between reads of the same one.",
            reads.position[later],
            details=(f"{reads.name(i)!r}: {reads.text(i)}" for i in later[:MAX_DETAILS]),
            series=dict.fromkeys(reads.name(i) for i in later),
        )


def _is_rollover(
    reads: Reads, pairs: np.ndarray, amount: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Decreases that are plausible as a register beginning again at zero."""
    days = np.maximum((reads.moment[pairs + 1] - reads.moment[pairs]) / DAY, 1e-6)
    owner = reads.register[pairs]
    fastest = np.zeros(len(reads.names))
    rises = amount > 0
    with np.errstate(over="ignore"):
        np.maximum.at(fastest, owner[rises], amount[rises] / days[rises])
        most = np.where(fastest[owner] > 0, FASTEST * fastest[owner] * days, SHARE * size)
    wrapped = amount + size
    return np.asarray(np.isfinite(size) & (wrapped <= most))


def _report_rollovers(reads: Reads, first: np.ndarray, amount: np.ndarray) -> None:
    if len(first):
        reads.ledger.add(
            "rollover",
            f"{count(len(first), 'register')} that began again at zero.",
            reads.position[first + 1],
            details=(
                f"{reads.name(i)!r}: {reads.text(i)}, then {reads.text(i + 1)}: used {used:.15g}"
                for i, used in zip(first[:MAX_DETAILS], amount, strict=False)
            ),
            series=dict.fromkeys(reads.name(i) for i in first),
        )


def _judge_decreases(reads: Reads, first: np.ndarray) -> None:
    places = np.union1d(first, first + 1)
    sized = np.isfinite(reads.size[first + 1]).any()
    rollover = "it is too large for a rollover" if sized else "give digits=5 (--digits 5), say"
    reads.ledger.add(
        "negative-difference",
        f"{count(len(first), 'read')} lower than the one before. Where a register began again at "
        f"zero, {rollover}; where the meter was changed, name the column of serial numbers "
        "(--serial); where a meter runs backwards, keep_negative=True (--keep-negative); else "
        "correct the read, or set both aside: drop_bad=True (--drop-bad).",
        reads.position[places],
        details=(
            f"{reads.name(i)!r}: {reads.text(i)}, then {reads.text(i + 1)}"
            for i in first[:MAX_DETAILS]
        ),
        series=dict.fromkeys(reads.name(i) for i in first),
        set_aside=reads.position[places],
    )


def _judge_lone(reads: Reads, pairs: np.ndarray) -> None:
    """Reads that have no part in any difference."""
    used = np.zeros(len(reads.position), bool)
    used[pairs] = used[pairs + 1] = True
    where = np.flatnonzero(~used & reads.ledger.in_use[reads.position])
    if len(where):
        reads.ledger.add(
            "lone-read",
            f"{count(len(where), 'read')} with no other read to subtract.",
            reads.position[where],
            details=(f"{reads.name(i)!r}: {reads.text(i)}" for i in where[:MAX_DETAILS]),
            series=dict.fromkeys(reads.name(i) for i in where),
            set_aside=reads.position[where],
        )
