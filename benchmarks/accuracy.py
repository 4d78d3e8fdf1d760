"""How close methods and peers come to the truth: same readings, same errors.

    python benchmarks/accuracy.py --data FOLDER [--write docs/accuracy.md]

Errors are over covered periods, since most peers say nothing about others: the paper's, and that
with every series divided by its mean. Needs `pip install 'unsum[peers]'` for the peers. The folder
is that of `unsum paper --data`; without it only the synthetic panel is used.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator

from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.experiments.compare import measure_recovery
from unsum.experiments.datasets import NAMES, Dataset, load_datasets
from unsum.experiments.errors import Errors
from unsum.experiments.page import Heading, Page, Table, Text
from unsum.kernels.totals import meet_totals
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover

SEED = 0
EVERY = (3, 7, 30)
RANKS = (2, 3, 5, 8, 12, 20)
PRINTED = {"start": "random", "scale": False, "inner": 10, "max_iter": 150, "tol": 0.0}
Method = Callable[[Readings, Dataset], np.ndarray | None]


def ours(method: str, **settings: object) -> Method:
    def values(readings: Readings, data: Dataset) -> np.ndarray:  # noqa: ARG001
        return recover(readings, method, **settings).values

    return values


def oracle(method: str, **settings: object) -> Method:
    """The rank with the smallest normalised error, which nobody knows in practice."""

    def values(readings: Readings, data: Dataset) -> np.ndarray:
        more = {"rho": data.history} if method == "nmf-ar" else {}
        found = [
            recover(readings, method, rank=rank, seed=SEED, **settings, **more).values
            for rank in RANKS
        ]

        def error(tried: np.ndarray) -> float:
            return measure_recovery(data.truth, readings, tried).normalised_covered

        return min(found, key=error)

    return values


def by_series(
    one: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], *, regular: bool
) -> Method:
    """A peer that takes one series; `regular` if it needs readings of one length without gaps."""

    def values(readings: Readings, data: Dataset) -> np.ndarray | None:  # noqa: ARG001
        lengths = readings.stop - readings.start
        if regular and len(np.unique(lengths)) > 1:
            return None
        result = np.zeros((readings.n_series, readings.n_periods))
        for n in range(readings.n_series):
            own = slice(readings.indptr[n], readings.indptr[n + 1])
            start, stop, total = readings.start[own], readings.stop[own], readings.total[own]
            if len(start) < 2:
                result[n, start[0] : stop[0]] = total[0] / (stop[0] - start[0])
                continue
            result[n, start[0] : stop[-1]] = one(start, stop, total)
        return result

    return values


def tempdisagg(method: str) -> Method:
    """The Python package tempdisagg without an indicator. It pads irregular readings."""

    def one(start: np.ndarray, stop: np.ndarray, total: np.ndarray) -> np.ndarray:
        import pandas as pd
        from tempdisagg import TempDisaggModel

        lengths = stop - start
        frame = pd.DataFrame(
            {
                "Index": np.repeat(np.arange(len(total)), lengths),
                "Grain": np.concatenate([np.arange(1, length + 1) for length in lengths]),
                "y": np.repeat(total, lengths),
                "X": 1.0,
            }
        )
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = TempDisaggModel(method=method, conversion="sum", verbose=False)
            model.fit(frame)
            return np.asarray(model.predict(full=False)).ravel()

    return by_series(one, regular=True)


def denton_package() -> Method:
    """The package denton: proportional, with a constant indicator, equal lengths only."""

    def one(start: np.ndarray, stop: np.ndarray, total: np.ndarray) -> np.ndarray:
        import denton

        length = int(stop[0] - start[0])
        spread = denton.proportional_method(np.ones(length * len(total)), total)
        return spread.ravel() / length

    return by_series(one, regular=True)


def cumulative_pchip() -> Method:
    """Differences of a monotone cubic curve through the cumulative readings."""

    def one(start: np.ndarray, stop: np.ndarray, total: np.ndarray) -> np.ndarray:
        at = np.concatenate([[start[0]], stop])
        curve = PchipInterpolator(at, np.concatenate([[0.0], np.cumsum(total)]))
        return np.diff(curve(np.arange(start[0], stop[-1] + 1)))

    return by_series(one, regular=False)


def sklearn_nmf() -> Method:
    """scikit-learn's NMF of the evenly spread panel, moved onto the readings; oracle rank."""

    def values(readings: Readings, data: Dataset) -> np.ndarray:
        from sklearn.decomposition import NMF

        even = recover(readings, "even").values
        level = even.mean(axis=1, keepdims=True)
        best, smallest = even, np.inf
        for rank in RANKS:
            model = NMF(rank, init="nndsvda", max_iter=400)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                weights = model.fit_transform(even / np.where(level > 0, level, 1.0))
            tried = weights @ model.components_ * level
            _meet(readings, tried)
            error = measure_recovery(data.truth, readings, tried).normalised_covered
            if error < smallest:
                best, smallest = tried, error
        return best

    return values


