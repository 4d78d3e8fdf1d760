"""What `auto` promises, measured: error beside the others, expected error, intervals, ranking.

    python benchmarks/targets.py --data FOLDER [--further] [--panels FILE ...] [--late FILE ...]
        [--ranks] [--large]

Cells are panel, scheme, readings every so many periods, and run (seed). The paper's algorithms, at
the rank that is best for the cell, are run for the first seed. Errors are mean-normalised, over
covered periods and over all.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import mixed
import numpy as np
from accuracy import PRINTED, RANKS, cumulative_pchip

from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.calendar import Frequency
from unsum.experiments.compare import find_truth, measure_recovery
from unsum.experiments.datasets import NAMES, Dataset, load_datasets
from unsum.experiments.page import Heading, Page, Table, Text
from unsum.kernels.totals import meet_totals
from unsum.methods.auto import Auto
from unsum.panel import Panel, sum_between
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.recovery import Recovery
from unsum.tables.panels import read_panel

EVERY = (2, 3, 5, 7, 10, 15, 30)
INTERVAL = 0.9
MONTH = 30
LARGE = 100_000  # series of a large panel
OTHERS = ("even", "denton", "pchip", "Algorithm 1", "Algorithm 2")
ORACLES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Algorithm 1", "nmf", {}),
    ("Algorithm 1", "nmf", PRINTED),
    ("Algorithm 2", "nmf-ar", {}),
    ("Algorithm 2", "nmf-ar", {**PRINTED, "strength": "paper"}),
)
FEW = 20  # series of a small panel
FEWEST = 4  # readings of a series, about
OF_FEW = f", {FEW} series"
EVERY_FEW = (3, 10, 30)
FURTHER = {  # file, periods added up, first period, periods
    "regions, the first year": ("us_regions_daily", 1, 0, 365),
    "portugal by 3 hours": ("portugal_hourly", 3, 800, 360),
    "portugal by hours": ("portugal_hourly", 1, 4800, 336),
    "single households by weeks": ("ausgrid_weekly", 1, 0, 156),
}


@lru_cache
def load(name: str, folder: str, run: int = 0) -> Dataset:
    if name.endswith(OF_FEW):
        return _draw(load(name.removesuffix(OF_FEW), folder), run)
    if name in FURTHER:
        return _load_further(name, Path(folder))
    if name.endswith(".parquet"):
        path = Path(name)
        return Dataset(path.stem, path.stem, read_panel(path), None)
    (data,) = load_datasets([name], Path(folder))
    return data


def _load_further(name: str, folder: Path) -> Dataset:
    file, step, first, count = FURTHER[name]
    panel = read_panel(folder / f"{file}.parquet")
    cuts = np.arange(first, first + count + 1) * step
    values = sum_between(panel.values, cuts)
    used = values.mean(axis=1) > 0
    calendar = panel.calendar
    frequency = Frequency.parse(f"{step}h") if step > 1 else calendar.frequency
    calendar = replace(calendar, edges=calendar.edges[cuts], frequency=frequency)
    names = np.array(panel.names.to_pylist())[used]
    return Dataset(name, name, Panel.from_values(values[used], names, calendar), None)


def _draw(data: Dataset, run: int) -> Dataset:
    """A few of the series, other ones in every run."""
    panel = data.truth
    some = np.random.default_rng(run).choice(panel.n_series, FEW, replace=False)
    few = Panel.from_values(panel.values[some], panel.names.take(some), panel.calendar)
    return Dataset(data.name + OF_FEW, data.name, few, None)


def measure_cell(task: tuple[str, str, int, int, str, bool]) -> dict[str, Any]:
    """Everything about one set of readings."""
    name, scheme, every, run, folder, ranked = task
    data = load(name, folder, run)
    make = {"periodic": Periodic, "random": AtRandom}[scheme]
    readings = aggregate(data.truth, make(every, seed=run))
    recovery = recover(readings, threads=1, interval=INTERVAL)
    cell: dict[str, Any] = {"dataset": data.name, "scheme": scheme, "every": every, "run": run}
    cell["season"] = data.truth.calendar.frequency.season
    values = {
        "auto": recovery.values,
        "even": recover(readings, "even", threads=1).values,
        "denton": recover(readings, "denton", threads=1).values,
        "pchip": _pchip(readings, data),
    }
    for method, found in values.items():
        errors = measure_recovery(data.truth, readings, found)
        cell[method], cell[f"{method} (all)"] = errors.normalised_covered, errors.normalised
    if run == 0 and name in NAMES:
        cell |= _oracles(data, readings)
    cell["method"] = mixed.chosen(recovery)
    cell["expected"] = recovery.expected_error
    cell |= _coverage(find_truth(data.truth, readings), recovery)
    if ranked:
        cell["rank correlation"] = _rank_correlation(data, readings, recovery)
    return cell


def _pchip(readings: Readings, data: Dataset) -> np.ndarray:
    """Where nothing is read, the mean rate as for even spreading."""
    values = cumulative_pchip()(readings, data)
    even = recover(readings, "even", threads=1).values
    values = np.where(readings.covered(), np.maximum(values, 0), even)
    meet_totals(*readings.arrays, readings.active, values)
    return values


def _oracles(data: Dataset, readings: Readings) -> dict[str, float]:
    """The errors of the paper's algorithms, printed or with our settings, at the best rank."""
    best: dict[str, float] = {}
    for label, method, settings in ORACLES:
        more = {"rho": data.history} if method == "nmf-ar" else {}
        for rank in RANKS:
            found = recover(readings, method, rank=rank, threads=1, **settings, **more).values
            errors = measure_recovery(data.truth, readings, found)
            for key, error in (
                (label, errors.normalised_covered), (f"{label} (all)", errors.normalised),
            ):  # fmt: skip
                best[key] = min(best.get(key, np.inf), error)
    return best


