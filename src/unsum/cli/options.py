"""Options that several commands share, and how their texts are understood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from unsum.errors import ParameterError, require_choice

LEAST_MEMORY = 1_000_000
FileArg = Annotated[Path, typer.Argument(help="A CSV or Parquet file.", show_default=False)]
TableArg = Annotated[
    str,
    typer.Argument(
        help="A CSV or Parquet file, a folder of Parquet files, or an address such as s3://...",
        show_default=False,
    ),
]
ResultOpt = Annotated[
    Path,
    typer.Option(
        "-o", "--out", help="The file to write: .csv or .parquet; without an ending, a folder."
    ),
]
MemoryOpt = Annotated[
    str | None,
    typer.Option(help="How much to use, such as 2GB; half of what is free by default."),
]
CheckpointOpt = Annotated[
    Path | None,
    typer.Option(help="A folder; the same command goes on from there if it was ended."),
]
DaskOpt = Annotated[
    str | None,
    typer.Option(help="A Dask cluster: tcp://host:port, or local:4 for processes here."),
]
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
OverlapsOpt = Annotated[
    str, typer.Option(help="Overlapping readings: 'error', or 'solve' to take them as a system.")
]
NegativesOpt = Annotated[
    str, typer.Option(help="Negative totals: 'aside', or 'net' to add them to what they correct.")
]
TrueUpOpt = Annotated[
    bool,
    typer.Option(
        "--true-up", help="An actual reading makes up for estimated ones before: their sum binds."
    ),
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
IntervalOpt = Annotated[
    float | None,
    typer.Option(help="Such as 0.9: add lower and upper, which hold the truth nine times in ten."),
]
UnbilledOpt = Annotated[
    Path | None, typer.Option(help="Also write what follows the last reading of each series.")
]
ReportOpt = Annotated[
    Path | None, typer.Option(help="Also write a page to look at: an .html file that needs no net.")
]
WideOpt = Annotated[
    bool, typer.Option("--wide", help="One column per series instead of a long table.")
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


def source_of(text: str) -> Path | str:
    """A path, or an address in another file system."""
    return text if "://" in text else Path(text)


def bytes_of(text: str | None) -> int | None:
    """Such as 500MB, 2GB, or plain bytes."""
    if text is None:
        return None
    units = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)", text.strip().lower())
    unit = "" if match is None else match[2].replace("i", "")
    unit = unit if unit.endswith("b") or not unit else f"{unit}b"
    if match is None or unit not in (*units, "b"):
        raise ParameterError(f"--memory must be like 500MB or 2GB; got {text!r}.")
    given = int(float(match[1]) * units.get(unit, 1))
    if given < LEAST_MEMORY:
        raise ParameterError(f"--memory must be at least 1MB; got {text!r}.")
    return given


@contextmanager
def means_of(
    out: Path,
    threads: int | None,
    memory: str | None,
    dask: str | None,
    checkpoint: Path | None = None,
) -> Iterator[Any]:
    """What a run may use; a cluster is left when the run is over."""
    from unsum.tables.running import Means

    means = Means(threads, bytes_of(memory), checkpoint)
    if dask is None:
        yield means
        return
    from dataclasses import replace
    from tempfile import TemporaryDirectory

    from unsum.cluster import join_cluster

    parent = out.resolve().parent
    with (
        TemporaryDirectory(prefix=f".{out.name}.", suffix=".dask", dir=parent) as folder,
        join_cluster(dask, Path(folder)) as cluster,
    ):
        yield replace(means, cluster=cluster)


def columns_of(**columns: str | None) -> dict[str, str]:
    """The columns that have a name, by their roles."""
    return {role: name for role, name in columns.items() if name is not None}


def options_of(
    freq: str,
    tz: str | None,
    inclusive_end: bool,
    snap: str,
    from_: str | None,
    to: str | None,
    columns: dict[str, str],
    date_format: str | None,
    decimal: str,
    **more: Any,
) -> Any:
    from unsum.tables.rows import Options

    number = freq == "period"
    return Options(
        freq=freq,
        tz=tz,
        end="inclusive" if inclusive_end else "exclusive",
        snap=snap,
        range_start=integer_of("--from", from_) if number else from_,
        range_end=integer_of("--to", to) if number else to,
        columns=columns,
        date_format=date_format,
        decimal=decimal,
        **more,
    )


def strength_of(text: str | None) -> float | str | None:
    if text is None or text == "paper":
        return text
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--strength must be a number or 'paper'; got {text!r}.") from None


def lags_of(text: str | None) -> list[int] | dict[int, float] | None:
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


def integer_of(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise ParameterError(f"{option} must be a period number; got {text!r}.") from None


def scheme_of(scheme: str, every: int, seed: int, *, ends: bool, offset: int | None = None) -> Any:
    from unsum.aggregation import AtRandom, Periodic

    require_choice("--scheme", scheme, ("periodic", "random"))
    if scheme == "periodic":
        return Periodic(every, offset=offset, seed=seed, ends=ends)
    if offset is not None:
        raise ParameterError("--offset goes with --scheme periodic.")
    return AtRandom(every, seed=seed, ends=ends)


def make_screen(json: bool) -> Any:
    from unsum.screen import Screen

    return Screen(quiet=json)


def show_job(job: Any, command: str, screen: Any, *, json: bool) -> None:
    """What a job found and did."""
    if json:
        screen.print_json({"command": command, **job.to_dict()})
        return
    screen.findings(job.findings, dropped=True)
    if job.groups is not None:
        screen.findings(job.groups.findings, dropped=True)
    screen.findings(job.adjustments, everything=job.groups is not None)
    screen.facts(job.facts())
