"""The panel model: all series from one Gaussian population, each given its readings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unsum.calendar import DAY
from unsum.draws import sample_within
from unsum.errors import ParameterError, require_count
from unsum.indicators import Indicators, make_indicators
from unsum.measures import Measures
from unsum.methods import Progress, Settings
from unsum.population.informing import Informed, inform
from unsum.population.learn import SHRINKAGE, STEPS, learn_population
from unsum.population.long import LongDoubtful
from unsum.population.model import Population
from unsum.population.stages import Stages, learn_windows, recover_blocks
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
        shorter steps, a year of months, and none (1) for other steps.
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
        places = sample_within(readings, places, n_periods / MAX_VALUES, self.seed)
        sample = readings.take(places)
        season = self.season or readings.calendar.frequency.season
        learned = learn_population(
            sample, shrinkage=self.shrinkage, steps=self.steps, season=season,
            indicators=self._indicators(readings),
            traits=None if self.traits is None else make_traits(self.traits), doubt=self.doubt,
            seed=self.seed,
            threads=threads, progress=progress,
        )  # fmt: skip
        levels = learned.population.levels(readings)
        history = {"objective": -np.array(learned.likelihood), "residual": np.empty(0)}
        reason = f"the population was learned from {sample.n_series:,} series in {self.steps} steps"
        return PanelFit(learned.population, levels, history, reason, sample, season)

    def _fit_stages(self, readings: Readings, threads: int | None) -> StagedFit:
        """First by blocks, then within windows."""
        season = self.season or readings.calendar.frequency.season
        stages = Stages.choose(readings.n_periods, season)
        by_blocks = stages.coarsen(readings)
        known = self._indicators(readings)
        traits = None if self.traits is None else make_traits(self.traits)
        of_days = stages.block == season > 1 and readings.calendar.frequency.step < DAY
        model = replace(
            self, season=7 if of_days else 1, traits=traits,
            indicators=None if known is None else known.by_blocks(stages.block),
        )  # fmt: skip
        blocks = model._fit_at_once(by_blocks, threads)
        if not np.any(readings.total > 0):
            return StagedFit(stages, blocks, [], 0.0, blocks.stop_reason)

        def fill_blocks(places: np.ndarray) -> np.ndarray:
            return recover_blocks(blocks.population, by_blocks.take(places), blocks.levels[places])

        windows, alike = learn_windows(
            readings, stages, fill_blocks, shrinkage=self.shrinkage,
            season=season if stages.window > season else 1, traits=traits, doubt=self.doubt,
            seed=self.seed, threads=threads,
        )  # fmt: skip
        reason = (
            f"{blocks.stop_reason}, by blocks of {stages.block} periods; {len(windows)} "
            f"populations of windows of {stages.window}"
        )
        return StagedFit(stages, blocks, windows, alike, reason)

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
    season: int = 1
    informed: Informed | None = None  # what further measures add

    profiles: ClassVar[None] = None
    weights: ClassVar[None] = None
    soft: ClassVar[bool] = True

    def take(self, series: np.ndarray) -> PanelFit:
        """The same population, for some series, without what further measures add."""
        return replace(self, levels=self.levels[series], informed=None)

    def inform(self, readings: Readings, measures: Measures, doubtful: Doubtful | None) -> PanelFit:
        """The same, knowing further measures of these series.

        Readings are then met before measures are: nothing of them is noise, or a level of its own.
        """
        if not len(measures):
            return self
        if doubtful is None:
            if self.sample is None:
                return self
            doubtful = self.doubtful()
        exact = replace(
            self, population=replace(self.population, quantum=0.0, wander=0.0, level=0.0)
        )
        doubtful = replace(doubtful, population=exact.population)
        values = np.empty((readings.n_series, readings.n_periods))
        exact.fill(0, readings, values)
        return replace(exact, informed=inform(readings, measures, doubtful, self.levels, values))

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        own = slice(first, first + part.n_series)
        more = None if self.informed is None else self.informed.shifts(first, part.n_series)
        self.population.condition(part, self.levels[own], values, more)

    def doubtful(self) -> Doubtful:
        """How sure the population is of itself; needs what it was learned from."""
        if self.sample is None:  # nothing but zeros, of which nothing is open
            return Doubtful(self.population, np.zeros(self.population.covariance.shape))
        return Doubtful.learned_from(self.sample, self.population, self.season)

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
    windows: list[Doubtful]
    alike: float  # the share of what windows leave open that series have in common
    stop_reason: str

    profiles: ClassVar[None] = None
    weights: ClassVar[None] = None
    soft: ClassVar[bool] = True

    @property
    def history(self) -> dict[str, np.ndarray]:
        return self.blocks.history

    @property
    def levels(self) -> np.ndarray:
        return self.blocks.levels

    @property
    def sample(self) -> Readings | None:
        return self.blocks.sample

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        stages = self.stages
        values[:] = 0.0
        if not self.windows:
            return
        levels = self.levels[first : first + part.n_series]
        blocks = recover_blocks(self.blocks.population, stages.coarsen(part), levels)
        for begin, known in stages.each(self.windows):
            places, seen = stages.look(part, blocks, begin)
            found = np.empty((len(places), stages.span))
            known.population.condition(seen, known.levels(seen), found)
            end = min(begin + stages.window, part.n_periods)
            values[places, begin:end] = found[:, stages.margin :][:, : end - begin]

    def doubtful(self) -> LongDoubtful:
        """How sure the populations are of themselves."""
        return LongDoubtful(self.stages, self.blocks.doubtful(), self.windows, self.alike)

    def take(self, series: np.ndarray) -> StagedFit:
        return replace(self, blocks=self.blocks.take(series))

    @property
    def traits(self) -> Traits | None:
        return self.blocks.traits

    def forget(self) -> StagedFit:
        windows = [known.forget() for known in self.windows]
        return replace(self, blocks=self.blocks.forget(), windows=windows)

    def apply(self, readings: Readings, traits: Traits | None, threads: int | None) -> StagedFit:
        blocks = self.blocks.apply(self.stages.coarsen(readings), traits, threads)
        windows = [known.knowing(traits) for known in self.windows]
        return replace(self, blocks=blocks, windows=windows)


Learned = PanelFit | StagedFit  # what the panel model fits


def require_doubt(doubt: float | None) -> None:
    if doubt is not None and not (isinstance(doubt, float | int) and 0 < doubt < np.inf):
        raise ParameterError(f"doubt must be positive, such as 0.2 for a fifth; got {doubt!r}.")
