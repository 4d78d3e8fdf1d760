"""The rank of `nmf` that merged readings choose, beside the rank that is best in truth.

    python benchmarks/ranks.py --data FOLDER

Both schemes, readings every 3, 10 and 30 periods; errors are mean-normalised, over covered periods.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from accuracy import RANKS
from scipy.stats import spearmanr

from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.experiments.compare import measure_recovery
from unsum.experiments.datasets import NAMES, load_datasets
from unsum.experiments.page import Page, Table
from unsum.methods.nmf import NMF
from unsum.recovering import recover
from unsum.selection.choosing import score_candidates
from unsum.selection.merging import sample_readings

EVERY = (3, 10, 30)
SCHEMES = {"random": AtRandom, "periodic": Periodic}


def measure_ranks(task: tuple[str, str, Path]) -> list[tuple[float, float, float]]:
    """For each spacing: the error at the chosen rank and the usual one over the best; agreement."""
    name, scheme, folder = task
    (data,) = load_datasets([name], folder)
    found = []
    for every in EVERY:
        readings = aggregate(data.truth, SCHEMES[scheme](every, seed=0))
        sample = readings.take(sample_readings(readings, 0))
        methods = [(str(rank), NMF(rank=rank)) for rank in RANKS]
        scores = {each.label: each.score for each in score_candidates(sample, methods, threads=1)}
        errors = {
            label: measure_recovery(
                data.truth, readings, recover(readings, method, threads=1).values
            ).normalised_covered
            for label, method in methods
        }
        least = min(errors.values())
        agreement = spearmanr([scores[label] for label in errors], list(errors.values()))[0]
        chosen = errors[min(scores, key=scores.__getitem__)]
        found.append((chosen / least, errors["5"] / least, float(agreement)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    tasks = [(name, scheme, folder) for name in NAMES for scheme in SCHEMES]
    rows = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for (name, scheme, _), found in zip(tasks, pool.map(measure_ranks, tasks), strict=True):
            cells = [f"{a:.2f} ({b:.2f})" for a, b, _ in found]
            rows.append([f"{name}, {scheme}", *cells, f"{np.mean([c for *_, c in found]):.2f}"])
    page = Page("The rank of nmf")
    page.add(Table(["readings every", *map(str, EVERY), "rank correlation"], rows))
    print(page.markdown())


if __name__ == "__main__":
    main()
