"""Section 3 of the paper as a grid of fits, with results that survive a kill.

A task is one set of readings and one algorithm, over all ranks. Results are a Parquet table that is
replaced whole after every few tasks; what it holds is not computed again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unsum import __version__
from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.errors import ParameterError
from unsum.experiments.compare import measure_recovery
from unsum.experiments.datasets import Dataset
from unsum.recovering import recover
from unsum.selection import merge_neighbours
from unsum.tables.write import whole_file

SAVE_EVERY = 5.0  # seconds

# Even spreading gives periods that no reading covers the mean rate of the series; `even-0` leaves
# them at zero. The paper does not say which it means.

# What the paper does, and single changes to it that may explain a difference.
PRINTED = {
    "start": "random", "scale": False, "accelerate": False, "strength": "paper", "tol": 0.0,
}  # fmt: skip
INNER = {"hals": 10, "nenmf": 30}  # so that each update about solves its problem
OURS: dict[str, Any] = {
    "scale": True, "start": "denton", "strength": None, "inner": 3, "max_iter": 100,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "scaled": {"scale": True},
    "smooth start": {"start": "denton"},
    "frozen lambda": {"strength": None},
    "ends read": {"ends": True},
    "five times the iterations": {"times": 5},
    "one sweep": {"inner": 1},
    "accelerated": {"accelerate": True, "strength": None},
    "ours": OURS,
    "ours, 500 iterations": {**OURS, "max_iter": 500},
    "ours, accelerated": {**OURS, "accelerate": True},
}

SCHEMA = pa.schema(
    [
        ("dataset", pa.string()), ("scheme", pa.string()), ("every", pa.int32()),
        ("run", pa.int32()), ("method", pa.string()), ("update", pa.string()),
        ("variant", pa.string()), ("rank", pa.int32()), ("paper", pa.float64()),
        ("normalised", pa.float64()), ("paper_covered", pa.float64()),
        ("normalised_covered", pa.float64()), ("validation", pa.float64()),
        ("iterations", pa.int32()), ("seconds", pa.float64()),
    ]
)  # fmt: skip


@dataclass(frozen=True, order=True)
class Task:
    """Readings of a dataset, and an algorithm to run on them at all ranks."""

    dataset: str
    scheme: str
    every: int
    run: int
    method: str
    update: str
    variant: str = "paper"


@dataclass(frozen=True)
class Grid:
    """What to run."""

    every: tuple[int, ...] = (2, 3, 5, 7, 10, 15, 30)
    ranks: tuple[int, ...] = tuple(range(2, 21))
    runs: int = 3
    max_iter: int = 150
    variant_every: tuple[int, ...] = (7, 30)
    variant_ranks: tuple[int, ...] = (2, 5, 10, 20)

    @classmethod
    def quick(cls) -> Grid:
        return cls((2, 5, 10, 30), (2, 5, 10, 20), 1, 150, (10,), (5, 20))

    def tasks(self, names: Sequence[str]) -> list[Task]:
        """Every task: the paper's grid, then single changes with HALS."""
        tasks = [
            Task(name, scheme, every, run, method, update)
            for name in names
            for every in self.every
            for scheme in ("periodic", "random")
            for run in range(self.runs)
            for method, update in (
                ("even", ""), ("even-0", ""), ("nmf", "hals"), ("nmf", "nenmf"), ("nmf-ar", "hals"),
                ("nmf-ar", "nenmf"),
            )
        ]  # fmt: skip
        tasks += [
            Task(name, scheme, every, 0, method, "" if method == "even" else "hals", variant)
            for name in names
            for every in self.variant_every
            for scheme in ("periodic", "random")
            for variant in VARIANTS
            for method in ("even", "nmf", "nmf-ar")
            if variant != "paper" and (method != "even" or "ends" in VARIANTS[variant])
        ]
        return tasks

    def ranks_of(self, task: Task) -> tuple[int, ...]:
        if not task.update:
            return (0,)
        return self.ranks if task.variant == "paper" else self.variant_ranks


def run_task(data: Dataset, grid: Grid, task: Task) -> list[dict[str, Any]]:
    """Rows of results, one for each rank."""
    changes = dict(VARIANTS[task.variant])
    ends, times = changes.pop("ends", False), changes.pop("times", 1)
    scheme = Periodic if task.scheme == "periodic" else AtRandom
    readings = aggregate(data.truth, scheme(task.every, seed=task.run, ends=ends))
    settings: dict[str, Any] = {}
    if task.update:
        settings = {
            **PRINTED, "inner": INNER[task.update], "max_iter": grid.max_iter * times, **changes,
            "update": task.update, "seed": task.run,
        }  # fmt: skip
    if task.method == "nmf-ar":
        settings["rho"] = data.history
    elif task.method == "nmf":
        del settings["strength"]
    merged = None
    if (task.update, task.variant, task.run) == ("hals", "paper", 0):
        merged = merge_neighbours(readings, seed=task.run)
    rows = []
    for rank in grid.ranks_of(task):
        more = {**settings, "rank": rank} if rank else settings
        begun = time.perf_counter()
        recovery = recover(readings, task.method.removesuffix("-0"), threads=1, **more)
        values = recovery.values
        if task.method == "even-0":
            values = np.where(readings.covered(), values, 0.0)
        errors = measure_recovery(data.truth, readings, values)
        seconds = time.perf_counter() - begun
        score = np.nan
        if merged is not None:
            score = merged.score(recover(merged.readings, task.method, threads=1, **more).values)
        iterations = len(recovery.history["objective"]) - 1 if rank else 0
        rows.append(
            {
                **asdict(task),
                "rank": rank,
                **asdict(errors),
                "validation": score,
                "iterations": iterations,
                "seconds": seconds,
            }
        )
    return rows


