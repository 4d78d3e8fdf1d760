"""How many new series a stored model serves per second, and how soon a single one.

    python benchmarks/apply.py [--series 50000]

Learns a model from 2,000 simulated customers with 13 bills over 365 days, by each method, saves and
loads it, and applies it to new customers, values in memory; then to one customer with one bill,
from a dataframe to values. Rounds of all methods are interleaved, medians are printed. With
intervals, lower and upper ends of every day are made as well.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import unsum
from unsum.model import Model

N_PERIODS, N_BILLS = 365, 13
METHODS = {"even": {}, "denton": {}, "nmf": {"rank": 10}, "nmf-ar": {"rank": 10}, "panel": {}}


def make_bills(n_series: int, seed: int) -> unsum.Readings:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(24, 29, (n_series, N_BILLS))
    ends = rng.integers(0, 2, (n_series, 1)) + np.cumsum(lengths, axis=1)
    ends = np.minimum(ends, N_PERIODS)
    starts = np.concatenate([ends[:, :1] - lengths[:, :1], ends[:, :-1]], axis=1)
    season = 1 + 0.5 * np.cos(2 * np.pi * (starts + ends) / 2 / N_PERIODS)
    level = rng.lognormal(0, 1, (n_series, 1))
    total = level * season * (ends - starts) * rng.gamma(20, 1 / 20, ends.shape)
    return unsum.Readings.from_arrays(
        np.repeat(np.arange(n_series), N_BILLS), starts.ravel(), ends.ravel(), total.ravel(),
        n_series=n_series, n_periods=N_PERIODS,
    )  # fmt: skip


def load_model(method: str, settings: dict, folder: Path) -> Model:
    readings = make_bills(2000, seed=0)
    interval = 0.9 if method == "panel" else None
    path = folder / f"{method}.unsum"
    recovery = unsum.recover(readings, method, interval=interval, **settings)
    recovery.save(path, profiles_only=True)
    return unsum.load(path)


def time_apply(model: Model, readings: object, interval: float | None = None) -> float:
    begun = time.perf_counter()
    recovery = model.apply(readings, interval=interval)
    if interval is None:
        _ = recovery.values
    else:
        for block in recovery.blocks():
            assert block.bounds is not None
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    newcomers = make_bills(arguments.series, seed=1)
    bill = pa.table({"series": ["new"], "start": [31], "end": [59], "total": [300.0]})
    with tempfile.TemporaryDirectory() as folder:
        models = {
            method: load_model(method, settings, Path(folder))
            for method, settings in METHODS.items()
        }
    cases = {method: (model, None) for method, model in models.items()}
    cases["panel with intervals"] = (models["panel"], 0.9)
    many, one = ({name: [] for name in cases} for _ in range(2))
    for _ in range(arguments.rounds + 1):  # the first compiles
        for name, (model, interval) in cases.items():
            many[name].append(time_apply(model, newcomers, interval))
            one[name].append(time_apply(model, bill, interval))
    print(f"{arguments.series:,} series x {N_BILLS} bills -> {N_PERIODS} days, medians of rounds")
    print(f"{'method':<22}{'series per second':>20}{'one series, ms':>18}")
    for name in cases:
        rate = arguments.series / statistics.median(many[name][1:])
        print(f"{name:<22}{rate:>20,.0f}{1000 * statistics.median(one[name][1:]):>18.1f}")


if __name__ == "__main__":
    main()
