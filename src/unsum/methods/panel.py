"""The panel model: all series from one Gaussian population, each given its readings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unsum.draws import sample_series
from unsum.errors import ParameterError, require_count
from unsum.indicators import Indicators, make_indicators
from unsum.methods import Progress
from unsum.population.learn import SHRINKAGE, STEPS, learn_population
from unsum.population.model import Population
from unsum.readings import Readings

MAX_PERIODS = 2000  # the covariance has the square of it
MAX_VALUES = 1_000_000  # of the series that the population is learned from


@dataclass(frozen=True)
class PanelModel:
    """Recover each series as the mean of a Gaussian population, given its readings.

    Parameters
    ----------
    shrinkage
        How far the covariance is moved towards a stationary one, between 0 and 1.
    steps
        Steps of learning (EM).
    season
        After how many periods the covariance may repeat itself. By default a week of days, a day of
        shorter steps, and none (1) for other steps.
    indicators
        What is known about periods, such as temperature; see `unsum.indicators`.
    seed
        Seed of the sample of series that a large population is learned from.
    """

    shrinkage: float = SHRINKAGE
    steps: int = STEPS
    season: int | None = None
    indicators: Any = None
    seed: int = 0

    name: ClassVar[str] = "panel"

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise ParameterError(f"shrinkage must lie between 0 and 1; got {self.shrinkage!r}.")
        for name, least in (("steps", 0), ("seed", 0)):
            require_count(name, getattr(self, name), least)
        if self.season is not None:
            require_count("season", self.season, 1)

    def with_steps(self, steps: int) -> PanelModel:
        return replace(self, steps=steps)

    def fit(
        self, readings: Readings, threads: int | None = None, progress: Progress | None = None
    ) -> PanelFit:
        n_periods = readings.n_periods
        if n_periods > MAX_PERIODS:
            raise ParameterError(
                f"method 'panel' handles up to {MAX_PERIODS} periods, these are {n_periods}; use a "
                "coarser step, or another method."
            )
        useful = np.maximum.reduceat(readings.total, readings.indptr[:-1]) > 0
        if not useful.any():
            zeros = np.zeros((n_periods, n_periods))
            nobody = Population(np.ones(n_periods), zeros)
            history = {"objective": np.empty(0), "residual": np.empty(0)}
            reason = "all readings are zero, there is nothing to learn"
            return PanelFit(nobody, np.zeros(readings.n_series), history, reason)
        sample = readings.take(np.flatnonzero(useful))
        most = max(1, MAX_VALUES // n_periods)
        if sample.n_series > most:
            sample = sample.take(sample_series(sample.names, most, self.seed))
        learned = learn_population(
            sample, shrinkage=self.shrinkage, steps=self.steps,
            season=self.season or readings.calendar.frequency.season,
            indicators=self._indicators(readings), seed=self.seed, threads=threads,
            progress=progress,
        )  # fmt: skip
        levels = learned.population.levels(readings)
        history = {"objective": -np.array(learned.likelihood), "residual": np.empty(0)}
        reason = f"the population was learned from {sample.n_series:,} series in {self.steps} steps"
        return PanelFit(learned.population, levels, history, reason, sample)

    def _indicators(self, readings: Readings) -> Indicators | None:
        if self.indicators is None:
            return None
        return make_indicators(self.indicators, readings.calendar)


@dataclass
class PanelFit:
    """The population, and the level of each series in it."""

    population: Population
    levels: np.ndarray
    history: dict[str, np.ndarray]
    stop_reason: str
    sample: Readings | None = None  # what the population was learned from

    profiles: ClassVar[None] = None
    weights: ClassVar[None] = None
    soft: ClassVar[bool] = True

    def take(self, series: np.ndarray) -> PanelFit:
        """The same population, for some series."""
        return replace(self, levels=self.levels[series])

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        from unsum.kernels.gaussian import condition_rows

        level = self.levels[first : first + part.n_series]
        population = self.population
        condition_rows(
            part.indptr, part.start, part.stop, population.scale(part, level),
            population.noises(part), *population.sums, values,
        )  # fmt: skip
        values *= level[:, None]
