"""An iteration of Algorithm 1 by threads of one process and by workers of a Dask cluster.

    python benchmarks/cluster.py [--series 1000000]

Customers with 13 bills over 365 days, rank 10. Iterations of both are interleaved, medians are
printed; also with one worker and half the series, for how it grows. Bytes are what a step and the
contributions of the chunks weigh when they are sent.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from apply import make_bills

from unsum.cluster import DaskCrew, join_cluster
from unsum.engine import chunk_bounds, one_blas_thread
from unsum.factorization.chunk import Step
from unsum.factorization.crew import Plain, Threads
from unsum.factorization.loop import Descent, stretch
from unsum.factorization.start import initial_profiles
from unsum.methods.nmf import levels

RANK = 10


def begin(crew: object, readings: object, W: np.ndarray) -> Descent:
    descent = Descent(crew, W, stretch(readings), "hals", 3)
    descent.begin()
    for _ in range(2):
        descent.iterate()
    return descent


def time_iteration(descent: Descent) -> float:
    begun = time.perf_counter()
    descent.iterate()
    return time.perf_counter() - begun


def measure(n_series: int, workers: int, rounds: int, folder: Path) -> tuple[float, float, int]:
    """Seconds of an iteration by as many threads and workers, and bytes moved by the latter."""
    readings = make_bills(n_series, seed=0)
    scale = levels(readings)
    with one_blas_thread():
        W = initial_profiles(readings, scale, RANK, "denton", 0)
    H = np.repeat((scale > 0)[:, None] / (RANK * W.mean()), RANK, axis=1)
    with (
        Threads(readings, scale, H, Plain(), workers) as threads,
        join_cluster(f"local:{workers}", folder) as cluster,
        DaskCrew(cluster, readings, scale, H, Plain()) as crew,
    ):
        here, there = begin(threads, readings, W), begin(crew, readings, W)
        times = [(time_iteration(here), time_iteration(there)) for _ in range(rounds)]
        assert np.array_equal(here.W, there.W)
        step = Step.of(here.W, here.W, here.W, here.width, "hals", 3)
        moved = len(pickle.dumps(step)) * workers
        reduction = threads.chunks[0].advance(step)
        moved += len(pickle.dumps(reduction)) * len(chunk_bounds(readings))
    return *(statistics.median(each) for each in zip(*times, strict=True)), moved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print("| series | workers or threads | threads, s | workers, s | ratio | bytes moved, MB |\n"
          "|---|---|---|---|---|---|")  # fmt: skip
    half = arguments.series // 2
    for n_series, workers in ((arguments.series, 2), (arguments.series, 1), (half, 1)):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            here, there, moved = measure(n_series, workers, arguments.rounds, Path(folder))
        print(f"| {n_series:,} | {workers} | {here:.3f} | {there:.3f} | {there / here:.2f} | "
              f"{moved / 1e6:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
