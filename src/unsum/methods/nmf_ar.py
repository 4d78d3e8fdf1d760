"""Algorithm 2 of the paper: profiles, and series pulled towards their own autocorrelation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from unsum.errors import ParameterError
from unsum.factorization.autocorrelation import (
    LAG_1,
    autocorrelation,
    largest_autocorrelation,
    share_lags,
)
from unsum.findings import Finding
from unsum.methods import Fit, Progress
from unsum.methods.nmf import NMF, NMFFit, usual_weights
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.traits import Traits

if TYPE_CHECKING:
    from unsum.factorization.crew import Plan

HALF = 0.5  # of the largest strength that keeps the problem convex; and the largest by default
CLOSEST = 1e-4  # how near rho may come to the largest autocorrelation there is


@dataclass(frozen=True)
class NMFAR(NMF):
    """Minimise `||V - W H||^2 - sum_n lambda_n v_n' Delta_rho_n v_n`, with V meeting the readings.

    The settings of `NMF`, and:

    Parameters
    ----------
    lags
        The lags whose autocorrelation counts, with equal weights, such as (1, 7) for days with a
        week; a mapping gives weights, such as {1: 0.7, 7: 0.3}.
    rho
        The autocorrelation that each series is pulled towards: a number, an array in the order of
        `readings.names`, or a `Panel` of history that has them. By default it is that of the
        smoothest series through the readings (`denton`), a generous estimate.
    strength
        lambda: by default min(1/2, 1 / (2 delta_1)) for each series, where 1 / delta_1 is the bound
        below which the problem is convex; frozen before iterating, so that the objective never
        rises. A number is used for all series. `"paper"` is the paper's rule: min(1, 1 / (2 max
        delta_1)), switched off in each iteration for the series whose model already has its
        autocorrelation; then no single objective descends.
    """

    lags: Any = (1,)
    rho: Any = None
    strength: float | str | None = None

    name: ClassVar[str] = "nmf-ar"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.strength, str) and self.strength != "paper":
            raise ParameterError(
                f"strength must be a number, 'paper' or None; got {self.strength!r}."
            )

    def fit(
        self,
        readings: Readings,
        threads: int | None = None,
        progress: Progress | None = None,
        plan: Plan | None = None,
    ) -> Fit:
        from unsum.factorization.chunk_ar import Pulled

        scale = self._units(readings)
        lags = share_lags(self.lags, readings.n_periods)
        rho, findings = choose_rho(self.rho, readings, lags)
        strength = choose_strength(self.strength, rho, readings.n_periods, lags)
        switch = self.strength == "paper"
        kind = Pulled(lags, rho, strength, switch, self.accelerate and not switch)
        found = self._factorize(readings, scale, kind, threads, progress, plan)
        return NMFARFit(
            found.W, found.H, scale, usual_weights(found.H, scale), found.history,
            found.stop_reason, lags, rho, strength, findings, switch,
            float(self.rho) if isinstance(self.rho, float | int) else None,
            None if self.strength is None else float(strength[0]),
        )  # fmt: skip


@dataclass
class NMFARFit(NMFFit):
    """Also the pull that each series gets."""

    lags: dict[int, float]
    rho: np.ndarray
    strength: np.ndarray
    findings: tuple[Finding, ...]
    switch: bool
    given_rho: float | None = None  # where it is the same for all series
    given_strength: float | None = None

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        from unsum.factorization.chunk import Step
        from unsum.factorization.chunk_ar import AutocorrelatedChunk

        own = slice(first, first + part.n_series)
        chunk = AutocorrelatedChunk(
            part, self.scale[own], self.H[own].copy(), self.lags, self.rho[own],
            self.strength[own], switch=self.switch,
        )  # fmt: skip
        chunk.advance(Step.of(self.W, self.W, self.W, len(self.W), "hals", 0))
        np.multiply(chunk.V, self.scale[own, None], out=values)

    def take(self, series: np.ndarray) -> Self:
        return replace(super().take(series), rho=self.rho[series], strength=self.strength[series])

    def forget(self) -> Self:
        return replace(super().forget(), findings=())

    def apply(self, readings: Readings, traits: Traits | None, threads: int | None) -> Self:
        """Weights as for profiles alone; the pull, given or each series' own, shapes the values.

        Weights of Algorithm 2 would cost a V step each time, and move values by less than 1e-3.
        """
        rho, _ = choose_rho(self.given_rho, readings, self.lags)
        strength = choose_strength(None, rho, readings.n_periods, self.lags)
        if self.given_strength is not None:
            room = largest_autocorrelation(readings.n_periods, self.lags) - rho
            strength = np.minimum(self.given_strength, HALF / (2 * room))
        return replace(super().apply(readings, traits, threads), rho=rho, strength=strength)


def choose_rho(
    given: Any, readings: Readings, lags: Mapping[int, float] = LAG_1
) -> tuple[np.ndarray, tuple[Finding, ...]]:
    """rho of every series, kept below the largest autocorrelation of a series of this length."""
    n_series, n_periods = readings.n_series, readings.n_periods
    if given is None:
        rho = _smoothest_autocorrelation(readings, lags)
    elif isinstance(given, Panel):
        rho = _historical(given, readings, lags)
    else:
        try:
            rho = np.broadcast_to(np.asarray(given, np.float64), (n_series,)).copy()
        except (TypeError, ValueError):
            raise ParameterError(
                f"rho must be a number, one for each of {n_series} series, or a Panel of history."
            ) from None
        if not (np.abs(rho) <= 1).all():
            raise ParameterError("rho must lie between -1 and 1.")
    limit = largest_autocorrelation(n_periods, lags)
    limit -= CLOSEST * (1 - abs(limit)) if n_periods > 1 else 0.0
    above = np.flatnonzero(rho > limit)
    rho = np.minimum(rho, limit)
    if given is None or not len(above):
        return rho, ()
    sentence = (
        f"rho of {len(above):,} series lowered to {limit:.6f}: no series of {n_periods} periods "
        "has a larger autocorrelation."
    )
    names = tuple(str(readings.names[int(n)].as_py()) for n in above[:1000])
    return rho, (Finding("adjusted", sentence, series=names),)


def _smoothest_autocorrelation(readings: Readings, lags: Mapping[int, float]) -> np.ndarray:
    from unsum.methods.denton import Denton

    fit = Denton().fit(readings)
    rho = np.empty(readings.n_series)
    first = 0
    for part in readings.parts(1024):
        values = np.empty((part.n_series, part.n_periods))
        fit.fill(first, part, values)
        peak = values.max(axis=1, keepdims=True)
        values /= np.where(peak > 0, peak, 1.0)
        rho[first : first + part.n_series] = autocorrelation(values, lags)
        first += part.n_series
    return rho


def _historical(history: Panel, readings: Readings, lags: Mapping[int, float]) -> np.ndarray:
    """Autocorrelation of history, carried over to a window of another length."""
    import pyarrow.compute as pc

    places = pc.index_in(readings.names.cast("string"), value_set=history.names.cast("string"))
    if places.null_count:
        absent = readings.names.filter(places.is_null())[0].as_py()
        raise ParameterError(f"series {absent!r} is not in the history given as rho.")
    old, new = history.n_periods, readings.n_periods
    if old <= max(lags):
        raise ParameterError(
            f"history needs more than {max(lags)} periods to show an autocorrelation at lag "
            f"{max(lags)}; it has {old}."
        )
    rho = np.zeros(readings.n_series)
    for lag, share in lags.items():
        longer = (old / (old - lag)) * ((new - lag) / new)
        rho += share * longer * autocorrelation(history.values, {lag: 1.0})[np.asarray(places)]
    carried: np.ndarray = np.clip(rho, -1.0, 1.0)
    return carried


def choose_strength(
    given: float | str | None,
    rho: np.ndarray,
    n_periods: int,
    lags: Mapping[int, float] = LAG_1,
) -> np.ndarray:
    """lambda of every series, below 1 / delta_1; zero where a series has no neighbour."""
    delta = 2 * (largest_autocorrelation(n_periods, lags) - rho)
    if n_periods == 1 or not (delta > 0).all():
        return np.zeros(len(rho))
    if given is None:
        strength: np.ndarray = np.minimum(HALF, HALF / delta)
        return strength
    if given == "paper":
        return np.full(len(rho), min(1.0, 1 / (2 * delta.max())))
    value = float(given)
    if not 0 <= value < 1 / delta.max():
        raise ParameterError(
            f"strength must be at least 0 and below 1 / delta_1 = {1 / delta.max():g}; got "
            f"{value:g}."
        )
    return np.full(len(rho), value)