def _coverage(truth: np.ndarray, recovery: Recovery) -> dict[str, float]:
    """How often intervals hold the truth: periods, sums over 30, the sum of all series."""
    readings = recovery.readings
    every = np.arange(readings.n_periods + 1)
    months = np.arange(0, readings.n_periods + 1, MONTH)
    covered = readings.covered()
    blocks = [block.bounds for block in recovery.blocks()]
    lower = np.concatenate([bounds.lower for bounds in blocks])
    upper = np.concatenate([bounds.upper for bounds in blocks])
    inside = _inside(truth, lower, upper)
    label = readings.calendar.label_edges
    table = recovery.totals(label(months).to_pylist(), backend="pyarrow")
    sums = recovery.totals(label(every).to_pylist(), by="all", backend="pyarrow")
    months_inside = _inside(sum_between(truth, months).ravel(), table["lower"], table["upper"])
    return {
        "periods": float(inside[covered].mean()),
        "uncovered": float(inside[~covered].mean()) if not covered.all() else float("nan"),
        "months": float(months_inside.mean()),
        "sums": float(_inside(truth.sum(axis=0), sums["lower"], sums["upper"]).mean()),
    }


def _inside(truth: np.ndarray, lower: Any, upper: Any) -> np.ndarray:
    slack = 1e-9 * np.abs(truth)  # values that readings fix are met to rounding
    return (truth >= np.asarray(lower) - slack) & (truth <= np.asarray(upper) + slack)


def _rank_correlation(data: Dataset, readings: Readings, recovery: Recovery) -> float:
    """Between the scores of the candidates and their true errors."""
    from scipy.stats import spearmanr

    auto = Auto()
    methods = dict(auto._methods(readings.n_periods))
    errors = [
        measure_recovery(
            data.truth, readings, recover(readings, methods[row["candidate"]], threads=1).values
        ).normalised_covered
        for row in recovery.candidates
    ]
    return float(spearmanr([row["score"] for row in recovery.candidates], errors)[0])


def time_large() -> str:
    """Seconds from monthly readings of a large panel to its values, in this process."""
    rng = np.random.default_rng(0)
    year = np.arange(365)
    shapes = 1 + np.array([np.cos(year * w) for w in (2 * np.pi / 365, 2 * np.pi / 7)])
    level = rng.lognormal(2.0, 0.7, (LARGE, 1))
    values = rng.gamma(4.0, 0.25, (LARGE, 365)) * (rng.gamma(2.0, 1.0, (LARGE, 2)) @ shapes)
    readings = aggregate(Panel.from_values(level * values), Periodic(MONTH, seed=0))
    recover(readings[:100])  # kernels are compiled
    begun = time.perf_counter()
    recovery = recover(readings)
    assert recovery.values.shape == values.shape
    seconds = time.perf_counter() - begun
    return (
        f"{LARGE:,} series of 365 days read every {MONTH}, {readings.n_readings:,} readings in "
        f"memory: {seconds:.0f} s to all values on this machine ({recovery.method})."
    )


def hides_a_season(cell: dict[str, Any]) -> bool:
    """Days read every 7: weekly totals never show the week, and so on."""
    season = int(cell["season"])
    return season > 1 and cell["scheme"] == "periodic" and cell["every"] % season == 0


