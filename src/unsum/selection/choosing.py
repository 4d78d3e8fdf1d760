"""Choosing a method by how well it splits merged readings, and what error to expect of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unsum.methods import Method
from unsum.methods.panel import PanelFit
from unsum.population.uncertainty import Conditional
from unsum.readings import Readings
from unsum.selection.merging import Merged, merge_neighbours

FOLDS = 3


@dataclass(frozen=True)
class Candidate:
    """A method, and how it did on each fold."""

    label: str
    method: Method
    scores: np.ndarray  # relative errors of the split, by fold
    calibration: float | None = None  # squared error of the split over its variance, if it has one

    @property
    def score(self) -> float:
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        n = len(self.scores)
        return float(self.scores.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


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
        scores, squares, variances = [], 0.0, 0.0
        for fold in merged:
            recovery = recover(fold.readings, method, threads=threads)
            scores.append(fold.score(recovery.values))
            if isinstance(recovery.fit, PanelFit):
                gap, variance = _calibrate(fold, recovery.values, recovery.fit)
                squares, variances = squares + gap, variances + variance
            if progress is not None:
                progress(1)
        ratio = squares / variances if variances > 0 else None
        candidates.append(Candidate(label, method, np.array(scores), ratio))
    return sorted(candidates, key=lambda candidate: candidate.score)


def _calibrate(fold: Merged, values: np.ndarray, fit: PanelFit) -> tuple[float, float]:
    """Squared errors of the split, and what the model expects of them, in scaled units."""
    part = fold.readings
    level = np.where(fit.levels > 0, fit.levels, 1.0)
    conditional = Conditional(
        fit.population, part, part.total / np.repeat(level, np.diff(part.indptr))
    )
    variance = conditional.variances_of_sums(fold.series, fold.start, fold.middle)
    gap = fold.gaps(values, level[fold.series])
    weight = 1 / (fold.middle - fold.start) + 1 / (fold.stop - fold.middle)
    return float(np.sum(gap**2 * weight)), float(np.sum(variance * weight))


def expected_error(fit: PanelFit, readings: Readings, calibration: float) -> float:
    """The mean-normalised error over covered periods that the population expects of itself."""
    useful = np.flatnonzero(fit.levels > 0)
    part = readings.take(useful)
    scaled = part.total / np.repeat(fit.levels[useful], np.diff(part.indptr))
    conditional = Conditional(fit.population, part, scaled)
    covered = part.covered()
    means = np.where(covered, conditional.means, 0.0)
    size = np.maximum(means.sum(axis=1) / covered.sum(axis=1), 1e-12) ** 2
    variance = np.sum(np.where(covered, conditional.variances(), 0.0), axis=1)
    squares = np.sum(means**2, axis=1)
    return float(
        np.sqrt(calibration * np.sum(variance / size) / np.sum((squares + variance) / size))
    )
