"""The demonstration: a town billed, recovered, and compared with what really happened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.errors import TableError
from unsum.experiments.compare import Result, measure_recovery
from unsum.experiments.picture import draw_customers
from unsum.experiments.town import FIRST_DAY, N_DAYS, Town, simulate_town
from unsum.findings import Findings
from unsum.panel import sum_between
from unsum.recovering import recover
from unsum.recovery import Recovery
from unsum.tables.jobs import Job, Outputs, Say, Watch
from unsum.tables.rows import Options
from unsum.tables.running import run_recover
from unsum.tables.write import write_table


@dataclass(frozen=True)
class Demo:
    """What the demonstration found, and where it put things."""

    job: Job
    results: list[Result]
    months: dict[str, float]
    folder: Path

    @property
    def findings(self) -> Findings:
        return self.job.findings

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.job.to_dict(),
            "results": [result.to_dict() for result in self.results],
            "months": self.months,
            "folder": str(self.folder),
        }

    def facts(self) -> list[tuple[str, str]]:
        even, recovered = (self.months[name] for name in ("even", self.job.recovery.method))
        return [
            *self.job.facts(),
            ("bills", str(self.folder / "readings.csv")),
            ("picture", str(self.folder / "customers.png")),
            (
                "result",
                f"calendar months of each customer: error {recovered:.1%}, even spreading "
                f"{even:.1%}",
            ),
            (
                "next",
                f"open {self.folder / 'report.html'} in a browser; "
                f"unsum check {self.folder / 'readings.csv'}",
            ),
        ]


def run_demo(folder: Path, n_customers: int, seed: int, *, watch: Watch, say: Say) -> Demo:
    """Simulate, write the bills, recover them, measure, and draw."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(f"the folder {folder} cannot be made: {error.strerror}.") from error
    town = simulate_town(n_customers, seed)
    write_table(town.bills, folder / "readings.csv")
    options = Options(range_start=FIRST_DAY, range_end=FIRST_DAY + timedelta(days=N_DAYS))
    job = run_recover(
        folder / "readings.csv",
        Outputs(folder / "daily.parquet", report=folder / "report.html"), options, method="auto",
        settings={}, drop_bad=True, watch=watch, say=say,
    )  # fmt: skip
    recovered = job.recovery
    even = recover(recovered.readings, "even")
    results, months = [], {}
    for recovery in (even, recovered):
        errors = measure_recovery(town.truth, recovery.readings, recovery.values)
        results.append(Result(recovery.method, errors))
        months[recovery.method] = _month_error(town, recovery)
    draw_customers(town.truth, recovered, _choose(town, recovered, even), folder / "customers.png")
    return Demo(job, results, months, folder)


def _places(town: Town, recovery: Recovery) -> np.ndarray:
    return np.asarray(pc.index_in(recovery.readings.names, value_set=pa.array(town.truth.names)))


def _month_error(town: Town, recovery: Recovery) -> float:
    """The relative error of calendar months, every customer divided by its mean."""
    cuts = recovery.readings.calendar.cuts("MS")
    truth = sum_between(town.truth.values[_places(town, recovery)], cuts)
    found = sum_between(recovery.values, cuts)
    mean = truth.mean(axis=1, keepdims=True)
    return float(np.linalg.norm((found - truth) / mean) / np.linalg.norm(truth / mean))


def _choose(town: Town, recovered: Recovery, even: Recovery, n: int = 4) -> list[str]:
    """Billed customers across the range of improvement: the best, two between, the worst."""
    truth = town.truth.values[_places(town, recovered)]
    gap = [np.linalg.norm(values - truth, axis=1) for values in (recovered.values, even.values)]
    gain = np.where(np.diff(recovered.readings.indptr) < 100, gap[0] / (gap[1] + 1e-9), np.inf)
    order = np.argsort(gain)
    order = order[np.isfinite(gain[order])]
    picks = order[np.linspace(0, len(order) - 1, n).astype(int)]
    return [recovered.readings.names[int(i)].as_py() for i in picks]
