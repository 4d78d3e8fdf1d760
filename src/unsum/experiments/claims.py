"""What the text of Section 3 claims, claim by claim, against the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unsum.experiments.summary import Cell, Summary

EQUIVALENT = 0.05  # relative difference of errors that still counts as equivalent
MOSTLY = 0.75  # of the cells
FAR = 0.8  # "by large": at most this part of the other error


@dataclass(frozen=True)
class Yardstick:
    """An error, and the even spreading that the algorithms are measured against."""

    name: str
    error: str
    even: str


YARDSTICKS = (
    Yardstick("the paper's error", "paper", "even"),
    Yardstick("the same; even spreading left at zero where nothing is read", "paper", "even-0"),
    Yardstick("the same, over covered periods only", "paper_covered", "even"),
    Yardstick("every series divided by its mean", "normalised", "even"),
)

Value = Callable[[Summary, Cell, Yardstick], float]


@dataclass(frozen=True)
class Claim:
    """What the paper says, in short, and the test that each cell of the grid must pass."""

    name: str
    sentence: str
    test: str
    where: Callable[[Cell], bool]
    value: Value
    limit: float


@dataclass(frozen=True)
class Verdict:
    """How many cells pass, and how far."""

    claim: Claim
    yard: Yardstick
    cells: list[Cell]
    values: np.ndarray

    @property
    def passed(self) -> np.ndarray:
        return self.values <= self.claim.limit

    def __str__(self) -> str:
        if not len(self.values):
            return "not tested by this grid"
        n_passed, n = int(self.passed.sum()), len(self.values)
        word = "does not hold"
        if n_passed == n:
            word = "holds"
        elif n_passed >= MOSTLY * n:
            word = "mostly holds"
        elif n_passed >= 0.5 * n:
            word = "holds in part"
        return f"{word} ({n_passed} of {n} cells)"


def _ratio(method: str, other: str = "") -> Value:
    """The error of a method over that of another, by default over the yardstick's."""

    def value(summary: Summary, cell: Cell, yard: Yardstick) -> float:
        own = summary.best(cell, method, error=yard.error)
        return own / summary.best(cell, other or yard.even, error=yard.error)

    return value


def _updates(summary: Summary, cell: Cell, yard: Yardstick) -> float:
    """The larger relative difference between the updates, of both algorithms."""
    gaps = []
    for method in ("nmf", "nmf-ar"):
        hals, nenmf = (
            summary.best(cell, method, update, yard.error) for update in ("hals", "nenmf")
        )
        gaps.append(abs(hals - nenmf) / min(hals, nenmf))
    return max(gaps)


def _worse(summary: Summary, cell: Cell, yard: Yardstick) -> float:
    return max(_ratio(method)(summary, cell, yard) for method in ("nmf", "nmf-ar"))


def _unlike(summary: Summary, cell: Cell, yard: Yardstick) -> float:
    return 1 / _ratio("nmf")(summary, cell, yard)


def _is_real(cell: Cell) -> bool:
    return cell.dataset != "synthetic"


CLAIMS = (
    Claim(
        "Updates are equivalent",
        "It does not matter whether W and H are updated by NeNMF or by HALS.",
        f"the errors of the two differ by at most {EQUIVALENT:.0%}, for both algorithms",
        lambda cell: True,  # noqa: ARG005
        _updates,
        EQUIVALENT,
    ),
    Claim(
        "Few readings: both beat interpolation by far",
        "Below a sampling rate of 10 %, both algorithms are much better than interpolation.",
        f"rates below 10 %: the worse algorithm has at most {FAR:.0%} of the error of even "
        "spreading",
        lambda cell: cell.rate < 0.1,
        _worse,
        FAR,
    ),
    Claim(
        "Many random readings: Algorithm 1 works",
        "Above it, Algorithm 1 goes on working well when dates of reading are random.",
        "rates from 10 %, random: the error of Algorithm 1 is below that of even spreading",
        lambda cell: cell.rate >= 0.1 and cell.scheme == "random",
        _ratio("nmf"),
        1.0,
    ),
    Claim(
        "Many periodic readings of real data: Algorithm 1 works less well",
        "On real data read periodically, it does less well there.",
        "rates from 10 %, periodic, real data: even spreading is better than Algorithm 1",
        lambda cell: cell.rate >= 0.1 and cell.scheme == "periodic" and _is_real(cell),
        _unlike,
        1.0,
    ),
    Claim(
        "The penalty compensates",
        "The penalty of Algorithm 2 more than makes up for that.",
        "rates from 10 %, periodic, real data: Algorithm 2 is better than Algorithm 1",
        lambda cell: cell.rate >= 0.1 and cell.scheme == "periodic" and _is_real(cell),
        _ratio("nmf-ar", "nmf"),
        1.0,
    ),
    Claim(
        "Algorithm 2 always beats interpolation",
        "Algorithm 2 is better than interpolation throughout, under both schemes.",
        "everywhere: the error of Algorithm 2 is below that of even spreading",
        lambda cell: True,  # noqa: ARG005
        _ratio("nmf-ar"),
        1.0,
    ),
)


def judge(summary: Summary, claim: Claim) -> list[Verdict]:
    """A verdict by every yardstick."""
    cells = [cell for cell in summary.cells() if claim.where(cell)]
    return [
        Verdict(claim, yard, cells, np.array([claim.value(summary, cell, yard) for cell in cells]))
        for yard in YARDSTICKS
    ]
