"""The command line: thin commands over the library. Heavy imports live inside the commands."""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from unsum.errors import ParameterError, ReadingsError, UnsumError, require_choice

app = typer.Typer(
    help="unsum undoes sums: fine nonnegative series from totals over time intervals, exactly.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Exit(IntEnum):
    """What the exit codes mean."""

    OK = 0
    BAD_INPUT = 1
    USAGE = 2
    BUG = 70
    INTERRUPTED = 130


FileArg = Annotated[Path, typer.Argument(help="A CSV or Parquet file.", show_default=False)]
OutOpt = Annotated[Path, typer.Option("-o", "--out", help="The file to write: .csv or .parquet.")]
FreqOpt = Annotated[
    str, typer.Option(help="The fine step: 15min, h, D, W, MS, ..., or 'period' for numbers.")
]
TzOpt = Annotated[
    str | None, typer.Option(help="The time zone of the periods, such as Europe/Paris.")
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
InclusiveOpt = Annotated[
    bool, typer.Option("--inclusive-end", help="The end is the last day of a reading.")
]
SnapOpt = Annotated[
    str, typer.Option(help="Boundaries off the grid: 'error', or 'nearest' to move them.")
]
FromOpt = Annotated[str | None, typer.Option("--from", help="First date of the result.")]
ToOpt = Annotated[str | None, typer.Option("--to", help="End of the result, not included.")]
SeriesOpt = Annotated[str, typer.Option(help="Name of the column of series.")]
StartOpt = Annotated[str, typer.Option(help="Name of the column of starts.")]
EndOpt = Annotated[str, typer.Option(help="Name of the column of ends.")]
TotalOpt = Annotated[str, typer.Option(help="Name of the column of totals.")]
QualityOpt = Annotated[
    str | None, typer.Option(help="Name of the column of qualities, actual or estimated.")
]
ActiveFromOpt = Annotated[str | None, typer.Option(help="Name of the column of move-in dates.")]
ActiveToOpt = Annotated[str | None, typer.Option(help="Name of the column of move-out dates.")]
FormatOpt = Annotated[
    str | None, typer.Option("--date-format", help="Format of other dates, such as %d/%m/%Y.")
]
DecimalOpt = Annotated[str, typer.Option(help="The decimal mark of numbers: '.' or ','.")]
DropOpt = Annotated[
    bool, typer.Option("--drop-bad", help="Set bad rows aside, into a file, instead of stopping.")
]
ThreadsOpt = Annotated[
    int | None, typer.Option(help="Threads to use; results do not depend on it.", min=1)
]
TimeOpt = Annotated[str, typer.Option(help="Name of the column of times.")]
ValueOpt = Annotated[str, typer.Option(help="Name of the column of values, in a long table.")]
PanelFreqOpt = Annotated[
    str | None, typer.Option("--freq", help="The step of the table; guessed from its times.")
]
EveryOpt = Annotated[int, typer.Option(help="Periods between two readings, on average.", min=1)]
SchemeOpt = Annotated[str, typer.Option(help="Dates of readings: 'periodic' or 'random'.")]
SeedOpt = Annotated[int, typer.Option(help="Seed of random dates.", min=0)]
EndsOpt = Annotated[
    bool, typer.Option("--ends", help="What lies before the first and after the last date is read.")
]


def _options(
    freq: str,
    tz: str | None,
    inclusive_end: bool,
    snap: str,
    from_: str | None,
    to: str | None,
    columns: dict[str, str | None],
    date_format: str | None,
    decimal: str,
) -> Any:
    from unsum.tables.rows import Options

    number = freq == "period"
    return Options(
        freq=freq,
        tz=tz,
        end="inclusive" if inclusive_end else "exclusive",
        snap=snap,
        range_start=_integer("--from", from_) if number else from_,
        range_end=_integer("--to", to) if number else to,
        columns={role: name for role, name in columns.items() if name is not None},
        date_format=date_format,
        decimal=decimal,
    )


def _strength(text: str | None) -> float | str | None:
    if text is None or text == "paper":
        return text
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--strength must be a number or 'paper'; got {text!r}.") from None


def _lags(text: str | None) -> list[int] | dict[int, float] | None:
    """Lags such as `1,7`, or with weights `1:0.7,7:0.3`."""
    if text is None:
        return None
    try:
        pairs = [part.split(":") for part in text.split(",")]
        if any(len(pair) > 1 for pair in pairs):
            return {int(lag): float(weight) for lag, weight in pairs}
        return [int(pair[0]) for pair in pairs]
    except ValueError:
        raise ParameterError(
            f"--lags must be like 1,7 or, with weights, 1:0.7,7:0.3; got {text!r}."
        ) from None


def _integer(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise ParameterError(f"{option} must be a period number; got {text!r}.") from None


@app.command()
def recover(
    file: FileArg,
    out: OutOpt,
    freq: FreqOpt = "D",
    method: Annotated[str, typer.Option(help="auto, even, denton, nmf, or nmf-ar.")] = "auto",
    rank: Annotated[int | None, typer.Option(help="nmf, nmf-ar: how many profiles.", min=1)] = None,
    update: Annotated[str | None, typer.Option(help="nmf, nmf-ar: 'hals' or 'nenmf'.")] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="nmf, nmf-ar: most iterations.", min=0)
    ] = None,
    tol: Annotated[float | None, typer.Option(help="nmf, nmf-ar: tolerance for stopping.")] = None,
    start_from: Annotated[
        str | None, typer.Option(help="nmf, nmf-ar: first profiles 'denton', 'even' or 'random'.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="nmf, nmf-ar: seed of random profiles.", min=0)
    ] = None,
    lags: Annotated[
        str | None,
        typer.Option(help="nmf-ar: lags that count, such as 1,7; with weights 1:0.7,7:0.3."),
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="nmf-ar: the autocorrelation of every series.")
    ] = None,
    strength: Annotated[
        str | None, typer.Option(help="nmf-ar: the pull towards it: a number, or 'paper'.")
    ] = None,
    tz: TzOpt = None,
    inclusive_end: InclusiveOpt = False,
    snap: SnapOpt = "error",
    from_: FromOpt = None,
    to: ToOpt = None,
    drop_bad: DropOpt = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="One column per series instead of a long table.")
    ] = False,
    series: SeriesOpt = "series",
    start: StartOpt = "start",
    end: EndOpt = "end",
    total: TotalOpt = "total",
    quality: QualityOpt = None,
    active_from: ActiveFromOpt = None,
    active_to: ActiveToOpt = None,
    date_format: FormatOpt = None,
    decimal: DecimalOpt = ".",
    threads: ThreadsOpt = None,
    json: JsonOpt = False,
) -> None:
    """Readings in, fine series out: nonnegative, and adding up to every reading.

    Example: unsum recover bills.csv -o daily.parquet

    Example: unsum recover bills.csv -o daily.csv --series account --total kwh --inclusive-end

    Example: unsum recover bills.csv -o daily.parquet --method nmf --rank 5
    """
    from unsum.tables.jobs import run_recover

    columns = {
        "series": series, "start": start, "end": end, "total": total, "quality": quality,
        "active_from": active_from, "active_to": active_to,
    }  # fmt: skip
    options = _options(freq, tz, inclusive_end, snap, from_, to, columns, date_format, decimal)
    given = {
        "rank": rank, "update": update, "max_iter": max_iter, "tol": tol, "start": start_from,
        "seed": seed, "lags": _lags(lags), "rho": rho, "strength": _strength(strength),
    }  # fmt: skip
    settings = {name: value for name, value in given.items() if value is not None}
    screen = _screen(json)
    job = run_recover(
        file, out, options, method=method, settings=settings, drop_bad=drop_bad, wide=wide,
        threads=threads, watch=screen.watch, say=screen.say,
    )  # fmt: skip
    if json:
        screen.print_json({"command": "recover", **job.to_dict()})
        return
    screen.findings(job.findings, dropped=True)
    screen.findings(job.adjustments)
    screen.facts(job.facts())


