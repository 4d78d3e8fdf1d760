"""What the daily load of feeders adds to monthly bills.

    python benchmarks/feeders.py --data ../shared/data [--every 30] [--runs 3]

Hides each panel behind a reading every 30 days, puts its series at random on feeders whose daily
load is known, and recovers it with and without these loads. Two errors: that of the whole panel,
every series divided by its mean, and that of the median series. Means over runs. The last panel is
the simulated town, where shops and offices are a quarter of the customers and most of the load.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import unsum
from unsum.experiments.compare import measure_recovery
from unsum.experiments.datasets import load_datasets
from unsum.experiments.town import simulate_town

METHODS = ("even", "denton", "auto")


def panels(data: Path) -> Iterator[tuple[str, unsum.Panel]]:
    for dataset in load_datasets(["portugal", "regions"], data):
        yield dataset.name, dataset.truth
    yield "simulated town", simulate_town(240, seed=5).truth


def put_on_feeders(
    truth: unsum.Panel, n_feeders: int, seed: int
) -> tuple[dict[str, list[str]], pa.Table]:
    """Which series is on which feeder, and the table of the feeders' daily loads."""
    order = np.random.default_rng(seed).permutation(truth.n_series)
    names, edges = truth.names.to_pylist(), truth.calendar.label_edges(slice(None))
    groups, tables = {}, []
    for k in range(n_feeders):
        members = order[k::n_feeders]
        groups[f"feeder {k}"] = [names[n] for n in members]
        columns = {
            "start": edges[:-1],
            "end": edges[1:],
            "total": truth.values[members].sum(axis=0),
        }
        tables.append(pa.table({"group": [f"feeder {k}"] * truth.n_periods, **columns}))
    return groups, pa.concat_tables(tables)


def errors(truth: unsum.Panel, recovery: unsum.Recovery) -> np.ndarray:
    readings, values = recovery.readings, recovery.values
    names = truth.names.to_pylist()
    own = truth.values[[names.index(name) for name in readings.names.to_pylist()]]
    size = np.linalg.norm(own, axis=1)
    each = np.linalg.norm(values - own, axis=1)[size > 0] / size[size > 0]
    whole = measure_recovery(truth, readings, values).normalised_covered
    return np.array([whole, np.median(each)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--feeders", default="1,10,40")
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.feeders.split(",")]
    heads = ["bills alone", *(f"and {count} feeder{'s'[: count > 1]}" for count in counts)]
    print("| panel | method | " + " | ".join(heads) + " |")
    print("|---|---" + "|---" * len(heads) + "|")
    for name, truth in panels(arguments.data):
        for method in METHODS:
            found = np.zeros((len(heads), 2))
            for run in range(arguments.runs):
                scheme = unsum.Periodic(arguments.every, seed=run, ends=True)
                readings = unsum.aggregate(truth, scheme)
                found[0] += errors(truth, unsum.recover(readings, method))
                for place, count in enumerate(counts):
                    known = readings.with_groups(*put_on_feeders(truth, count, run))
                    found[place + 1] += errors(truth, unsum.recover(known, method))
            cells = [f"{whole:.3f}, {median:.3f}" for whole, median in found / arguments.runs]
            print(f"| {name} | `{method}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