def ratio(cell: dict[str, Any], suffix: str = "") -> float:
    others = [cell[other + suffix] for other in OTHERS if other + suffix in cell]
    return float(cell[f"auto{suffix}"] / min(others))


def geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def write_page(cells: list[dict[str, Any]]) -> Page:
    page = Page("What `auto` promises, measured")
    runs = len({cell["run"] for cell in cells})
    page.add(
        Text(
            "Written by `python benchmarks/targets.py --data FOLDER --further --ranks --large "
            f"--panels FILES --late FILES`. {len(cells)} cells: both schemes, readings every "
            f"{', '.join(map(str, EVERY))}, {runs} seeds. The others are even spreading, denton, "
            "PCHIP of the cumulative curve, and for the first seed the paper's algorithms, as "
            "printed and with our settings, at that of the ranks "
            f"{', '.join(map(str, RANKS))} which is best for the cell. These panels were looked at "
            "while the model was made."
        )
    )
    page.add(Heading("Summary"))
    page.add(_summary(cells))
    for title, value in (
        ("`auto` over the best of the others, covered periods", ratio),
        ("The same over all periods", lambda cell: ratio(cell, " (all)")),
        ("Expected error over true error", lambda cell: cell["expected"] / cell["auto"]),
        ("90 % intervals of covered periods hold the truth", lambda cell: cell["periods"]),
        ("The same where nothing is read", lambda cell: cell["uncovered"]),
        (f"The same for sums over {MONTH} periods", lambda cell: cell["months"]),
        ("The same for the sum of all series, by period", lambda cell: cell["sums"]),
    ):
        page.add(Heading(title))
        page.add(_by_every(cells, value))
    return page


def _summary(cells: list[dict[str, Any]]) -> Table:
    ratios = [ratio(cell) for cell in cells]
    everywhere = [ratio(cell, " (all)") for cell in cells]
    against = [cell["auto"] / cell["Algorithm 2"] for cell in cells if "Algorithm 2" in cell]
    seen = [cell for cell in cells if not hides_a_season(cell)]
    honest = [0.8 <= cell["expected"] / cell["auto"] <= 1.25 for cell in seen]
    synthetic = [
        ratio(cell)
        for cell in cells
        if (cell["dataset"], cell["scheme"], cell["every"]) == ("synthetic", "random", 3)
    ]
    rows = [
        ["`auto` / best of the others, worst cell", "<= 1.02", f"{max(ratios):.3f}"],
        ["the same over all periods", "", f"{max(everywhere):.3f}"],
        ["geometric mean over cells", "<= 0.87", f"{geometric(ratios):.3f}"],
        ["the same over all periods", "", f"{geometric(everywhere):.3f}"],
        ["`auto` / Algorithm 2, geometric mean", "<= 0.76", f"{geometric(against):.3f}"],
        [
            "expected / true error within 0.8 to 1.25",
            "90 %",
            f"{np.mean(honest):.1%}: {sum(honest)} of {len(honest)} cells",
        ],
    ]
    if synthetic:
        rows.append(["synthetic, random, every 3", "<= 0.8", f"{max(synthetic):.3f}"])
    for name in dict.fromkeys(cell["dataset"] for cell in cells):
        own = [cell for cell in cells if cell["dataset"] == name]
        visible = [cell for cell in own if not hides_a_season(cell)]
        for kind, target, some in (
            ("periods", "87 to 93 %", visible), ("months", "87 to 93 %", own),
            ("sums", "85 to 95 %", own),
        ):  # fmt: skip
            found = float(np.mean([cell[kind] for cell in some]))
            rows.append([f"{name}: intervals of {kind}", target, f"{found:.1%}"])
    ranked = [cell["rank correlation"] for cell in cells if "rank correlation" in cell]
    if ranked:
        rows.append(
            ["rank correlation of scores and true errors", "", f"mean {np.mean(ranked):.2f}"]
        )
    return Table(["measure", "target", "measured"], rows)


def _further(cells: list[dict[str, Any]]) -> Table:
    """What the summary says, by panel, without the paper's algorithms."""
    rows = []
    for name in dict.fromkeys(cell["dataset"] for cell in cells):
        own = [cell for cell in cells if cell["dataset"] == name]
        visible = [cell for cell in own if not hides_a_season(cell)]
        ratios = [ratio(cell) for cell in own]
        honest = [0.8 <= cell["expected"] / cell["auto"] <= 1.25 for cell in visible]
        rows.append(
            [
                name, f"{max(ratios):.3f}", f"{geometric(ratios):.3f}", f"{np.mean(honest):.0%}",
                f"{np.mean([cell['periods'] for cell in visible]):.1%}",
                f"{np.mean([cell['months'] for cell in own]):.1%}",
                f"{np.mean([cell['sums'] for cell in own]):.1%}",
            ]
        )  # fmt: skip
    head = ["panel", "worst cell", "geometric mean", "expected within", "periods", "sums over 30"]
    return Table([*head, "all series"], rows)


