"""Speed of an iteration of Algorithm 1, implicit against dense, side by side in one run.

    python benchmarks/speed.py [--quick]

A full iteration: both updates (HALS, one sweep), V step, objective and KKT residual, two threads,
rank 10. The dense one holds V and uses BLAS products and a compiled projection on two threads.
Runs alternate; medians are reported. Panels are seeded; "clipped" ones have a few readings that
nonnegativity bites. Prints what the machine can do beside it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 (compiled products use it; seen by CONTROLLER below)
from numba import njit
from threadpoolctl import ThreadpoolController

from unsum.engine import chunk_bounds
from unsum.factorization.autocorrelation import LAG_1, project_autocorrelation
from unsum.factorization.chunk import Step
from unsum.factorization.chunk_ar import AutocorrelatedChunk
from unsum.factorization.crew import Plain, Threads
from unsum.factorization.loop import Descent, factorize, stretch
from unsum.kernels.implicit import fill_water
from unsum.methods.nmf import NMF, NMFFit, levels
from unsum.methods.nmf_ar import choose_strength
from unsum.readings import Readings

RANK = 10
THREADS = 2
NAMES = ("start", "stop", "total")
RUN = 5  # iterations in a row, as in a fit
CONTROLLER = ThreadpoolController()  # looking for libraries takes milliseconds: once


def make_readings(
    n_series: int, n_periods: int, every: int, *, shared: bool = False, clipped: float = 0.0
) -> tuple[Readings, np.ndarray, np.ndarray]:
    """Readings of a noisy low-rank panel, and profiles and weights near it."""
    rng = np.random.default_rng(0)
    t = np.arange(n_periods) / n_periods
    W = 1.0 + 0.5 * np.cos(2 * np.pi * np.outer(t, np.arange(1, RANK + 1)) + rng.random(RANK) * 6)
    H = rng.gamma(2.0, 0.1, (n_series, RANK)) + 0.05
    offset = np.full(n_series, 0 if shared else -1)
    if not shared:
        offset = rng.integers(0, every, n_series)
    counts = (n_periods - offset) // every
    indptr = np.concatenate([[0], np.cumsum(counts)])
    series = np.repeat(np.arange(n_series), counts)
    place = np.arange(indptr[-1]) - np.repeat(indptr[:-1], counts)
    start = offset[series] + place * every
    stop = start + every
    C = np.concatenate([np.zeros((1, RANK)), np.cumsum(W, axis=0)])
    total = np.empty(len(start))
    for low in range(0, len(start), 1 << 20):
        part = slice(low, low + (1 << 20))
        total[part] = np.sum((C[stop[part]] - C[start[part]]) * H[series[part]], axis=1)
    total *= rng.uniform(0.9, 1.1, len(total))
    total[rng.random(len(total)) < clipped] *= 0.01
    readings = Readings.from_arrays(
        series, start, stop, total, n_series=n_series, n_periods=n_periods
    )
    return readings, W, H


class Implicit:
    """The solver's own iteration."""

    def __init__(self, readings: Readings, W: np.ndarray, H: np.ndarray) -> None:
        scale = levels(readings)
        weights = H / scale[:, None]
        crew = Threads(readings, scale, weights, Plain(), THREADS)
        self.descent = Descent(crew, W, stretch(readings), "hals", 1)
        self.descent.begin()
        self.n_readings = readings.n_readings

    def step(self) -> None:
        self.descent.iterate()

    @property
    def shares(self) -> tuple[float, float]:
        return tuple(self.descent.state.sums[0, 1:3] / self.n_readings)


@njit(cache=True, nogil=True)
def project_rows(indptr, start, stop, total, X, V, low, high):  # noqa: ANN001, ANN201
    """V = P_A(X) for some series; rows are series."""
    x = np.empty(X.shape[1])
    for n in range(low, high):
        for t in range(X.shape[1]):
            V[n, t] = X[n, t]
        for d in range(indptr[n], indptr[n + 1]):
            length = stop[d] - start[d]
            for t in range(length):
                x[t] = X[n, start[d] + t]
            level = fill_water(x, length, total[d])
            for t in range(length):
                V[n, start[d] + t] = max(0.0, x[t] + level)


