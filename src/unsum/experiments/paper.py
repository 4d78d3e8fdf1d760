"""`unsum paper`: the paper's experiments, its figure, and a verdict on each of its claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unsum import __version__
from unsum.engine import count_threads
from unsum.experiments.claims import CLAIMS, MOSTLY, Verdict, judge
from unsum.experiments.datasets import NAMES, Dataset, load_datasets
from unsum.experiments.figure import draw_figure
from unsum.experiments.grid import INNER, PRINTED, VARIANTS, Grid, Results, run_grid
from unsum.experiments.page import Heading, Page, Picture, Table, Text
from unsum.experiments.summary import Cell, Summary
from unsum.experiments.synthetic import LENGTH_SCALE, SMOOTHNESS
from unsum.tables.jobs import Watch
from unsum.tables.write import whole_file

SAME = 0.005  # relative difference that does not count
ERRORS = {
    "paper": "the paper's error, one number for the whole panel",
    "normalised": "every series divided by its mean first, so that all count",
}


@dataclass(frozen=True)
class Reproduction:
    """What was found and where it is."""

    folder: Path
    verdicts: list[list[Verdict]]  # by claim and yardstick
    n_fits: int
    seconds: float  # of all fits, over all sittings
    files: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "files": self.files,
            "fits": self.n_fits,
            "seconds": round(self.seconds, 1),
            "claims": {
                verdicts[0].claim.name: {verdict.yard.name: str(verdict) for verdict in verdicts}
                for verdicts in self.verdicts
            },
        }

    def facts(self) -> list[tuple[str, str]]:
        claims = [(verdicts[0].claim.name, str(verdicts[0])) for verdicts in self.verdicts]
        return [*claims, ("wrote", f"{self.folder}: {', '.join(self.files)}")]


def reproduce(
    out: Path,
    *,
    names: Sequence[str] | None,
    folder: Path | None,
    quick: bool,
    runs: int | None,
    smoothness: float | None,
    length_scale: float | None,
    workers: int | None,
    watch: Watch,
) -> Reproduction:
    """The whole command: datasets, grid, figure, verdicts."""
    grid = Grid.quick() if quick else Grid()
    if runs is not None:
        grid = replace(grid, runs=runs)
    if names is None:
        names = NAMES if folder is not None else NAMES[:1]
    datasets = load_datasets(
        names,
        folder,
        smoothness=smoothness or SMOOTHNESS,
        length_scale=length_scale or LENGTH_SCALE,
    )
    command = "unsum paper" + (" --quick" if quick else "") + (" --data DIR" if folder else "")
    if runs is not None:
        command += f" --runs {runs}"
    return run_paper(
        out, datasets, grid, command=command, workers=count_threads(workers), watch=watch
    )


def run_paper(
    folder: Path,
    datasets: Sequence[Dataset],
    grid: Grid,
    *,
    command: str,
    workers: int,
    watch: Watch,
) -> Reproduction:
    """Run what is missing of the grid, then draw and judge all that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    results = Results(folder / "results.parquet", grid, datasets)
    missing = results.missing(grid.tasks([data.name for data in datasets]), grid)
    if missing:
        with watch("fitting", sum(len(grid.ranks_of(task)) for task in missing)) as step:
            run_grid(datasets, grid, results, workers=workers, progress=step)
    summary = Summary(results.table())
    titles = {data.name: data.title for data in datasets}
    verdicts = [judge(summary, claim) for claim in CLAIMS]
    page = _write_up(folder, datasets, grid, summary, verdicts, titles, results, command)
    for name, content in (("paper.md", page.markdown()), ("paper.html", page.html())):
        with whole_file(folder / name) as temporary:
            temporary.write_text(content, encoding="utf-8")
    files = [
        "results.parquet", "paper.md", "paper.html",
        *(f"figure-{error}.{kind}" for error in ERRORS for kind in ("png", "svg")),
    ]  # fmt: skip
    seconds = sum(row["seconds"] for row in results.rows)
    return Reproduction(folder, verdicts, len(results.rows), seconds, files)