def _meet(readings: Readings, values: np.ndarray) -> None:
    meet_totals(*readings.arrays, readings.active, values)


def soft_impute(readings: Readings, data: Dataset) -> np.ndarray:
    """Soft-thresholded singular values of single observed cells; the best of several thresholds."""
    rows = readings.series_of_readings()
    level = np.maximum(np.bincount(rows, readings.total) / np.bincount(rows), 1e-300)
    seen = np.zeros((readings.n_series, readings.n_periods), bool)
    seen[rows, readings.start] = True
    known = np.zeros(seen.shape)
    known[rows, readings.start] = readings.total / level[rows]
    largest = np.linalg.norm(np.where(seen, known, 1.0), 2)
    best, smallest = known, np.inf
    filled = np.where(seen, known, 1.0)
    for threshold in largest * np.array([0.1, 0.03, 0.01, 0.003]):
        for _ in range(100):
            u, s, vt = np.linalg.svd(filled, full_matrices=False)
            filled = np.where(seen, known, (u * np.maximum(s - threshold, 0)) @ vt)
        tried = np.maximum(filled, 0) * level[:, None]
        error = _hidden_error(tried, readings, data)
        if error < smallest:
            best, smallest = tried, error
    return best


def masked_nmf(readings: Readings, data: Dataset) -> np.ndarray:
    """NMF of single observed cells by multiplicative updates with a mask; oracle rank."""
    rows = readings.series_of_readings()
    level = np.maximum(np.bincount(rows, readings.total) / np.bincount(rows), 1e-300)
    seen = np.zeros((readings.n_series, readings.n_periods))
    seen[rows, readings.start] = 1.0
    known = np.zeros(seen.shape)
    known[rows, readings.start] = readings.total / level[rows]
    best, smallest = known, np.inf
    for rank in RANKS:
        rng = np.random.default_rng(SEED)
        H, W = rng.random((len(known), rank)), rng.random((rank, known.shape[1]))
        for _ in range(300):
            H *= (known @ W.T) / np.maximum((seen * (H @ W)) @ W.T, 1e-12)
            W *= (H.T @ known) / np.maximum(H.T @ (seen * (H @ W)), 1e-12)
        tried = np.where(seen > 0, known, H @ W) * level[:, None]
        error = _hidden_error(tried, readings, data)
        if error < smallest:
            best, smallest = tried, error
    return best


def _hidden_error(values: np.ndarray, readings: Readings, data: Dataset) -> float:
    return measure_recovery(data.truth, readings, values).normalised


METHODS: dict[str, Method] = {
    "even": ours("even"),
    "denton": ours("denton"),
    "PCHIP of cumulative readings": cumulative_pchip(),
    "tempdisagg denton-cholette": tempdisagg("denton-cholette"),
    "tempdisagg litterman": tempdisagg("litterman"),
    "denton (package)": denton_package(),
    "scikit-learn NMF, oracle rank": sklearn_nmf(),
    "Algorithm 1 as printed, oracle rank": oracle("nmf", **PRINTED),
    "Algorithm 2 as printed, oracle rank": oracle("nmf-ar", **PRINTED, strength="paper"),
    "`nmf`, oracle rank": oracle("nmf"),
    "`nmf-ar`, oracle rank": oracle("nmf-ar"),
    "`auto`": ours("auto"),
}
CELLS: dict[str, Method] = {
    "even (mean of the series)": ours("even"),
    "denton (lines between)": ours("denton"),
    "soft-impute, oracle threshold": soft_impute,
    "masked NMF, oracle rank": masked_nmf,
    "`nmf`, oracle rank": oracle("nmf"),
    "`nmf-ar`, oracle rank": oracle("nmf-ar"),
    "`auto`": ours("auto"),
}