@njit(cache=True, nogil=True, fastmath=True)
def sweep(S, g, x):  # noqa: ANN001, ANN201
    """HALS over the rows of x, for all columns."""
    gap = np.empty(x.shape[1])
    for k in range(len(S)):
        gap[:] = g[k]
        for j in range(len(S)):
            for i in range(x.shape[1]):
                gap[i] -= S[k, j] * x[j, i]
        for i in range(x.shape[1]):
            x[k, i] = max(0.0, x[k, i] + gap[i] / S[k, k])


class Dense:
    """The same iteration with V held: BLAS products, compiled projection and updates."""

    def __init__(self, readings: Readings, W: np.ndarray, H: np.ndarray) -> None:
        scale = levels(readings)
        self.readings = readings
        self.total = readings.total / np.repeat(scale, np.diff(readings.indptr))
        self.W, self.H = W.copy(), np.ascontiguousarray((H / scale[:, None]).T)
        self.pool = ThreadPoolExecutor(THREADS)
        self.X = self.H.T @ self.W.T
        self.V = np.empty_like(self.X)
        self._project()

    def _halves(self, function: Callable[[int, int], None]) -> None:
        n = self.readings.n_series
        cuts = np.linspace(0, n, THREADS + 1).astype(int)
        list(self.pool.map(function, cuts[:-1], cuts[1:]))

    def _project(self) -> None:
        r = self.readings
        self._halves(
            lambda low, high: project_rows(
                r.indptr, r.start, r.stop, self.total, self.X, self.V, low, high
            )
        )

    def step(self) -> None:
        gram = self.H @ self.H.T
        columns = np.ascontiguousarray(self.W.T)
        sweep(gram, np.ascontiguousarray(self.H @ self.V), columns)
        self.W = np.ascontiguousarray(columns.T)
        S = self.W.T @ self.W
        G = self.W.T @ self.V.T
        pieces = [None] * THREADS

        def update(low: int, high: int) -> None:
            h = np.ascontiguousarray(self.H[:, low:high])
            sweep(S, np.ascontiguousarray(G[:, low:high]), h)
            pieces[0 if low == 0 else 1] = h

        self._halves(update)
        self.H = np.concatenate(pieces, axis=1)
        np.dot(self.H.T, self.W.T, out=self.X)
        self._project()
        self.X -= self.V
        _ = np.vdot(self.X, self.X)
        _ = np.sum((self.H @ self.X) ** 2) + np.sum((self.W.T @ self.X.T) ** 2)


def medians(
    steps: list[Callable[[], None]], repeats: int, run: int = 1, blas: Sequence[int] = ()
) -> list[float]:
    """Median seconds of each step, in turns: `run` of one, then `run` of the next.

    `blas` is the number of threads that BLAS may use in each; the solver's own kernels need it to
    keep to one.
    """
    for step in steps:
        step()
    taken: list[list[float]] = [[] for _ in steps]
    for _ in range(repeats):
        for i, step in enumerate(steps):
            with CONTROLLER.limit(limits=blas[i] if blas else THREADS, user_api="blas"):
                time.sleep(0.05)  # threads of BLAS keep a core busy for a while after their work
                begun = time.perf_counter()
                for _ in range(run):
                    step()
                taken[i].append((time.perf_counter() - begun) / run)
    return [float(np.median(times)) for times in taken]


def implicit_seconds(readings: Readings, W: np.ndarray, H: np.ndarray, repeats: int) -> float:
    return medians([Implicit(readings, W, H).step], repeats, RUN, [1])[0]


def compare(
    name: str, target: float, repeats: int, n: int, t: int, every: int, **kind: float
) -> None:
    """Dense over implicit, both versions of the panel."""
    for clipped in (0.0, 0.02):
        readings, W, H = make_readings(n, t, every, clipped=clipped, **kind)
        implicit, dense = Implicit(readings, W, H), Dense(readings, W, H)
        fast, slow = medians([implicit.step, dense.step], repeats, RUN, [1, THREADS])
        wanted = f">= {target:g}" if clipped == 0 else "> 1"
        share = "clipped {:.1%}, expanded {:.1%}".format(*implicit.shares)
        print(
            f"| {name}; {share} | {slow * 1e3:.1f} ms / {fast * 1e3:.2f} ms = {slow / fast:.1f} "
            f"| {wanted} |",
            flush=True,
        )