def _write_up(
    folder: Path,
    datasets: Sequence[Dataset],
    grid: Grid,
    summary: Summary,
    verdicts: list[list[Verdict]],
    titles: dict[str, str],
    results: Results,
    command: str,
) -> Page:
    page = Page("The paper's experiments")
    fits = [row for row in results.rows if row["rank"]]
    page.add(
        Text(
            "Section 3 of the paper, run by this library. Written by the command below; nothing "
            "here is typed in by hand."
        ),
        Text(f"`{command}`"),
        Text(
            f"unsum {__version__}; {len(fits):,} fits with {grid.max_iter} iterations each, ranks "
            f"{min(grid.ranks)} to {max(grid.ranks)}, {grid.runs} runs (seeds 0 to "
            f"{grid.runs - 1}); {results.elapsed / 60:.0f} minutes in all."
        ),
        Text("Datasets. " + ". ".join(str(data) for data in datasets) + "."),
        Text(
            "As the paper does it: random first profiles, raw series, rho from the periods left "
            "out, its rule for lambda, oracle rank (the best of all ranks for each run), averages "
            f"over runs. Updates of W and H go on until they about solve their problem (sweeps or "
            f"steps: {INNER}). Settings: {', '.join(f'{k}={v!r}' for k, v in PRINTED.items())}."
        ),
        Heading("The figure"),
    )
    for error, meaning in ERRORS.items():
        paths = [folder / f"figure-{error}.{kind}" for kind in ("png", "svg")]
        draw_figure(summary, error, titles, paths)
        caption = f"Error against sampling rate: {meaning}"
        page.add(Picture(f"figure-{error}.png", caption, paths[1].read_text(encoding="utf-8")))
    page.add(Heading("Claim by claim"), Text(_overview(verdicts)))
    for by_yardstick in verdicts:
        page.add(*_claim(by_yardstick))
    page.add(
        Heading("Every cell"),
        Text(
            "The paper's error, in percent, at the best rank, and in brackets at the rank that "
            "merge-and-split validation chooses without the truth; best ranks of Algorithm 1 and "
            "2. HALS."
        ),
        _cells(summary, titles, "paper"),
        Text("The same with every series divided by its mean."),
        _cells(summary, titles, "normalised"),
    )
    if any(key[5] != "paper" for key in summary.runs):
        page.add(*_reasons(summary, titles, grid))
    return page


def _overview(verdicts: list[list[Verdict]]) -> str:
    """How many claims hold, and what hangs on the meaning of interpolation."""
    tested = [by_yardstick for by_yardstick in verdicts if len(by_yardstick[0].values)]
    mean, zero = (
        sum(bool(by_yardstick[i].passed.mean() >= MOSTLY) for by_yardstick in tested)
        for i in (0, 1)
    )
    return (
        f"Of {len(tested)} claims, {zero} hold in at least three quarters of their cells if even "
        "spreading is left at zero where nothing is read (before the first date and after the "
        f"last), and {mean} if it goes on with the mean rate of the series there, as ours does. "
        "The paper does not say which it means; that its interpolation is at times too far off to "
        "be shown in its figure fits the former."
    )


def _claim(verdicts: list[Verdict]) -> list[Heading | Text | Table]:
    claim = verdicts[0].claim
    rows = []
    for verdict in verdicts:
        values = verdict.values
        numbers = ["", "", ""]
        if len(values):
            worst = int(np.argmax(values))
            numbers = [
                f"{np.median(values):.2f}", f"{values[worst]:.2f}", _name(verdict.cells[worst])
            ]  # fmt: skip
        rows.append([verdict.yard.name, str(verdict), *numbers])
    return [
        Heading(claim.name, 3),
        Text(f"{claim.sentence} Tested: {claim.test}, so a value of at most {claim.limit:g}."),
        Table(["measured by", "verdict", "median value", "largest", "where"], rows),
    ]