@app.command()
def check(
    file: FileArg,
    freq: FreqOpt = "D",
    tz: TzOpt = None,
    inclusive_end: InclusiveOpt = False,
    snap: SnapOpt = "error",
    from_: FromOpt = None,
    to: ToOpt = None,
    series: SeriesOpt = "series",
    start: StartOpt = "start",
    end: EndOpt = "end",
    total: TotalOpt = "total",
    quality: QualityOpt = None,
    active_from: ActiveFromOpt = None,
    active_to: ActiveToOpt = None,
    date_format: FormatOpt = None,
    decimal: DecimalOpt = ".",
    json: JsonOpt = False,
) -> None:
    """What is wrong with a table of readings, row by row, and what recover would do about it.

    Ends with exit code 1 when something would stop recover.

    Example: unsum check bills.csv
    """
    from unsum.tables.intake import take_in

    columns = {
        "series": series, "start": start, "end": end, "total": total, "quality": quality,
        "active_from": active_from, "active_to": active_to,
    }  # fmt: skip
    options = _options(freq, tz, inclusive_end, snap, from_, to, columns, date_format, decimal)
    screen = _screen(json)
    screen.say(f"reading {file}")
    intake = take_in(file, options)
    if json:
        usable = intake.usable.describe() if intake.usable else None
        screen.print_json({"command": "check", "readings": usable} | intake.findings.to_dict())
    else:
        screen.findings(intake.findings, everything=True)
        screen.check_summary(intake)
    if intake.findings.errors:
        raise typer.Exit(Exit.BAD_INPUT)


