"""Algorithm 1 of the paper: shared nonnegative profiles, learned from all series at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from unsum.errors import ParameterError, require_choice, require_count
from unsum.factorization.chunk import UPDATES
from unsum.methods import Fit, Progress, Settings
from unsum.readings import Readings
from unsum.traits import Traits

if TYPE_CHECKING:
    from unsum.factorization.crew import Plan
    from unsum.factorization.loop import Factorization

DEFAULT_RANK = 5
WARM = 3
LOWEST = 0.02  # of the usual model, for what is expected of the readings of a new series
AT_ONCE = 1 << 17  # series whose levels are found together, to hold no large temporaries
APPLY_STEPS = 20  # updates of the weights of new series


@dataclass(frozen=True)
class NMF(Settings):
    """Minimise `||V - W H||^2` over nonnegative V, W, H with V meeting the readings.

    Parameters
    ----------
    rank
        How many profiles; 5 by default, or fewer in a smaller panel.
    update
        `"hals"` or `"nenmf"`: how W and H are updated while V is fixed.
    inner
        Sweeps (or gradient steps) of each update.
    start
        `"denton"` or `"even"` takes the first profiles from the panel spread that way; `"random"`
        draws them, as the paper does. Or the profiles themselves (n_periods, rank).
    seed
        Seed of random profiles.
    max_iter, tol
        When to stop: by the KKT residual, the change of the objective, or the iterations. There
        are few by default, because readings leave much open: on most panels tried, iterating to
        the end brings the objective down and takes the series away from the truth.
    accelerate
        Carry each iteration on along the way it came, and step back where that would raise the
        objective; for those who want its minimum. (Not with `strength="paper"`, which has no single
        objective.)
    scale
        Divide every series by its mean level while fitting, so that all count alike; False fits raw
        series, as the paper does.
    """

    rank: int | None = None
    update: str = "hals"
    inner: int = 3
    start: str | np.ndarray = "denton"
    seed: int = 0
    max_iter: int = 100
    tol: float = 1e-6
    accelerate: bool = False
    scale: bool = True

    name: ClassVar[str] = "nmf"

    def __post_init__(self) -> None:
        require_choice("update", self.update, UPDATES)
        if not isinstance(self.start, np.ndarray):
            require_choice("start", self.start, ("denton", "even", "random"))
        for name, least in (("inner", 1), ("seed", 0), ("max_iter", 0)):
            require_count(name, getattr(self, name), least)
        if not 0 <= self.tol < 1:
            raise ParameterError(f"tol must lie between 0 and 1; got {self.tol!r}.")

    def fit(
        self,
        readings: Readings,
        threads: int | None = None,
        progress: Progress | None = None,
        plan: Plan | None = None,
    ) -> Fit:
        from unsum.factorization.crew import Plain

        scale = self._units(readings)
        kind = Plain(self.accelerate)
        found = self._factorize(readings, scale, kind, threads, progress, plan)
        return NMFFit(
            found.W, found.H, scale, usual_weights(found.H, scale), found.history,
            found.stop_reason,
        )  # fmt: skip

    def _units(self, readings: Readings) -> np.ndarray:
        """What each series is divided by: its own level, or the mean of all; zero for zeros."""
        scale = levels(readings)
        if self.scale or not scale.any():
            return scale
        return np.where(scale > 0, scale.mean(), 0.0)

    def _factorize(
        self,
        readings: Readings,
        scale: np.ndarray,
        kind: Any,
        threads: int | None,
        progress: Progress | None,
        plan: Plan | None,
    ) -> Factorization:
        from unsum.factorization.crew import Plan
        from unsum.factorization.loop import factorize
        from unsum.factorization.start import initial_profiles

        rank = choose_rank(self.rank, readings)
        W = initial_profiles(readings, scale, rank, self.start, self.seed)
        H = np.repeat((scale > 0)[:, None] / (rank * W.mean()), rank, axis=1)
        plan = plan or Plan()
        with plan.hire(readings, scale, H, kind, threads) as crew:
            return factorize(
                crew, readings, scale, W, update=self.update, n_inner=self.inner,
                max_iter=self.max_iter, tol=self.tol, accelerate=kind.accelerate, warm=WARM,
                progress=progress, keeper=plan.keeper,
            )  # fmt: skip


@dataclass
class NMFFit:
    """Profiles of the scaled series; weights carry the scale back."""

    W: np.ndarray
    H: np.ndarray
    scale: np.ndarray
    usual: np.ndarray  # the mean weights of scaled series
    history: dict[str, np.ndarray]
    stop_reason: str

    @property
    def profiles(self) -> np.ndarray:
        return self.W

    @property
    def weights(self) -> np.ndarray:
        weights: np.ndarray = self.H * self.scale[:, None]
        return weights

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        from unsum.kernels.passes import fill_values

        own = slice(first, first + part.n_series)
        fill_values(*part.arrays, self.scale[own], self.H[own], self.W, values)

    def take(self, series: np.ndarray) -> Self:
        return replace(self, H=self.H[series], scale=self.scale[series])

    def forget(self) -> Self:
        return self.take(np.empty(0, np.int64))

    def apply(self, readings: Readings, traits: Traits | None, threads: int | None) -> Self:  # noqa: ARG002
        """Weights that begin as usual, at the level of each series, and go towards its readings."""
        from unsum.factorization.loop import fit_weights

        scale = levels(readings)
        shape = np.concatenate([[0.0], np.cumsum(self.W @ self.usual)])
        expected = np.add.reduceat(
            shape[readings.stop] - shape[readings.start], readings.indptr[:-1]
        )
        length = np.add.reduceat(readings.stop - readings.start, readings.indptr[:-1])
        lowest = max(LOWEST * float(np.mean(self.W @ self.usual)), 1e-12)
        level = np.where(scale > 0, length / np.maximum(expected, lowest * length), 0.0)
        usual = level[:, None] * self.usual
        H = fit_weights(readings, scale, self.W, usual, steps=APPLY_STEPS, threads=threads)
        return replace(self, scale=scale, H=H)


def usual_weights(H: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The mean weights of the series that have a level, or equal ones where none has."""
    useful = scale > 0
    return np.asarray(H[useful].mean(axis=0) if useful.any() else np.ones(H.shape[1]))


def choose_rank(rank: int | None, readings: Readings) -> int:
    """The rank asked for, or the default; never more than the panel allows."""
    most = min(readings.n_periods, readings.n_series)
    if rank is None:
        return min(DEFAULT_RANK, most)
    if not isinstance(rank, int | np.integer) or not 1 <= rank <= most:
        raise ParameterError(
            f"rank must be a whole number from 1 to {most} (the smaller of {readings.n_periods} "
            f"periods and {readings.n_series} series); got {rank!r}."
        )
    return int(rank)


def levels(readings: Readings) -> np.ndarray:
    """The mean level of every series over its readings; zero for series of zeros."""
    if readings.n_series > AT_ONCE:
        return np.concatenate([levels(part) for part in readings.parts(AT_ONCE)])
    heads = readings.indptr[:-1]
    largest = np.maximum.reduceat(readings.total, heads)
    unit = np.where(largest > 0, largest, 1.0)
    shares = readings.total / np.repeat(unit, np.diff(readings.indptr))
    covered = np.add.reduceat(readings.stop - readings.start, heads)
    mean: np.ndarray = np.add.reduceat(shares, heads) / covered * largest
    return mean