class Results:
    """The table of results on disk, with the settings that it belongs to."""

    def __init__(self, path: Path, grid: Grid, datasets: Sequence[Dataset]) -> None:
        self.path = path
        self.settings: dict[str, Any] = {
            "version": __version__, "max_iter": grid.max_iter, "printed": PRINTED, "inner": INNER,
            "datasets": {data.name: str(data) for data in datasets},
        }  # fmt: skip
        self.rows: list[dict[str, Any]] = []
        self.elapsed = 0.0  # seconds, over all sittings
        self.saved = time.monotonic()  # last
        if path.exists():
            table = pq.read_table(path)
            stored = json.loads((table.schema.metadata or {}).get(b"unsum", b"{}"))
            self._require_same(stored)
            self.settings["datasets"] = stored["datasets"] | self.settings["datasets"]
            self.elapsed = stored.get("elapsed", 0.0)
            self.rows = table.to_pylist()

    def _require_same(self, stored: dict[str, Any]) -> None:
        """Rows may be added for more datasets, dates, ranks or runs, not under other settings."""
        for name, ours in self.settings.items():
            theirs = stored.get(name)
            if name == "datasets" and isinstance(theirs, dict):
                ours = {data: ours[data] for data in ours if data in theirs}
                theirs = {data: theirs[data] for data in ours}
            if ours != theirs:
                raise ParameterError(
                    f"{self.path} holds results with {name} {theirs}, now it is {ours}; choose "
                    "another folder, or remove that file."
                )

    def missing(self, tasks: Sequence[Task], grid: Grid) -> list[Task]:
        """The tasks whose rows are not all there."""
        names = list(Task.__dataclass_fields__)
        done = {(*(row[name] for name in names), row["rank"]) for row in self.rows}
        return [
            task
            for task in tasks
            if any(
                (*(getattr(task, name) for name in names), rank) not in done
                for rank in grid.ranks_of(task)
            )
        ]

    def add(self, rows: list[dict[str, Any]]) -> None:
        self.rows += rows
        if time.monotonic() - self.saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        now = time.monotonic()
        self.elapsed, self.saved = self.elapsed + now - self.saved, now
        with whole_file(self.path) as temporary:
            pq.write_table(self.table(), temporary)

    def table(self) -> pa.Table:
        ordered = sorted(self.rows, key=lambda row: [row[name] for name in SCHEMA.names[:8]])
        label = json.dumps({**self.settings, "elapsed": self.elapsed})
        return pa.Table.from_pylist(ordered, SCHEMA.with_metadata({"unsum": label}))


def run_grid(
    datasets: Sequence[Dataset],
    grid: Grid,
    results: Results,
    *,
    workers: int,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Run what is missing, on several processes; results are saved as they come."""
    tasks = results.missing(grid.tasks([data.name for data in datasets]), grid)
    by_name = {data.name: data for data in datasets}
    try:
        with _runners(by_name, grid, workers) as submit:
            waiting: set[Future[list[dict[str, Any]]]] = set()
            queue = iter(tasks)
            while True:
                for task in queue:
                    waiting.add(submit(task))
                    if len(waiting) > 2 * workers:
                        break
                if not waiting:
                    break
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    rows = future.result()
                    results.add(rows)
                    if progress is not None:
                        progress(len(rows))
    finally:
        results.save()


_datasets: dict[str, Dataset] = {}
_grid: list[Grid] = []


def _prepare(datasets: dict[str, Dataset], grid: Grid) -> None:
    """What every process needs once; and that it ends when the one that started it is killed."""
    Thread(target=_end_with_parent, daemon=True).start()
    _datasets.update(datasets)
    _grid.append(grid)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(task: Task) -> list[dict[str, Any]]:
    return run_task(_datasets[task.dataset], _grid[0], task)


@contextmanager
def _runners(
    datasets: dict[str, Dataset], grid: Grid, workers: int
) -> Iterator[Callable[[Task], Future[list[dict[str, Any]]]]]:
    """Processes that run tasks. They start afresh, so that compiled kernels come from the cache."""
    pool = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_prepare, initargs=(datasets, grid)
    )
    try:
        yield lambda task: pool.submit(_run, task)
    finally:
        pool.shutdown(cancel_futures=True)