def autocorrelated_seconds(n: int, t: int, every: int, repeats: int) -> float:
    """An iteration of Algorithm 2 with every series pulled."""
    readings, W, H = make_readings(n, t, every)
    scale = levels(readings)
    H = H / scale[:, None]
    rho = np.full(n, 0.98)
    strength = choose_strength(None, rho, t)
    chunks = [
        AutocorrelatedChunk(
            readings[a:z], scale[a:z], H[a:z], LAG_1, rho[a:z], strength[a:z], switch=False
        )
        for a, z in chunk_bounds(readings)
    ]
    with ThreadPoolExecutor(THREADS) as pool:

        def step(inner: int = 1) -> None:
            fixed = Step.of(W, W, W, t, "hals", inner)
            list(pool.map(lambda chunk: chunk.advance(fixed), chunks))

        step(0)
        return medians([step], repeats, RUN, [1])[0]


def theorem_1(repeats: int) -> float:
    """The projection of 10,000 series of 365 periods, over one sine transform of them."""
    from scipy.fft import dst

    x = np.random.default_rng(0).gamma(2.0, 1.0, (10_000, 365))
    transform, project = medians(
        [lambda: dst(x, type=1, norm="ortho", axis=1), lambda: project_autocorrelation(x, 0.95)],
        repeats,
    )
    return project / transform