def _cells(summary: Summary, titles: dict[str, str], error: str) -> Table:
    head = [
        "dataset",
        "scheme",
        "every",
        "even",
        "even, else zero",
        "Algorithm 1",
        "Algorithm 2",
        "ranks",
    ]
    rows = []
    for cell in summary.cells():
        methods = ("even", "even-0", "nmf", "nmf-ar")
        best = [summary.best(cell, method, error=error) for method in methods]
        chosen = [summary.chosen(cell, method, error) for method in ("nmf", "nmf-ar")]
        ranks = [
            "/".join(str(rank) for rank in summary.best_rank(cell, method, error))
            for method in ("nmf", "nmf-ar")
        ]
        winner = int(np.argmin(best))
        texts = [f"{100 * value:.2f}" for value in best]
        texts[2:] = [
            f"{text} ({100 * other:.2f})" for text, other in zip(texts[2:], chosen, strict=True)
        ]
        texts[winner] = f"**{texts[winner]}**"
        rows.append([titles[cell.dataset], cell.scheme, str(cell.every), *texts, "; ".join(ranks)])
    return Table(head, rows)


def _reasons(summary: Summary, titles: dict[str, str], grid: Grid) -> list[Heading | Text | Table]:
    """One change at a time: what moves the errors."""
    ranks = tuple(rank for rank in grid.variant_ranks if rank in grid.ranks)
    changes = [name for name in VARIANTS if name != "paper"]
    parts: list[Heading | Text | Table] = [
        Heading("What makes a difference"),
        Text(
            "One change at a time to the paper's settings; HALS, one run, best of the ranks "
            f"{', '.join(map(str, ranks))}. `scaled` divides every series by its level; `smooth "
            "start` takes the first profiles from the smoothed panel; `frozen lambda` is our rule; "
            "`ends read` covers the periods before the first and after the last date; `one sweep` "
            "updates W and H by a single sweep; `accelerated` brings the objective down several "
            "times as fast (with lambda frozen); `ours` is all of our defaults, with 100 "
            "iterations. In percent, the paper's error and then the normalised one."
        ),
    ]
    for method, title in (("nmf", "Algorithm 1"), ("nmf-ar", "Algorithm 2")):
        rows = []
        for cell in summary.cells():
            if cell.every not in grid.variant_every:
                continue
            texts = [titles[cell.dataset], cell.scheme, str(cell.every)]
            texts.append(_both(summary, cell, "even", "paper", None))
            texts += [
                _both(summary, cell, method, variant, ranks) for variant in ("paper", *changes)
            ]
            rows.append(texts)
        head = [title, "scheme", "every", "even", "paper", *changes]
        parts.append(Table(head, rows))
    parts.append(Text(_going_on(summary, grid, ranks)))
    return parts


def _going_on(summary: Summary, grid: Grid, ranks: tuple[int, ...]) -> str:
    """What further iterations do to the error, by cell and rank."""
    sentences = []
    for base, more in (
        ("paper", "five times the iterations"), ("ours", "ours, 500 iterations"),
        ("ours", "ours, accelerated"),
    ):  # fmt: skip
        ratios = np.array(
            [
                summary.best(cell, method, error="normalised", variant=more, ranks=(rank,))
                / summary.best(
                    cell, method, error="normalised", variant=base, ranks=(rank,), runs=(0,)
                )
                for cell in summary.cells()
                if cell.every in grid.variant_every
                for method in ("nmf", "nmf-ar")
                for rank in ranks
            ]
        )
        sentences.append(
            f"`{more}` against `{base}`: larger in {np.sum(ratios > 1 + SAME)}, smaller in "
            f"{np.sum(ratios < 1 - SAME)} of {len(ratios)}."
        )
    return (
        "Going on lowers the objective and seldom the error. Normalised errors by cell, rank and "
        f"algorithm, where they differ by more than {SAME:.1%}: " + " ".join(sentences)
    )


def _both(
    summary: Summary, cell: Cell, method: str, variant: str, ranks: tuple[int, ...] | None
) -> str:
    values = [
        summary.best(cell, method, error=error, variant=variant, ranks=ranks, runs=(0,))
        for error in ERRORS
    ]
    return " / ".join(f"{100 * value:.1f}" for value in values)


def _name(cell: Cell) -> str:
    return f"{cell.dataset}, {cell.scheme}, every {cell.every}"
