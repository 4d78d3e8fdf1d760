"""The default: the method that splits merged readings best."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from unsum.draws import sample_series
from unsum.errors import ParameterError, require_count
from unsum.methods import Fit, Method, Progress
from unsum.methods.denton import Denton
from unsum.methods.even import Even
from unsum.methods.panel import MAX_PERIODS, PanelFit, PanelModel
from unsum.population.learn import STEPS
from unsum.readings import Readings

SHRINKAGES = (0.2, 0.5, 0.8)
TRIAL_STEPS = 10  # of learning, while methods are compared
MAX_READINGS = 8_000  # of the series that methods are compared on


@dataclass(frozen=True)
class Auto:
    """Try methods on merged readings, and recover by the one that predicts their split best.

    Parameters
    ----------
    folds
        How many times neighbouring readings are merged at random.
    seed
        Seed of the merging, and of the sample of series that a large panel is judged by.
    """

    folds: int = 2
    seed: int = 0

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        for name, least in (("folds", 1), ("seed", 0)):
            require_count(name, getattr(self, name), least)

    @property
    def max_iter(self) -> int:
        """How often progress is told of."""
        return self.folds * len(self._methods(1))

    def fit(
        self, readings: Readings, threads: int | None = None, progress: Progress | None = None
    ) -> Fit:
        from unsum.selection.choosing import expected_error, score_candidates

        places = self._sample(readings)
        sample = readings if len(places) == readings.n_series else readings.take(places)
        try:
            candidates = score_candidates(
                sample, self._methods(readings.n_periods), folds=self.folds, seed=self.seed,
                threads=threads, progress=progress,
            )  # fmt: skip
        except ParameterError as problem:
            why = f"methods cannot be compared: {problem} Then auto takes denton"
            return AutoFit(Denton().fit(readings), "denton", why)
        best = candidates[0]
        method = best.method
        if isinstance(method, PanelModel):
            method = replace(method, steps=STEPS)
        fit, error = method.fit(readings, threads), None
        if isinstance(fit, PanelFit) and best.calibration is not None:
            judged = fit if sample is readings else fit.take(places)
            error = expected_error(judged, sample, best.calibration)
        scores = ", ".join(f"{each.label} {each.score:.3f}" for each in candidates)
        why = f"it split merged readings best: {scores}"
        table = [
            {
                "candidate": each.label,
                "score": each.score,
                "standard_error": each.standard_error,
            }
            for each in candidates
        ]
        return AutoFit(fit, best.method.name, why, table, error)

    def _methods(self, n_periods: int) -> list[tuple[str, Method]]:
        methods: list[tuple[str, Method]] = [("even", Even()), ("denton", Denton())]
        if n_periods <= MAX_PERIODS:
            methods += [
                (
                    f"panel (shrinkage {value})",
                    PanelModel(shrinkage=value, steps=TRIAL_STEPS, seed=self.seed),
                )
                for value in SHRINKAGES
            ]
        return methods

    def _sample(self, readings: Readings) -> np.ndarray:
        """All series, or some that have enough readings to judge by."""
        if readings.n_readings <= MAX_READINGS:
            return np.arange(readings.n_series)
        size = max(1, readings.n_series * MAX_READINGS // readings.n_readings)
        return sample_series(readings.names, size, self.seed)


@dataclass
class AutoFit:
    """The fit of the chosen method, with the reasons."""

    fit: Fit
    method: str
    why: str
    candidates: list[dict[str, Any]] = field(default_factory=list)
    expected_error: float | None = None

    @property
    def stop_reason(self) -> str:
        return self.fit.stop_reason

    @property
    def profiles(self) -> np.ndarray | None:
        return self.fit.profiles

    @property
    def weights(self) -> np.ndarray | None:
        return self.fit.weights

    @property
    def history(self) -> dict[str, np.ndarray]:
        return self.fit.history

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        self.fit.fill(first, part, values)