@app.command()
def aggregate(
    file: FileArg,
    out: OutOpt,
    every: Annotated[int | None, typer.Option(help="A reading every so many periods.", min=1)] = (
        None
    ),
    scheme: SchemeOpt = "periodic",
    offset: Annotated[
        int | None, typer.Option(help="First date of periodic readings; random per series.", min=0)
    ] = None,
    rule: Annotated[str | None, typer.Option(help="A calendar rule instead: MS, W, QS.")] = None,
    dates: Annotated[
        Path | None, typer.Option(help="A file whose series, start and end are taken instead.")
    ] = None,
    seed: SeedOpt = 0,
    ends: EndsOpt = False,
    freq: PanelFreqOpt = None,
    tz: TzOpt = None,
    time: TimeOpt = "time",
    series: SeriesOpt = "series",
    value: ValueOpt = "value",
    decimal: DecimalOpt = ".",
    json: JsonOpt = False,
) -> None:
    """The inverse: fine series in (a long or wide table), readings out.

    Example: unsum aggregate daily.parquet -o readings.csv --every 30

    Example: unsum aggregate daily.parquet -o months.csv --rule MS

    Example: unsum aggregate daily.parquet -o again.csv --dates bills.csv
    """
    from unsum.aggregation import aggregate as take_sums
    from unsum.tables.dates import read_dates
    from unsum.tables.panels import read_panel
    from unsum.tables.write import write_table

    if sum(choice is not None for choice in (every, rule, dates)) != 1:
        raise ParameterError("give one of --every, --rule and --dates.")
    panel = read_panel(file, freq, tz=tz, time=time, series=series, value=value, decimal=decimal)
    how: Any = rule
    if every is not None:
        how = _scheme(scheme, every, seed, ends=ends, offset=offset)
    elif dates is not None:
        how = read_dates(dates, panel)
    readings = take_sums(panel, how)
    write_table(readings.to_arrow(), out, file)
    screen = _screen(json)
    found = how.findings if dates is not None else readings.findings
    if json:
        described = readings.describe() | found.to_dict()
        screen.print_json({"command": "aggregate", "output": str(out)} | described)
    else:
        screen.findings(found)
        screen.facts([("wrote", f"{out}: {readings!r}")])


