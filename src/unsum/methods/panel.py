"""The panel model: all series from one Gaussian population, each given its readings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unsum.draws import sample_series
from unsum.errors import ParameterError, require_count
from unsum.indicators import Indicators, make_indicators
from unsum.measures import Measures
from unsum.methods import Progress, Settings
from unsum.population.informing import Informed, inform
from unsum.population.learn import SHRINKAGE, STEPS, learn_population
from unsum.population.model import Population
from unsum.population.stages import Stages, learn_windows
from unsum.population.uncertainty import Doubtful
from unsum.readings import Readings
from unsum.traits import Traits, make_traits

MAX_PERIODS = 2000  # of one population; longer grids are cut into blocks and windows
MAX_VALUES = 1_000_000  # of the series that the population is learned from


@dataclass(frozen=True)
class PanelModel(Settings):
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
    traits
        What is known about series, such as their tariff; see `unsum.traits`.
    doubt
        The usual relative error of estimated readings, where it is known; it is learned otherwise.
    seed
        Seed of the sample of series that a large population is learned from.
    """

    shrinkage: float = SHRINKAGE
    steps: int = STEPS
    season: int | None = None
    indicators: Any = None
    traits: Any = None
    doubt: float | None = None
    seed: int = 0

    name: ClassVar[str] = "panel"

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise ParameterError(f"shrinkage must lie between 0 and 1; got {self.shrinkage!r}.")
        require_doubt(self.doubt)
        for name, least in (("steps", 0), ("seed", 0)):
            require_count(name, getattr(self, name), least)
        if self.season is not None:
            require_count("season", self.season, 1)

    def with_steps(self, steps: int) -> PanelModel:
        return replace(self, steps=steps)

    def fit(
        self, readings: Readings, threads: int | None = None, progress: Progress | None = None
    ) -> PanelFit | StagedFit:
        if readings.n_periods > MAX_PERIODS:
            return self._fit_stages(readings, threads)
        return self._fit_at_once(readings, threads, progress)

    def _fit_at_once(
        self, readings: Readings, threads: int | None = None, progress: Progress | None = None
    ) -> PanelFit:
        n_periods = readings.n_periods
        useful = np.maximum.reduceat(readings.total, readings.indptr[:-1]) > 0
        if not useful.any():
            zeros = np.zeros((n_periods, n_periods))
            nobody = Population(np.ones(n_periods), zeros)
            history = {"objective": np.empty(0), "residual": np.empty(0)}
            reason = "all readings are zero, there is nothing to learn"
            return PanelFit(nobody, np.zeros(readings.n_series), history, reason)
        places = np.flatnonzero(useful)
        most = max(1, MAX_VALUES // n_periods)
        if len(places) > most:
            places = places[sample_series(readings.names.take(places), most, self.seed)]
        sample = readings.take(places)
        learned = learn_population(
            sample, shrinkage=self.shrinkage, steps=self.steps,
            season=self.season or readings.calendar.frequency.season,
            indicators=self._indicators(readings),
            traits=None if self.traits is None else make_traits(self.traits), doubt=self.doubt,
            seed=self.seed,
            threads=threads, progress=progress,
        )  # fmt: skip
        levels = learned.population.levels(readings)
        history = {"objective": -np.array(learned.likelihood), "residual": np.empty(0)}
        reason = f"the population was learned from {sample.n_series:,} series in {self.steps} steps"
        return PanelFit(learned.population, levels, history, reason, sample)

    def _fit_stages(self, readings: Readings, threads: int | None) -> StagedFit:
        """First by blocks, then within windows."""
        refuse_sides(readings, self.indicators, self.traits)
        season = self.season or readings.calendar.frequency.season
        stages = Stages.choose(readings.n_periods, season)
        by_blocks = stages.coarsen(readings)
        model = replace(self, season=7 if season > 1 and stages.block == season else 1)
        blocks = model._fit_at_once(by_blocks, threads)
        if not np.any(readings.total > 0):
            return StagedFit(stages, blocks, [], blocks.stop_reason)

        def fill_blocks(places: np.ndarray) -> np.ndarray:
            return fill_exactly(blocks.take(places), 0, by_blocks.take(places))

        windows = learn_windows(
            readings, stages, fill_blocks, shrinkage=self.shrinkage,
            season=season if stages.window > season else 1, seed=self.seed, threads=threads,
        )  # fmt: skip
        reason = (
            f"{blocks.stop_reason}, by blocks of {stages.block} periods; {len(windows)} "
            f"populations of windows of {stages.window}"
        )
        return StagedFit(stages, blocks, windows, reason)

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
    informed: Informed | None = None  # what further measures add

    profiles: ClassVar[None] = None
    weights: ClassVar[None] = None
    soft: ClassVar[bool] = True

    def take(self, series: np.ndarray) -> PanelFit:
        """The same population, for some series, without what further measures add."""
        return replace(self, levels=self.levels[series], informed=None)

    def inform(self, readings: Readings, measures: Measures, doubtful: Doubtful | None) -> PanelFit:
        """The same, knowing further measures of these series."""
        if not len(measures):
            return self
        if doubtful is None:
            if self.sample is None:
                return self
            doubtful = Doubtful.learned_from(self.sample, self.population)
        values = np.empty((readings.n_series, readings.n_periods))
        self.fill(0, readings, values)
        return replace(self, informed=inform(readings, measures, doubtful, self.levels, values))

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        from unsum.kernels.gaussian import condition_rows
        from unsum.kernels.totals import sum_readings

        level = self.levels[first : first + part.n_series]
        population = self.population
        total, shifts = population.scale(part, level), population.shift(part.names)
        if self.informed is not None:
            more = self.informed.shifts(first, part.n_series)
            total -= sum_readings(part.indptr, part.start, part.stop, more)
            shifts = shifts + more
        condition_rows(
            part.indptr, part.start, part.stop, total, population.noises(part), *population.sums,
            values,
        )  # fmt: skip
        values += shifts
        values *= level[:, None]

    @property
    def traits(self) -> Traits | None:
        return self.population.traits

    def forget(self) -> PanelFit:
        return replace(
            self, population=self.population.forget(), levels=self.levels[:0], sample=None,
            informed=None,
        )  # fmt: skip

    def apply(self, readings: Readings, traits: Traits | None, threads: int | None) -> PanelFit:  # noqa: ARG002
        population = self.population.knowing(traits)
        return replace(self, population=population, levels=population.levels(readings))


@dataclass
class StagedFit:
    """The population of blocks, and those of windows of blocks, of a long grid."""

    stages: Stages
    blocks: PanelFit
    windows: list[Population]
    stop_reason: str

    profiles: ClassVar[None] = None
    weights: ClassVar[None] = None

    @property
    def history(self) -> dict[str, np.ndarray]:
        return self.blocks.history

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        from unsum.kernels.gaussian import condition_rows

        stages = self.stages
        blocks = fill_exactly(self.blocks, first, stages.coarsen(part))
        groups = np.array_split(stages.begins, max(1, len(self.windows)))
        for population, begins in zip(self.windows, groups, strict=False):
            for begin in begins:
                seen, _ = stages.look(part, blocks, int(begin))
                own = np.diff(seen.indptr) > 0
                level = np.zeros(part.n_series)
                usable = seen.take(np.flatnonzero(own))
                level[own] = population.levels(usable)
                found = np.empty((usable.n_series, stages.window))
                condition_rows(
                    usable.indptr, usable.start, usable.stop,
                    population.scale(usable, level[own]), population.noises(usable),
                    *population.sums, found,
                )  # fmt: skip
                end = min(int(begin) + stages.window, part.n_periods)
                values[:, begin:end] = 0.0
                values[own, begin:end] = (found * level[own, None])[:, : end - int(begin)]
        if not self.windows:
            values[:] = 0.0

    def take(self, series: np.ndarray) -> StagedFit:
        return replace(self, blocks=self.blocks.take(series))

    def forget(self) -> StagedFit:
        return replace(self, blocks=self.blocks.forget())

    def apply(self, readings: Readings, traits: Traits | None, threads: int | None) -> StagedFit:
        blocks = self.blocks.apply(self.stages.coarsen(readings), traits, threads)
        return replace(self, blocks=blocks)


def require_doubt(doubt: float | None) -> None:
    if doubt is not None and not (isinstance(doubt, float | int) and 0 < doubt < np.inf):
        raise ParameterError(f"doubt must be positive, such as 0.2 for a fifth; got {doubt!r}.")


def refuse_sides(readings: Readings, indicators: Any, traits: Any) -> None:
    """Long grids have no place for them yet."""
    if indicators is not None or traits is not None:
        raise ParameterError(
            f"indicators and traits work up to {MAX_PERIODS} periods, these are "
            f"{readings.n_periods}; use a coarser step."
        )


def fill_exactly(fit: PanelFit, first: int, part: Readings) -> np.ndarray:
    """Conditional means that are nonnegative and meet their readings."""
    from unsum.kernels.totals import meet_totals

    values = np.empty((part.n_series, part.n_periods))
    fit.fill(first, part, values)
    meet_totals(*part.arrays, part.active, values)
    return values
