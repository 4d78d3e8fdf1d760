"""Two errors of a recovered panel, over all periods and over covered ones.

The paper's error is one number for the whole panel, so a few large series decide it; the
mean-normalised error divides every series by its mean first, so all series count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Errors:
    """Relative errors in Frobenius norm."""

    paper: float
    normalised: float
    paper_covered: float
    normalised_covered: float


def measure(truth: np.ndarray, values: np.ndarray, covered: np.ndarray) -> Errors:
    """The errors of values (n_series, n_periods) against the truth."""
    everywhere = np.ones_like(covered)
    return Errors(
        paper=_relative(truth, values, everywhere),
        normalised=_relative(*_divide_by_mean(truth, values), everywhere),
        paper_covered=_relative(truth, values, covered),
        normalised_covered=_relative(*_divide_by_mean(truth, values), covered),
    )


def _divide_by_mean(truth: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both panels with each series divided by its true mean; series of zeros stay as they are."""
    mean = truth.mean(axis=1, keepdims=True)
    mean[mean == 0] = 1.0
    return truth / mean, values / mean


def _relative(truth: np.ndarray, values: np.ndarray, where: np.ndarray) -> float:
    scale = truth.max() or 1.0  # squares of very large values would overflow
    size = np.linalg.norm(np.where(where, truth, 0) / scale)
    gap = np.linalg.norm(np.where(where, values - truth, 0) / scale)
    return float(gap / size) if size > 0 else float(gap > 0)