def full_observation(repeats: int) -> float:
    """Time to within 0.1 % of the best objective on a full panel, over that of scikit-learn."""
    import warnings

    from sklearn.decomposition import NMF

    rng = np.random.default_rng(0)
    n, t = 5000, 365
    truth = rng.gamma(1.0, 1.0, (n, RANK)) @ rng.gamma(1.0, 1.0, (RANK, t)) + rng.random((n, t))
    series, period = np.divmod(np.arange(truth.size), t)
    readings = Readings.from_arrays(
        series, period, period + 1, truth.ravel(), n_series=n, n_periods=t
    )
    W, H = rng.random((t, RANK)) + 0.1, rng.random((n, RANK)) + 0.1

    def ours(iterations: int) -> float:
        with Threads(readings, np.ones(n), H, Plain(accelerate=True)) as crew:
            found = factorize(
                crew, readings, np.ones(n), W, update="hals", n_inner=3, max_iter=iterations,
                tol=0.0, accelerate=True,
            )  # fmt: skip
        return float(found.history["objective"][-1])

    def theirs(iterations: int) -> float:
        model = NMF(RANK, init="custom", solver="cd", max_iter=iterations, tol=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = model.fit_transform(truth, W=H.copy(), H=np.ascontiguousarray(W.T))
        return float(np.sum((truth - fitted @ model.components_) ** 2))

    best = min(ours(400), theirs(400)) * 1.001

    def needed(solver: Callable[[int], float]) -> int:
        low, high = 1, 400
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if solver(middle) <= best else (middle + 1, high)
        return low

    counts = needed(ours), needed(theirs)
    fast, slow = medians([lambda: ours(counts[0]), lambda: theirs(counts[1])], repeats)
    print(f"(iterations needed: ours {counts[0]}, scikit-learn {counts[1]})")
    return fast / slow


def fit_memory(readings: Readings) -> str:
    """Peak memory of a process that loads these readings and fits them, start included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readings.npz"
        series = np.repeat(np.arange(readings.n_series, dtype=np.int32), np.diff(readings.indptr))
        np.savez(path, series=series, **dict(zip(NAMES, readings.arrays[1:], strict=True)))
        command = [sys.executable, __file__, "--fit", str(path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def fit_alone(path: Path) -> None:
    """What `fit_memory` runs: a few iterations from the default start, then the peak so far."""
    with np.load(path) as stored:
        n_series = int(stored["series"][-1]) + 1
        readings = Readings.from_arrays(
            stored["series"], *(stored[name] for name in NAMES), n_series=n_series, n_periods=365
        )
    NMF(rank=RANK, max_iter=5, tol=0.0).fit(readings, threads=THREADS)
    status = Path("/proc/self/status").read_text()  # maxrss would begin with the parent's
    peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1])
    print(f"{peak / 1e6:.2f} GB")


def acceleration() -> str:
    """Accelerated iterations, and their time, to come as far as 200 plain ones."""
    readings, _, _ = make_readings(2000, 365, 30)

    def fit(iterations: int, *, accelerate: bool) -> NMFFit:
        method = NMF(rank=RANK, max_iter=iterations, tol=0.0, accelerate=accelerate)
        return method.fit(readings, threads=THREADS)

    goal = fit(200, accelerate=False).history["objective"][-1]
    needed = int(np.argmax(fit(200, accelerate=True).history["objective"] <= goal))
    fast, slow = medians(
        [lambda: fit(needed, accelerate=True), lambda: fit(200, accelerate=False)], 5
    )
    return f"{needed} instead of 200 iterations, {fast / slow:.2f} of the time"


def machine() -> tuple[float, float]:
    rng = np.random.default_rng(0)
    a = rng.random((2000, 2000))
    product = medians([lambda: a @ a], 5)[0]
    source, target = rng.random(30_000_000), np.empty(30_000_000)
    copy = medians([lambda: np.copyto(target, source)], 5)[0]
    limits = 2 * 2000**3 / product / 1e9, 2 * source.nbytes / copy / 1e9
    print("matrix product {:.0f} GFLOP/s, copy {:.0f} GB/s\n".format(*limits))
    return limits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, a tenth of a million")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        fit_alone(options.fit)
        return
    quick = options.quick
    repeats = 5 if quick else 15
    gflops, gigabytes = machine()
    print("| measure | result | target |\n|---|---|---|")
    compare("T=365, N=20,000, monthly: dense / implicit", 10, repeats, 20_000, 365, 30)
    compare("T=8,760, N=2,000, daily, shared", 25, repeats, 2000, 8760, 24, shared=True)
    compare("T=8,760, N=2,000, daily, random", 12, repeats, 2000, 8760, 24)
    compare("T=17,520, N=2,000, monthly", 60, repeats, 2000, 17520, 1460)
    n = 100_000 if quick else 1_000_000
    readings, W, H = make_readings(n, 365, 30)
    seconds = implicit_seconds(readings, W, H, 5)
    each = seconds / readings.n_readings * 1e9
    work = readings.n_readings * 8 * RANK + n * 9 * RANK**2  # sums over edges; updates of weights
    moved = readings.n_readings * 52 + n * 16 * RANK  # bytes that cannot stay in a cache
    print(
        f"| N={n:,}, T=365, monthly: nanoseconds per reading "
        f"({work / seconds / 1e9 / gflops:.0%} of the product's GFLOP/s, "
        f"{moved / seconds / 1e9 / gigabytes:.0%} of the copy's GB/s) | {each:.1f} | <= 15 |"
    )
    peak = fit_memory(readings)
    print(f"| same: peak memory of a whole fit, readings included | {peak} | <= 2 GB |")
    base = implicit_seconds(*make_readings(50_000, 365, 30), repeats)
    double = implicit_seconds(*make_readings(100_000, 365, 30), repeats)
    print(f"| N doubles from 50,000 | {double / base:.2f} x | <= 2.2 |")
    finer = implicit_seconds(*make_readings(50_000, 365 * 48, 30 * 48), repeats)
    print(f"| T x 48 at the same readings, N=50,000 | {finer / base:.2f} x | <= 2 |")
    seconds = autocorrelated_seconds(20_000, 365, 30, repeats)
    each = seconds / 20_000 / 365 * 1e9
    print(f"| nmf-ar, T=365, N=20,000, monthly: nanoseconds per period | {each:.1f} | <= 40 |")
    print(f"| Theorem 1 / one DST-I | {theorem_1(repeats):.1f} | <= 15 |", flush=True)
    print(f"| acceleration, T=365, N=2,000, monthly | {acceleration()} | |", flush=True)
    ratio = full_observation(3)
    print(f"| full observation, T=365, N=5,000: ours / scikit-learn cd | {ratio:.2f} | <= 1.0 |")


if __name__ == "__main__":
    main()