def single_cells(truth: Panel, rate: float) -> Readings:
    """Readings of one period each, at random."""
    rng = np.random.default_rng(SEED)
    seen = rng.random(truth.values.shape) < rate
    seen[np.arange(truth.n_series), rng.integers(0, truth.n_periods, truth.n_series)] = True
    series, period = np.nonzero(seen)
    return Readings.from_arrays(
        series, period, period + 1, truth.values[seen], n_series=truth.n_series,
        n_periods=truth.n_periods, names=truth.names, calendar=truth.calendar,
    )  # fmt: skip


def run(
    methods: dict[str, Method],
    cases: dict[str, Readings],
    data: Dataset,
    errors_of: Callable[[Errors], tuple[float, float]],
) -> Table:
    """One row for each method, one column for each set of readings."""
    rows = []
    errors: dict[str, dict[str, float]] = {case: {} for case in cases}
    for name, method in methods.items():
        begun, cells = time.perf_counter(), []
        for case, readings in cases.items():
            try:
                values = method(readings, data)
            except ImportError as error:
                cells.append(f"{error.name} is not installed")
                continue
            if values is None:
                cells.append("cannot take them")
                continue
            negative = np.mean(values[readings.covered()] < 0)
            more = f", {negative:.1%} negative" if negative > 0 else ""
            measured = measure_recovery(data.truth, readings, values)
            normalised, paper = errors_of(measured)
            cells.append(f"{100 * normalised:.1f} / {100 * paper:.1f}{more}")
            errors[case][name] = normalised
        rows.append([name, *cells])
        print(data.name, rows[-1], f"{time.perf_counter() - begun:.1f} s", flush=True)
    ratios = []
    for found in errors.values():
        auto = found.pop("`auto`")
        ratios.append(auto / min(found.values()))
    rows.append(["`auto` / best of the others", *(f"{ratio:.2f}" for ratio in ratios)])
    return Table(["method", *cases], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--datasets", default=None)
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    names = NAMES if options.data else NAMES[:1]
    if options.datasets:
        names = options.datasets.split(",")
    page = Page("Accuracy beside peers")
    packages = ["numpy", "scipy", "scikit-learn", "tempdisagg", "denton"]
    page.add(
        Text(
            "Written by `python benchmarks/accuracy.py --data FOLDER`. Errors in percent over "
            "covered periods: with every series divided by its mean / the paper's. Seed "
            f"{SEED}; oracle ranks from {RANKS}, chosen by the first error; `tsdisagg` takes only "
            "months, quarters and years, so it is not here. Versions: "
            + ", ".join(f"{name} {_version(name)}" for name in ["unsum", *packages])
            + "."
        )
    )
    for data in load_datasets(names, options.data):
        page.add(Heading(str(data)))
        cases = {
            f"{label}, every {every}": aggregate(data.truth, scheme(every, seed=SEED))
            for scheme, label in ((Periodic, "periodic"), (AtRandom, "random"))
            for every in EVERY
        }
        page.add(run(METHODS, cases, data, lambda e: (e.normalised_covered, e.paper_covered)))
        page.add(
            Text("Single periods seen at random, errors over all periods (matrix completion):")
        )
        cells = {f"{rate:.0%} seen": single_cells(data.truth, rate) for rate in (0.1, 0.3, 0.5)}
        page.add(run(CELLS, cells, data, lambda e: (e.normalised, e.paper)))
    if options.write:
        options.write.write_text(page.markdown(), encoding="utf-8")


def _version(name: str) -> str:
    try:
        return version(name)
    except ImportError:
        return "not installed"


if __name__ == "__main__":
    main()
