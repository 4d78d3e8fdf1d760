"""Algorithm 1: block coordinate descent over W, H and V, with V never held.

while the stopping criterion is not satisfied
    W = Update(W, H, V);  H = Update(W, H, V);  V = P_A(W H)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unsum.engine import chunk_bounds
from unsum.factorization.chunk import UPDATES, Reduction, Step
from unsum.factorization.crew import Crew, Keeper, Plain, Threads
from unsum.readings import Readings

PATIENCE = 10  # iterations over which the change of the objective is judged
STRETCH = 2048  # periods whose profiles are updated together


@dataclass
class Factorization:
    """Profiles, weights, and how they were found."""

    W: np.ndarray
    H: np.ndarray
    history: dict[str, np.ndarray]
    stop_reason: str


@dataclass
class Trajectory:
    """Objective and residuals by iteration."""

    objective: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    stationarity: list[float] = field(default_factory=list)
    clipped: list[float] = field(default_factory=list)
    expanded: list[float] = field(default_factory=list)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.array(values) for name, values in self.__dict__.items()}


def factorize(
    crew: Crew,
    readings: Readings,
    scale: np.ndarray,
    W: np.ndarray,
    *,
    update: str,
    n_inner: int,
    max_iter: int,
    tol: float,
    accelerate: bool = False,
    warm: int = 0,
    progress: Callable[[int], None] | None = None,
    keeper: Keeper | None = None,
) -> Factorization:
    """Run Algorithm 1 from W and the weights of a crew, whose chunks may make it Algorithm 2.

    `warm` updates of H alone may come first.
    """
    size = _squares(readings, scale)
    trajectory = Trajectory()
    descent = Descent(crew, W, stretch(readings), update, n_inner, accelerate=accelerate)
    kept = None if keeper is None else keeper.load()
    if kept is not None:
        descent.resume(kept)
        trajectory = Trajectory(**{name: list(kept[name]) for name in vars(trajectory)})
    else:
        descent.begin()
        for _ in range(warm):
            descent.update_weights()
    reason = f"stopped after max_iter = {max_iter} iterations"
    for iteration in range(max(0, len(trajectory.objective) - 1), max_iter + 1):
        if len(trajectory.objective) <= iteration:
            _record(trajectory, descent, size, readings.n_readings)
        found = _stop_reason(trajectory, size, tol)
        if found is not None:
            reason = found
            break
        if keeper is not None:
            keeper.save(lambda: descent.keep() | trajectory.arrays())
        if iteration == max_iter:
            break
        descent.iterate()
        if progress is not None:
            progress(1)
    return Factorization(descent.W, crew.weights(), trajectory.arrays(), reason)


def _squares(readings: Readings, scale: np.ndarray) -> float:
    """The squared totals of scaled series, each over its length; in parts, to hold little."""
    unit = np.where(scale > 0, scale, 1.0)
    total = 0.0
    for low, high in chunk_bounds(readings):
        part = readings[low:high]
        shares = part.total / np.repeat(unit[low:high], np.diff(part.indptr))
        total += float(np.sum(shares**2 / (part.stop - part.start)))
    return total


def fit_weights(
    readings: Readings,
    scale: np.ndarray,
    W: np.ndarray,
    H: np.ndarray,
    *,
    steps: int,
    n_inner: int = 3,
    threads: int | None = None,
) -> np.ndarray:
    """H alone, after some updates from the given one, while W stays.

    Every series goes its own way, whatever others there are.
    """
    with Threads(readings, scale, H, Plain(), threads) as crew:
        descent = Descent(crew, W, stretch(readings), "hals", n_inner)
        descent.begin()
        for _ in range(steps):
            descent.update_weights()
        return crew.weights()


class Descent:
    """W, H and the sums over V, from one iteration to the next.

    Accelerated, an iteration goes on from where it arrives by a growing part of the way since the
    last (Nesterov's sequence). Where that would raise the objective, it goes back to where it had
    arrived, which never does, and the sequence begins again.
    """

    def __init__(
        self,
        crew: Crew,
        W: np.ndarray,
        width: int,
        update: str,
        n_inner: int,
        *,
        accelerate: bool = False,
    ) -> None:
        self.crew, self.W = crew, np.ascontiguousarray(W, dtype=np.float64).copy()
        self.width, self.update, self.n_inner = width, update, n_inner
        self.accelerate, self.pace = accelerate, 1.0
        self.fitted = self.W  # where the last iteration arrived, before it was carried on
        self.dead: tuple[int, ...] = ()

    def begin(self) -> None:
        """The first V step."""
        self._sweep(Step.of(self.W, self.W, self.W, self.width, self.update, 0))

    def keep(self) -> dict[str, Any]:
        """What it takes to go on from here, with the same bits."""
        return {
            "crew": self.crew.keep(), "W": self.W, "fitted": self.fitted, "pace": self.pace,
            "gram": self.state.gram, "sums": self.state.sums, "residual_of_weights": self.residual,
            "squares": self.squares,
        }  # fmt: skip

    def resume(self, kept: dict[str, Any]) -> None:
        self.crew.resume(kept["crew"])
        self.W, self.fitted, self.pace = kept["W"], kept["fitted"], float(kept["pace"])
        self.state = Reduction.zeros(np.arange(len(self.W) + 1), self.W.shape[1])
        self.state.gram, self.state.sums = kept["gram"], kept["sums"]
        self.residual, self.squares = kept["residual_of_weights"], kept["squares"]

    @property
    def objective(self) -> float:
        return float(self.state.sums[0, 0])

    def iterate(self) -> None:
        self._revive()
        before, fitted = self.objective, self._update_profiles()
        momentum, W = self._carry_on(fitted)
        dead, self.dead = self.dead, ()
        step = Step.of(
            fitted, W, self.W, self.width, self.update, self.n_inner, momentum, dead=dead
        )
        self._sweep(step)
        if momentum > 0 and not self.objective <= before:
            self.pace = 1.0
            self._sweep(Step.of(fitted, fitted, W, self.width, self.update, 0, retreat=True))
        self.fitted = fitted

    def update_weights(self) -> None:
        """`H = Update(W, H, V)`, then `V = P_A(W H)`, while W stays."""
        self._sweep(Step.of(self.W, self.W, self.W, self.width, self.update, self.n_inner))

    def _sweep(self, step: Step) -> None:
        """Every chunk's H update and V step; their sums, and R H' with its squares by profile."""
        total = Reduction.zeros(np.arange(len(step.W) + 1), step.W.shape[1])
        for reduction in self.crew.sweep(step):
            total.add(reduction)
        self.W, self.state = step.W, total
        self.residual, self.squares = total.residual(step.W)

    def _update_profiles(self) -> np.ndarray:
        """`Update(W, H, V)`, by stretches of periods."""
        from unsum.kernels.profiles import update_profiles

        W, gram = self.W, self.state.gram
        bound = float(np.linalg.eigvalsh(gram)[-1]) if self.update == "nenmf" else 0.0
        W_new = np.empty(W.shape)

        def renew(low: int) -> None:
            update_profiles(
                W, gram, bound, self.residual, UPDATES.index(self.update), self.n_inner,
                low, min(low + STRETCH, len(W)), W_new,
            )  # fmt: skip

        self.crew.spread(renew, range(0, len(W), STRETCH))
        return W_new

    def _carry_on(self, fitted: np.ndarray) -> tuple[float, np.ndarray]:
        """How far to go on from the profiles just fitted, and the profiles there."""
        if not self.accelerate:
            return 0.0, fitted
        following = (1 + np.sqrt(1 + 4 * self.pace**2)) / 2
        momentum, self.pace = float((self.pace - 1) / following), following
        if momentum == 0:
            return 0.0, fitted
        return momentum, np.maximum(0.0, fitted + momentum * (fitted - self.fitted))

    def _revive(self) -> None:
        """Give profiles that nobody uses the shape of what is not yet explained.

        Their weights are zero, so the model and the objective stay as they are.
        """
        W, gram = self.W, self.state.gram
        dead = (np.diag(gram) <= 0) | (self.squares[2] <= 0)
        if not dead.any():
            return
        W = W.copy()
        missing = np.maximum(self.residual.sum(axis=1), 0.0)
        if not missing.any():
            missing = np.ones(len(W))
        for k in np.flatnonzero(dead):
            W[:, k] = missing / missing.mean()
            gram[k, :] = gram[:, k] = 0.0
            self.residual[:, k] = 0.0
            missing = np.roll(missing, len(W) // (2 + int(k)))
        self.W, self.pace = W, 1.0
        self.dead = tuple(np.flatnonzero(dead).tolist())


def _record(trajectory: Trajectory, descent: Descent, size: float, n_readings: int) -> None:
    """Objective and residuals, free of the scale of the data and of each profile.

    The paper's residual is that of R(W) and R(H) at positive entries; stationarity also counts
    negative gradients at zero entries. Profiles count as if balanced against their weights.
    """
    state, squares = descent.state, descent.squares
    rank = len(state.gram)
    norm_w, norm_h = np.sqrt(squares[2]), np.sqrt(np.diag(state.gram))
    with np.errstate(divide="ignore", invalid="ignore"):
        balance = np.where((norm_w > 0) & (norm_h > 0), norm_w / norm_h, 0.0)
        inverse = np.where(balance > 0, 1 / balance, 0.0)
    at_positive = balance * squares[0] + inverse * state.sums[1, :rank]
    at_zero = balance * squares[1] + inverse * state.sums[2, :rank]
    unit = size**1.5 if size > 0 else 1.0
    trajectory.objective.append(descent.objective)
    trajectory.residual.append(float(np.sum(at_positive) / unit))
    trajectory.stationarity.append(float(np.sum(at_positive + at_zero) / unit))
    trajectory.clipped.append(float(state.sums[0, 1]) / n_readings)
    trajectory.expanded.append(float(state.sums[0, 2]) / n_readings)


def _stop_reason(trajectory: Trajectory, size: float, tol: float) -> str | None:
    objective = trajectory.objective
    n = len(objective) - 1
    if abs(objective[-1]) <= 1e-28 * size:
        return f"the readings are met exactly by the profiles after {n} iterations"
    if tol > 0 and trajectory.stationarity[-1] <= tol**2:
        return (
            f"the KKT residual, squared and scaled, fell to {trajectory.stationarity[-1]:.1e}, "
            f"below tol^2 = {tol**2:.1e}, after {n} iterations"
        )
    if n >= PATIENCE and tol > 0:
        change = (objective[-1 - PATIENCE] - objective[-1]) / abs(objective[-1])
        if change < tol * PATIENCE:
            return (
                f"the objective fell by {change:.1e} of itself over {PATIENCE} iterations, less "
                f"than tol = {tol:.1e} each, after {n} iterations"
            )
    return None


def stretch(readings: Readings) -> int:
    """Periods per stretch of the lower bounds: about a quarter of the usual reading."""
    usual = int(np.median(readings.stop[:100_000] - readings.start[:100_000]))
    return max(1, usual // 4)