def _by_every(cells: list[dict[str, Any]], value: Any) -> Table:
    """Means over runs."""
    rows = []
    for name in dict.fromkeys(cell["dataset"] for cell in cells):
        for scheme in ("random", "periodic"):
            row = [f"{name}, {scheme}"]
            for every in EVERY:
                found = [
                    value(cell)
                    for cell in cells
                    if (cell["dataset"], cell["scheme"], cell["every"]) == (name, scheme, every)
                ]
                row.append(f"{np.mean(found):.2f}" if found else "")
            rows.append(row)
    return Table(["readings every", *map(str, EVERY)], rows)


def _measure(tasks: list[tuple[Any, ...]], kept: Path | None) -> list[dict[str, Any]]:
    """The cells of tasks, in their order; those that were kept are not measured again."""
    known = {}
    if kept and kept.exists():
        for cell in map(json.loads, kept.read_text(encoding="utf-8").splitlines()):
            known[cell["dataset"], cell["scheme"], cell["every"], cell["run"]] = cell
    keys = [(load(task[0], task[4]).name, *task[1:4]) for task in tasks]
    missing = [task for task, key in zip(tasks, keys, strict=True) if key not in known]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for count, cell in enumerate(pool.map(measure_cell, missing), 1):
            known[cell["dataset"], cell["scheme"], cell["every"], cell["run"]] = cell
            if kept:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(cell) + "\n")
            print(f"{count} of {len(missing)}", end="\r", flush=True)
    return [known[key] for key in keys]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--datasets", default=",".join(NAMES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--every", default=",".join(map(str, EVERY)))
    parser.add_argument("--cells", type=Path, help="a file to keep cells in, and to take them from")
    parser.add_argument("--further", action="store_true", help="other years and steps too")
    parser.add_argument("--panels", nargs="*", default=[], help="and these wide Parquet files")
    parser.add_argument("--late", nargs="*", default=[], help="and these, in a table of their own")
    parser.add_argument("--ranks", action="store_true", help="rank correlations too; slow")
    parser.add_argument("--large", action="store_true", help="time of a large panel, too")
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args()
    tasks = [
        (name, scheme, int(every), run, str(options.data), options.ranks and run == 0)
        for run in range(options.runs)
        for name in options.datasets.split(",")
        for every in options.every.split(",")
        for scheme in ("random", "periodic")
    ]
    cells = _measure(tasks, options.cells)
    written = write_page(cells)
    text = (
        "`auto` over the best of even spreading, denton and PCHIP; in how many cells the expected "
        "error is within 0.8 to 1.25 of the true one; how often 90 % intervals hold. Both schemes, "
        "the same readings but those every 2, one seed. Panels of births, employment, flights, "
        "pizzas, stops and rides are written by `benchmarks/panels.py`."
    )
    late = "The same for panels that were looked at only when the panel model was done."
    further = [*(FURTHER if options.further else ()), *options.panels]
    for heading, names, said in (
        ("Other panels", further, text),
        ("Panels that nothing was tuned on", options.late, late),
    ):
        tasks = [
            (name, scheme, every, 0, str(options.data), False)
            for every in EVERY[1:]
            for name in names
            for scheme in ("random", "periodic")
            if every * FEWEST <= load(name, str(options.data)).truth.n_periods
        ]
        if tasks:
            written.add(Heading(heading), Text(said), _further(_measure(tasks, options.cells)))
    if options.further:
        tasks = [
            (name + OF_FEW, scheme, every, run, str(options.data), False)
            for run in range(options.runs)
            for name in options.datasets.split(",")
            for every in EVERY_FEW
            for scheme in ("random", "periodic")
        ]
        written.add(Heading("Small panels"))
        written.add(
            Text(
                f"The same for {FEW} series of the first panels, drawn anew for each seed; "
                f"readings every {', '.join(map(str, EVERY_FEW))}."
            )
        )
        written.add(_further(_measure(tasks, options.cells)))
    if (options.data / mixed.FILE).exists():
        written.add(*mixed.measure_mixed(options.data))
    if options.large:
        written.add(Heading("Time"))
        written.add(Text(time_large()))
    page = written.markdown()
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
