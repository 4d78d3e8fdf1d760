"""Algorithm 1: block coordinate descent over W, H and V, with V never held.

while the stopping criterion is not satisfied
    W = Update(W, H, V);  H = Update(W, H, V);  V = P_A(W H)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from unsum.engine import chunk_bounds, count_threads
from unsum.factorization.chunk import Chunk, Reduction, Shared
from unsum.factorization.chunk_aligned import AlignedChunk, is_aligned
from unsum.readings import Readings

PATIENCE = 10  # iterations over which the change of the objective is judged


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


class Block(Protocol):
    """A chunk of series that can be advanced by an iteration."""

    def advance(self, shared: Shared) -> Reduction: ...


def factorize(
    readings: Readings,
    scale: np.ndarray,
    W: np.ndarray,
    H: np.ndarray,
    *,
    make_chunk: Callable[[slice, np.ndarray], Block] | None = None,
    update: str,
    n_inner: int,
    max_iter: int,
    tol: float,
    warm: int = 0,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Factorization:
    """Run Algorithm 1 from W and H. `warm` updates of H alone may come first.

    `make_chunk` makes the chunk of a range of series from the view of its weights; those of
    Algorithm 2 make this Algorithm 2.
    """
    H = np.ascontiguousarray(H, dtype=np.float64).copy()
    W = np.ascontiguousarray(W, dtype=np.float64).copy()
    if make_chunk is None:

        def make_chunk(own: slice, weights: np.ndarray) -> Block:
            part = readings[own]
            kind = AlignedChunk if is_aligned(part) else Chunk
            return kind(part, scale[own], weights)

    bounds = [slice(low, high) for low, high in chunk_bounds(readings.n_series)]
    chunks = [make_chunk(own, H[own]) for own in bounds]
    unit = np.repeat(np.where(scale > 0, scale, 1.0), np.diff(readings.indptr))
    size = float(np.sum((readings.total / unit) ** 2 / (readings.stop - readings.start)))
    width = _stretch(readings)
    trajectory = Trajectory()
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(count_threads(threads)) as pool:

        def sweep(W_new: np.ndarray, W_old: np.ndarray, inner: int) -> Reduction:
            shared = Shared.of(W_new, W_old, width, update, inner)
            total = Reduction.zeros(len(W_new), W_new.shape[1])
            for reduction in pool.map(lambda chunk: chunk.advance(shared), chunks):
                total.add(reduction)
            return total

        state = sweep(W, W, 0)
        for _ in range(warm):
            state = sweep(W, W, n_inner)
        reason = f"stopped after max_iter = {max_iter} iterations"
        for iteration in range(max_iter + 1):
            _record(trajectory, state, W, size, readings.n_readings)
            found = _stop_reason(trajectory, size, tol)
            if found is not None:
                reason = found
                break
            if iteration == max_iter:
                break
            W = _revive(W, H, state)
            W_new = _update_profiles(W, state, update, n_inner)
            state = sweep(W_new, W, n_inner)
            W = W_new
            if progress is not None:
                progress(1)
    return Factorization(W, H, trajectory.arrays(), reason)


def _update_profiles(W: np.ndarray, state: Reduction, update: str, n_inner: int) -> np.ndarray:
    """`W = Update(W, H, V)`, from `V H' = W H H' + R H'`."""
    from unsum.kernels.updates import hals, nenmf

    gram = state.gram
    target = np.ascontiguousarray((W @ gram + state.residual).T)
    columns = np.ascontiguousarray(W.T)
    if update == "hals":
        hals(gram, target, columns, len(W), n_inner)
    else:
        bound = float(np.linalg.eigvalsh(gram)[-1])
        nenmf(gram, bound, target, columns, len(W), n_inner)
    return np.ascontiguousarray(columns.T)


def _revive(W: np.ndarray, H: np.ndarray, state: Reduction) -> np.ndarray:
    """Give profiles that nobody uses the shape of what is not yet explained.

    Their weights are zero, so the model and the objective stay as they are.
    """
    dead = (np.diag(state.gram) <= 0) | (np.linalg.norm(W, axis=0) <= 0)
    if not dead.any():
        return W
    W = W.copy()
    missing = np.maximum(state.residual.sum(axis=1), 0.0)
    if not missing.any():
        missing = np.ones(len(W))
    for k in np.flatnonzero(dead):
        H[:, k] = 0.0
        W[:, k] = missing / missing.mean()
        state.gram[k, :] = state.gram[:, k] = 0.0
        state.steps[:, k] = state.points[:, k] = 0.0
        missing = np.roll(missing, len(W) // (2 + int(k)))
    return W


def _record(
    trajectory: Trajectory, state: Reduction, W: np.ndarray, size: float, n_readings: int
) -> None:
    """Objective and residuals, free of the scale of the data and of each profile.

    The paper's residual is that of R(W) and R(H) at positive entries; stationarity also counts
    negative gradients at zero entries. Profiles count as if balanced against their weights.
    """
    rank = W.shape[1]
    gradient = -state.residual
    positive = W > 0
    norm_w, norm_h = np.linalg.norm(W, axis=0), np.sqrt(np.diag(state.gram))
    with np.errstate(divide="ignore", invalid="ignore"):
        balance = np.where((norm_w > 0) & (norm_h > 0), norm_w / norm_h, 0.0)
        inverse = np.where(balance > 0, 1 / balance, 0.0)
    at_positive = balance * np.sum(np.where(positive, gradient, 0.0) ** 2, axis=0)
    at_positive += inverse * state.sums[1, :rank]
    at_zero = balance * np.sum(np.where(positive, 0.0, np.minimum(gradient, 0.0)) ** 2, axis=0)
    at_zero += inverse * state.sums[2, :rank]
    unit = size**1.5 if size > 0 else 1.0
    trajectory.objective.append(float(state.sums[0, 0]))
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


def _stretch(readings: Readings) -> int:
    """Periods per stretch of the lower bounds: about a quarter of the usual reading."""
    usual = int(np.median(readings.stop[:100_000] - readings.start[:100_000]))
    return max(1, usual // 4)
