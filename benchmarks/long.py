"""What `auto` promises on long grids: hours of many months, read as meters and bills are.

    python benchmarks/long.py --data FOLDER [--series 80] [--days 210]

Clients of Portugal by the hour, drawn at random; some are read every hour, the others in longer
stretches. Errors are mean-normalised, of the coarse ones and over all clients; intervals of nine in
ten are for the coarse ones, where they have any width, and for the sum of all clients.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from unsum.calendar import Calendar
from unsum.panel import sum_between
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.tables.panels import read_panel
from unsum.tables.sums import sum_groups, sum_series

DAY, MONTH = 24, 720

Starts = Callable[[int, int], np.ndarray]  # where readings of a series begin, by its number


def periodic(every: int, apart: int = 1) -> Starts:
    return lambda n, n_hours: np.arange(apart * (n % (every // apart)), n_hours, every)


def at_random(every: int) -> Starts:
    return lambda n, n_hours: np.random.default_rng(n).permutation(n_hours)[: n_hours // every]


CASES: list[tuple[str, bool, Starts]] = [
    ("a quarter by the hour, others every 30 days", True, periodic(MONTH, DAY)),
    ("a quarter by the hour, others about every 21 days", True, at_random(500)),
    ("a quarter by the hour, others every day", True, periodic(DAY, DAY)),
    ("all every 6 hours", False, periodic(6)),
    ("all at random, about every 36 hours", False, at_random(36)),
    ("all at random, about every week", False, at_random(168)),
    ("all every day *", False, periodic(DAY, DAY)),
    ("all every 30 days *", False, periodic(MONTH, DAY)),
]


def read_mixed(
    values: np.ndarray, fine: np.ndarray, starts: Starts, calendar: Calendar
) -> Readings:
    """Every hour of some series; the others from the first hour on, in stretches."""
    n_series, n_hours = values.shape
    rows: list[tuple[np.ndarray, ...]] = []
    for n, own in enumerate(values):
        begin = np.arange(n_hours) if fine[n] else np.union1d([0], starts(n, n_hours))
        end = np.append(begin[1:], n_hours)
        rows.append((np.full(len(begin), n), begin, end, np.add.reduceat(own, begin)))
    return Readings.from_arrays(
        *(np.concatenate(column) for column in zip(*rows, strict=True)),
        n_series=n_series, n_periods=n_hours, calendar=calendar,
    )  # fmt: skip


def measure(values: np.ndarray, fine: np.ndarray, readings: Readings) -> Iterator[str]:
    begun = time.perf_counter()
    recovery = recover(readings, interval=0.9)
    seconds = time.perf_counter() - begun
    scaled = values / values.mean(axis=1, keepdims=True)

    def error(found: np.ndarray, who: np.ndarray) -> float:
        gaps = found / values.mean(axis=1, keepdims=True) - scaled
        return float(np.linalg.norm(gaps[who]) / np.linalg.norm(scaled[who]))

    everyone = np.ones(len(values), bool)
    yield recovery.method
    yield f"{error(recovery.values, ~fine):.3f}"
    for method in ("even", "denton"):
        yield f"{error(recover(readings, method).values, ~fine):.3f}"
    yield f"{(recovery.expected_error or np.nan) / error(recovery.values, everyone):.2f}"
    for step in (1, DAY, MONTH):
        cuts = np.arange(0, readings.n_periods + 1, step)
        table = sum_series(recovery, cuts)
        yield _held(table, sum_between(values, cuts).ravel(), np.repeat(~fine, len(cuts) - 1))
    for step in (1, DAY):
        cuts = np.arange(0, readings.n_periods + 1, step)
        table = sum_groups(recovery, cuts, "all")
        yield _held(table, sum_between(values, cuts).sum(axis=0), np.ones(len(cuts) - 1, bool))
    yield f"{seconds:.0f}"


def _held(table: object, truth: np.ndarray, who: np.ndarray) -> str:
    lower, upper = (np.asarray(table[name]) for name in ("lower", "upper"))  # type: ignore[index]
    who = who & (upper - lower > 1e-9 * truth.max())
    slack = 1e-9 * truth
    inside = (lower - slack <= truth) & (truth <= upper + slack)
    return f"{inside[who].mean():.1%}" if who.any() else "known"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--series", type=int, default=80)
    parser.add_argument("--days", type=int, default=210)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    panel = read_panel(options.data / "portugal_hourly.parquet")
    n_hours = DAY * options.days
    rng = np.random.default_rng(options.seed)
    values = panel.values[np.sort(rng.permutation(len(panel.values))[: options.series]), :n_hours]
    values = values[values.mean(axis=1) > 0]
    calendar = replace(panel.calendar, edges=panel.calendar.edges[: n_hours + 1])
    columns = (
        "readings", "chosen", "`auto`", "even", "denton", "expected / true", "hours", "days",
        "months", "all, hours", "all, days", "seconds",
    )  # fmt: skip
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for label, mixed, starts in CASES:
        fine = np.arange(len(values)) % 4 == 0 if mixed else np.zeros(len(values), bool)
        readings = read_mixed(values, fine, starts, calendar)
        print("| " + " | ".join([label, *measure(values, fine, readings)]) + " |", flush=True)


if __name__ == "__main__":
    main()
