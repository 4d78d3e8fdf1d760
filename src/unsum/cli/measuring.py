"""Commands that measure methods against a known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unsum.cli.app import app
from unsum.cli.options import (
    DecimalOpt,
    EndsOpt,
    EveryOpt,
    JsonOpt,
    PanelFreqOpt,
    SchemeOpt,
    SeedOpt,
    SeriesOpt,
    TimeOpt,
    TzOpt,
    ValueOpt,
    make_screen,
    scheme_of,
)


@app.command()
def compare(
    truth: Annotated[Path, typer.Argument(help="A table of fine series, long or wide.")],
    methods: Annotated[
        str,
        typer.Option(
            help="Methods, separated by commas; ranks or shrinkages go behind a colon, as in nmf:5."
        ),
    ] = "even,denton",
    every: EveryOpt = 30,
    scheme: SchemeOpt = "periodic",
    seed: SeedOpt = 0,
    runs: Annotated[int, typer.Option(help="Repeat with so many seeds.", min=1)] = 1,
    ends: EndsOpt = False,
    freq: PanelFreqOpt = None,
    tz: TzOpt = None,
    time: TimeOpt = "time",
    series: SeriesOpt = "series",
    value: ValueOpt = "value",
    decimal: DecimalOpt = ".",
    json: JsonOpt = False,
) -> None:
    """Hide known fine series behind readings, recover them, and print each method's errors.

    Example: unsum compare daily.parquet --every 30 --methods even,denton

    Example: unsum compare daily.parquet --scheme random --methods even,nmf:3,nmf:5,auto
    """
    from unsum.experiments.compare import compare as compare_methods
    from unsum.methods import parse_method
    from unsum.tables.panels import read_panel

    named = [name.strip() for name in methods.split(",")]
    for name in named:
        parse_method(name)  # what is wrong is told before the table is read
    panel = read_panel(truth, freq, tz=tz, time=time, series=series, value=value, decimal=decimal)
    how = scheme_of(scheme, every, seed, ends=ends)
    screen = make_screen(json)
    with screen.watch("comparing", len(named) * runs) as step:
        results = compare_methods(panel, how, named, runs=runs, progress=step)
    if json:
        rows = [result.to_dict() for result in results]
        settings = {"every": every, "scheme": scheme, "seed": seed, "runs": runs, "ends": ends}
        screen.print_json({"command": "compare", **settings, "results": rows})
    else:
        screen.errors(results)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write into.")] = Path(
        "unsum-demo"
    ),
    customers: Annotated[int, typer.Option(help="Customers of the town.", min=20)] = 300,
    seed: SeedOpt = 0,
    json: JsonOpt = False,
) -> None:
    """Simulate a town, bill it, recover its days, and compare with the truth.

    Example: unsum demo
    """
    from unsum.experiments.demo import run_demo

    screen = make_screen(json)
    summary = run_demo(out, customers, seed, watch=screen.watch, say=screen.say)
    if json:
        screen.print_json({"command": "demo", **summary.to_dict()})
        return
    screen.findings(summary.findings, dropped=True)
    screen.errors(summary.results, months=summary.months)
    screen.facts(summary.facts())


@app.command()
def paper(
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write into.")] = Path(
        "unsum-paper"
    ),
    datasets: Annotated[
        str | None,
        typer.Option(
            help="Of synthetic, portugal, regions, households, separated by commas; name=file for "
            "any table. All that --data has by default."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder with LD2011_2014.txt, File*.txt, or what stands in for it."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small grid, in about a minute.")
    ] = False,
    runs: Annotated[int | None, typer.Option(help="Repeat with so many seeds.", min=1)] = None,
    smoothness: Annotated[
        float | None, typer.Option(help="Of the synthetic processes (Matern).")
    ] = None,
    length_scale: Annotated[
        float | None, typer.Option(help="Of the synthetic processes, in periods.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; one for each processor by default.", min=1)
    ] = None,
    json: JsonOpt = False,
) -> None:
    """Run the paper's experiments: its figure, every cell, and a verdict on each of its claims.

    A run that was stopped goes on where it was.

    Example: unsum paper --quick --out unsum-paper

    Example: unsum paper --data panels --out unsum-paper
    """
    from unsum.experiments.paper import reproduce

    screen = make_screen(json)
    found = reproduce(
        out, names=datasets.split(",") if datasets else None, folder=data, quick=quick, runs=runs,
        smoothness=smoothness, length_scale=length_scale, workers=workers, watch=screen.watch,
    )  # fmt: skip
    if json:
        screen.print_json({"command": "paper", **found.to_dict()})
    else:
        screen.facts(found.facts())
