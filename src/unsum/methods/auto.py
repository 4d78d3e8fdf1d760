"""The default: the method that splits merged readings best."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from unsum.draws import sample_series
from unsum.errors import ParameterError, require_count
from unsum.indicators import make_indicators
from unsum.methods import Fit, Method, Progress, Settings, label_method, make_method, parse_method
from unsum.methods.denton import Denton
from unsum.methods.even import Even
from unsum.methods.panel import MAX_PERIODS, PanelFit, PanelModel, require_doubt
from unsum.population.learn import SHRINKAGE, STEPS
from unsum.population.stages import MAX_BLOCKS, MAX_SPAN
from unsum.readings import Readings
from unsum.selection.merging import NothingToMergeError, sample_readings
from unsum.traits import Traits

if TYPE_CHECKING:
    from unsum.intervals import Uncertainty
    from unsum.measures import Measures
    from unsum.population.uncertainty import Doubtful
    from unsum.selection.choosing import Candidate

SHRINKAGES = (0.0125, 0.05, 0.2, 0.6)
TRIAL_STEPS = 10  # of learning, while methods are compared
MORE_FOLDS = 2  # of the chosen method, to see how far it misses
MAX_VALUES = 4_000_000  # of the series that the expected error is about


@dataclass(frozen=True)
class Auto(Settings):
    """Try methods on merged readings, and recover by the one that predicts their split best.

    Parameters
    ----------
    candidates
        What is compared: names of methods, with a rank or a shrinkage behind a colon if there is
        one (`"nmf:5"`), or method objects. By default `even`, `denton` and several panel models.
    folds
        How many times neighbouring readings are merged at random.
    indicators
        What is known about periods, such as temperature; see `unsum.indicators`.
    traits
        What is known about series, such as their tariff; see `unsum.traits`.
    doubt
        The usual relative error of estimated readings, where it is known.
    seed
        Seed of the merging, and of the sample of series that a large panel is judged by.
    """

    candidates: Any = None
    folds: int = 2
    indicators: Any = None
    traits: Any = None
    doubt: float | None = None
    seed: int = 0

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        require_doubt(self.doubt)
        for name, least in (("folds", 1), ("seed", 0)):
            require_count(name, getattr(self, name), least)
        if self.candidates is not None:
            self._given_methods(self.indicators)

    @property
    def max_iter(self) -> int:
        """How often progress is told of."""
        trials = len(self._methods(1, self.indicators)) + (self.candidates is None)
        return self.folds * trials + MORE_FOLDS

    def fit(
        self, readings: Readings, threads: int | None = None, progress: Progress | None = None
    ) -> Fit:
        from unsum.intervals import assess
        from unsum.recovery import Recovery
        from unsum.selection.choosing import score_candidates

        def score(methods: list[tuple[str, Method]], folds: int, first: int = 0) -> list[Candidate]:
            return score_candidates(
                sample, methods, folds=folds, seed=self.seed + first, threads=threads,
                progress=progress,
            )  # fmt: skip

        given = self.indicators
        if given is not None:
            given = make_indicators(given, readings.calendar)
        places = sample_readings(readings, self.seed)
        sample = readings if len(places) == readings.n_series else readings.take(places)
        methods = self._methods(readings.n_periods, given)
        try:
            candidates = score(methods, self.folds)
        except NothingToMergeError as problem:
            label, method = ("denton", Denton()) if self.candidates is None else methods[0]
            why = f"methods cannot be compared: {problem} Then auto takes {label}"
            return AutoFit(method.fit(readings, threads), method.name, why)
        best = _choose(candidates)
        scores = ", ".join(f"{each.label} {each.score:.3f}" for each in candidates)
        why = f"it split merged readings best: {scores}"
        if best is not candidates[0]:
            shrinkage = cast(PanelModel, best.method).shrinkage
            why = f"with shrinkage {shrinkage} it split merged readings about as well as the best"
            why += f", and shrinks more: {scores}"
        table = [each.to_dict() | {"chosen": each is best} for each in candidates]
        panels = [each for each in candidates if isinstance(each.method, PanelModel)]
        if not panels:
            return AutoFit(best.method.fit(readings, threads), best.method.name, why, table)
        panel = best if isinstance(best.method, PanelModel) else panels[0]
        model = cast(PanelModel, panel.method)
        if self.candidates is None:
            (longer,) = score([(panel.label, model.with_steps(STEPS))], self.folds)
            if longer.is_close_to(panel):  # or else so few series would learn too much
                model = model.with_steps(STEPS)
        learned = model.fit(readings, threads)
        fit = learned if best is panel else best.method.fit(readings, threads)
        pair = [best] if best is panel else [best, panel]
        again = score([(each.label, each.method) for each in pair], MORE_FOLDS, self.folds)
        more = {each.label: each.trials for each in again}
        uncertainty = assess(
            learned, places, best.trials + more[best.label], panel.trials + more[panel.label]
        )
        some = self._some(readings)
        judged = readings.take(some)
        fill = Recovery(judged, best.method.name, why, {}, fit.take(some), threads).values_of
        error = uncertainty.take(some).expected_error(judged, fill)
        return AutoFit(fit, best.method.name, why, table, error, uncertainty)

    def _some(self, readings: Readings) -> np.ndarray:
        """The places of all series but teachers, or of as many as will do."""
        n_own = readings.n_series - readings.n_teachers
        most = max(1, MAX_VALUES // readings.n_periods)
        if n_own <= most:
            return np.arange(n_own)
        return sample_series(readings.names[:n_own], most, self.seed)

    def _given_methods(self, indicators: Any) -> list[tuple[str, Method]]:
        """The candidates that were asked for; panel models know what `auto` was told."""
        if not isinstance(self.candidates, list | tuple) or not self.candidates:
            raise ParameterError(
                f"candidates must be a list such as ['denton', 'nmf:5']; got {self.candidates!r}."
            )
        told = {"indicators": indicators, "traits": self.traits, "doubt": self.doubt}
        methods: dict[str, Method] = {}
        for each in self.candidates:
            method = parse_method(each) if isinstance(each, str) else make_method(each, {})
            label = label_method(method)
            if method.name == "auto" or label in methods:
                raise ParameterError(f"candidates must differ, also from auto; got {label!r}.")
            if isinstance(method, PanelModel):
                new = {name: side for name, side in told.items() if getattr(method, name) is None}
                method = replace(method, **new)
            methods[label] = method
        return list(methods.items())

    def _methods(self, n_periods: int, given: Any = None) -> list[tuple[str, Method]]:
        if self.candidates is not None:
            return self._given_methods(given)
        methods: list[tuple[str, Method]] = [("even", Even()), ("denton", Denton())]
        if n_periods > MAX_BLOCKS * MAX_SPAN:
            return methods
        sides: dict[str, dict[str, Any]] = {"": {}}
        sized = isinstance(self.traits, Traits) and self.traits.sized
        if sized:  # of groups, which teach
            sides[""]["traits"] = self.traits.only_size()
        for name, known in (("traits", self.traits), ("indicators", given)):
            if known is None or (name == "traits" and sized and len(known.columns) == 1):
                continue
            more = {f"{label}, {name}": side | {name: known} for label, side in sides.items()}
            sides |= more
        shrinkages = SHRINKAGES if n_periods <= MAX_PERIODS else (SHRINKAGE,)
        methods += [
            (
                f"panel (shrinkage {value}{label})",
                PanelModel(
                    shrinkage=value, steps=TRIAL_STEPS, doubt=self.doubt, seed=self.seed, **side
                ),
            )
            for label, side in sides.items()
            for value in shrinkages
        ]
        return methods


def _choose(candidates: list[Candidate]) -> Candidate:
    """The best; of panels that know the same and do about as well, the one that shrinks most."""
    best = candidates[0]
    if not isinstance(best.method, PanelModel):
        return best
    side = (best.method.indicators, best.method.traits)
    close = [
        (each.method.shrinkage, each)
        for each in candidates
        if isinstance(each.method, PanelModel)
        and (each.method.indicators is side[0] and each.method.traits is side[1])
        and each.is_close_to(best)
    ]
    return max(close, key=lambda pair: pair[0])[1]


@dataclass
class AutoFit:
    """The fit of the chosen method, with the reasons."""

    fit: Fit
    method: str
    why: str
    candidates: list[dict[str, Any]] = field(default_factory=list)
    expected_error: float | None = None
    uncertainty: Uncertainty | None = None

    @property
    def soft(self) -> bool:
        return bool(getattr(self.fit, "soft", False))

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

    @property
    def traits(self) -> Traits | None:
        traits: Traits | None = getattr(self.fit, "traits", None)
        return traits

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        self.fit.fill(first, part, values)

    def inform(self, readings: Readings, measures: Measures, doubtful: Doubtful | None) -> AutoFit:
        """The same, knowing further measures of these series, where the method can."""
        if not isinstance(self.fit, PanelFit):
            return self
        return replace(self, fit=self.fit.inform(readings, measures, doubtful))

    def take(self, series: np.ndarray) -> AutoFit:
        sure = self.uncertainty
        return replace(
            self, fit=self.fit.take(series),
            uncertainty=None if sure is None else sure.take(series),
        )  # fmt: skip

    def forget(self) -> AutoFit:
        return replace(self, fit=self.fit.forget(), expected_error=None, uncertainty=None)

    def apply(self, readings: Readings, traits: Traits | None, threads: int | None) -> AutoFit:
        return replace(self, fit=self.fit.apply(readings, traits, threads))