@app.command()
def totals(
    file: FileArg,
    out: OutOpt,
    rule: Annotated[str, typer.Option(help="MS, W, QS, YS, or any step: 7D, 6h.")] = "MS",
    freq: PanelFreqOpt = None,
    tz: TzOpt = None,
    time: TimeOpt = "time",
    series: SeriesOpt = "series",
    value: ValueOpt = "value",
    decimal: DecimalOpt = ".",
    json: JsonOpt = False,
) -> None:
    """Fine series to calendar months, weeks, quarters, or any longer step.

    Example: unsum totals daily.parquet -o months.csv --rule MS
    """
    from unsum.tables.panels import read_panel
    from unsum.tables.write import write_table

    panel = read_panel(file, freq, tz=tz, time=time, series=series, value=value, decimal=decimal)
    table = panel.totals(rule)
    write_table(table, out, file)
    screen = _screen(json)
    if json:
        screen.print_json({"command": "totals", "output": str(out), "rows": len(table)})
    else:
        screen.facts([("wrote", f"{out}: {len(table):,} totals of {panel.n_series:,} series")])


@app.command()
def compare(
    truth: Annotated[Path, typer.Argument(help="A table of fine series, long or wide.")],
    methods: Annotated[str, typer.Option(help="Methods, separated by commas.")] = "even,denton",
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
    """
    from unsum.experiments.compare import compare as compare_methods
    from unsum.methods import METHODS
    from unsum.tables.panels import read_panel

    named = [name.strip() for name in methods.split(",")]
    for name in named:
        require_choice("--methods", name, ("auto", *METHODS))
    panel = read_panel(truth, freq, tz=tz, time=time, series=series, value=value, decimal=decimal)
    how = _scheme(scheme, every, seed, ends=ends)
    screen = _screen(json)
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

    screen = _screen(json)
    summary = run_demo(out, customers, seed, watch=screen.watch, say=screen.say)
    if json:
        screen.print_json({"command": "demo", **summary.to_dict()})
        return
    screen.findings(summary.findings, dropped=True)
    screen.errors(summary.results, months=summary.months)
    screen.facts(summary.facts())


def _scheme(scheme: str, every: int, seed: int, *, ends: bool, offset: int | None = None) -> Any:
    from unsum.aggregation import AtRandom, Periodic

    require_choice("--scheme", scheme, ("periodic", "random"))
    if scheme == "periodic":
        return Periodic(every, offset=offset, seed=seed, ends=ends)
    if offset is not None:
        raise ParameterError("--offset goes with --scheme periodic.")
    return AtRandom(every, seed=seed, ends=ends)


def _screen(json: bool) -> Any:
    from unsum.screen import Screen

    return Screen(quiet=json)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from unsum import __version__

        typer.echo(f"unsum {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command. Whatever goes wrong ends in a sentence and an exit code, not a traceback."""
    for stream in (sys.stdout, sys.stderr):  # names may have letters that the terminal lacks
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted; nothing was left half written.", err=True)
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Exit.OK
    except UnsumError as error:
        code = Exit.USAGE if isinstance(error, ParameterError) else Exit.BAD_INPUT
        _report(error)
    except (OSError, MemoryError) as error:
        code = Exit.BAD_INPUT
        _report(error)
    except Exception as error:
        if os.environ.get("UNSUM_TRACEBACK"):
            raise
        code = Exit.BUG
        typer.echo(
            f"unsum met a bug ({type(error).__name__}: {error}). Please report it with the output "
            "of the same command run with UNSUM_TRACEBACK=1 in the environment.",
            err=True,
        )
    sys.exit(code)


def _report(error: BaseException) -> None:
    if "--json" in sys.argv:
        import json

        found = error.findings.to_dict() if isinstance(error, ReadingsError) else {}
        typer.echo(json.dumps({"error": str(error)} | found))
    typer.echo(f"unsum: {error}", err=True)
    if isinstance(error, ReadingsError):
        remedy = "`unsum check` names every row"
        if "recover" in sys.argv[1:2]:
            remedy += "; --drop-bad sets bad rows aside"
        typer.echo(f"Nothing was written. {remedy}.", err=True)
