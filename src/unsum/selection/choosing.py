"""Choosing a method by how well it splits merged readings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from unsum.methods import Fit, Method
from unsum.readings import Readings
from unsum.selection.merging import Merged, merge_neighbours

FOLDS = 2


@dataclass(frozen=True)
class Trial:
    """What a method made of merged readings."""

    merged: Merged
    values: np.ndarray
    fit: Fit

    def squares_by_series(self) -> np.ndarray:
        """The squared errors of the hidden readings of each series that has any, added up."""
        series = self.merged.hidden.series_of_readings()
        sums = np.bincount(series, self.merged.errors(self.values) ** 2)
        return np.asarray(sums[np.bincount(series) > 0])


@dataclass(frozen=True)
class Candidate:
    """A method, and how it did: the relative error of its splits, and the error of that."""

    label: str
    method: Method
    score: float
    standard_error: float
    trials: list[Trial] = field(repr=False)

    def is_close_to(self, other: Candidate) -> bool:
        """Whether it may well be no worse: squares within a standard error of the difference.

        A few wild series can hold most of the squared error. Then their difference is uncertain.
        """
        gaps, variances = [], []
        for own, others in zip(self.trials, other.trials, strict=True):
            gap = own.squares_by_series() - others.squares_by_series()
            gaps.append(gap.sum())
            variances.append(len(gap) * gap.var())
        return bool(np.mean(gaps) <= np.sqrt(np.mean(variances)))

    def to_dict(self) -> dict[str, float | str]:
        return {
            "candidate": self.label, "score": self.score, "standard_error": self.standard_error,
        }  # fmt: skip


def score_candidates(
    readings: Readings,
    methods: Sequence[tuple[str, Method]],
    *,
    folds: int = FOLDS,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Candidate]:
    """Score every method on the same folds, best first."""
    from unsum.recovering import recover

    merged = [merge_neighbours(readings, seed=seed + fold) for fold in range(folds)]
    candidates = []
    for label, method in methods:
        trials = []
        for fold in merged:
            recovery = recover(fold.readings, method, threads=threads)
            trials.append(Trial(fold, recovery.values, recovery.fit))
            if progress is not None:
                progress(1)
        candidates.append(Candidate(label, method, *_judge(trials), trials))
    return sorted(candidates, key=lambda candidate: candidate.score)


def _judge(trials: Sequence[Trial]) -> tuple[float, float]:
    """The mean score over folds, and its standard error from series to series."""
    scores, variances = [], []
    for trial in trials:
        fold = trial.merged
        scores.append(fold.score(trial.values))
        series = fold.hidden.series_of_readings()
        count = np.bincount(series)
        by_series = np.bincount(series, fold.errors(trial.values))
        size = float(fold.sizes().sum())
        apart = (by_series - count * by_series.sum() / count.sum()) / (size or 1.0)
        variances.append(float(apart @ apart))
    return float(np.mean(scores)), float(np.sqrt(np.mean(variances)))
