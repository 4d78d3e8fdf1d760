"""Commands from file to file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unsum.cli.app import Exit, app
from unsum.cli.options import (
    ActiveFromOpt,
    ActiveToOpt,
    CheckpointOpt,
    DaskOpt,
    DecimalOpt,
    DropOpt,
    EndOpt,
    EndsOpt,
    FileArg,
    FormatOpt,
    FreqOpt,
    FromOpt,
    InclusiveOpt,
    IntervalOpt,
    JsonOpt,
    MemoryOpt,
    NegativesOpt,
    OutOpt,
    OverlapsOpt,
    PanelFreqOpt,
    QualityOpt,
    ReportOpt,
    ResultOpt,
    SchemeOpt,
    SeedOpt,
    SeriesOpt,
    SnapOpt,
    StartOpt,
    TableArg,
    ThreadsOpt,
    TimeOpt,
    ToOpt,
    TotalOpt,
    TrueUpOpt,
    TzOpt,
    UnbilledOpt,
    ValueOpt,
    WideOpt,
    bytes_of,
    columns_of,
    lags_of,
    make_screen,
    means_of,
    options_of,
    scheme_of,
    show_job,
    source_of,
    strength_of,
)
from unsum.errors import ParameterError


@app.command()
def recover(
    file: TableArg,
    out: ResultOpt,
    freq: FreqOpt = "D",
    method: Annotated[
        str, typer.Option(help="auto, even, denton, panel, nmf, or nmf-ar.")
    ] = "auto",
    candidates: Annotated[
        str | None,
        typer.Option(
            help="auto: methods to choose from, with a rank or shrinkage behind a colon, such as "
            "denton,nmf:3,nmf:5,panel:0.2."
        ),
    ] = None,
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
    overlaps: OverlapsOpt = "error",
    negatives: NegativesOpt = "aside",
    true_up: TrueUpOpt = False,
    from_: FromOpt = None,
    to: ToOpt = None,
    drop_bad: DropOpt = False,
    indicators: Annotated[
        str | None,
        typer.Option(
            help="auto, panel: a table with a time and numbers for every period, such as "
            "temperature; or 'calendar' for weekdays and hours, 'calendar:PT' for holidays too."
        ),
    ] = None,
    traits: Annotated[
        str | None,
        typer.Option(
            help="auto, panel: a table with a series and numbers or kinds for each, such as its "
            "tariff; series without readings are then predicted."
        ),
    ] = None,
    doubt: Annotated[
        float | None,
        typer.Option(help="auto, panel: the usual relative error of estimated readings, if known."),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(help="A table with columns series and group: who is in which group."),
    ] = None,
    group_totals: Annotated[
        Path | None,
        typer.Option(help="A table with columns group, start, end and total: loads of groups."),
    ] = None,
    interval: IntervalOpt = None,
    unbilled: UnbilledOpt = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Also keep the recovery, for 'unsum totals' and 'unsum apply': a .unsum file."
        ),
    ] = None,
    profiles_only: Annotated[
        bool,
        typer.Option(
            "--profiles-only", help="Keep what was learned alone, nothing of a single series."
        ),
    ] = False,
    report: ReportOpt = None,
    wide: WideOpt = False,
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
    memory: MemoryOpt = None,
    checkpoint: CheckpointOpt = None,
    dask: DaskOpt = None,
    json: JsonOpt = False,
) -> None:
    """Readings in, fine series out: nonnegative, and adding up to every reading.

    Example: unsum recover bills.csv -o daily.parquet

    Example: unsum recover bills.csv -o daily.csv --series account --total kwh --inclusive-end

    Example: unsum recover bills.csv -o daily.parquet --interval 0.9 --save bills.unsum

    Example: unsum recover bills.csv -o daily.parquet --report bills.html

    Example: unsum recover bills.csv -o daily.parquet --indicators weather.csv

    Example: unsum recover bills.csv -o daily.csv --groups feeders.csv --group-totals loads.csv

    Example: unsum recover bills.csv -o daily.parquet --method nmf --rank 5

    Example: unsum recover bills.csv -o daily.parquet --candidates denton,nmf:3,nmf:5,nmf:8

    Example: unsum recover meters/ -o daily --memory 4GB --checkpoint run
    """
    from unsum.tables.jobs import Outputs
    from unsum.tables.running import run_recover

    columns = columns_of(
        series=series, start=start, end=end, total=total, quality=quality,
        active_from=active_from, active_to=active_to,
    )  # fmt: skip
    options = options_of(
        freq, tz, inclusive_end, snap, from_, to, columns, date_format, decimal, overlaps=overlaps,
        negatives=negatives, true_up=true_up,
    )  # fmt: skip
    given = {
        "rank": rank, "update": update, "max_iter": max_iter, "tol": tol, "start": start_from,
        "seed": seed, "lags": lags_of(lags), "rho": rho, "strength": strength_of(strength),
        "indicators": indicators, "traits": traits, "doubt": doubt,
        "candidates": None if candidates is None else candidates.split(","),
    }  # fmt: skip
    settings = {name: value for name, value in given.items() if value is not None}
    if (groups is None) != (group_totals is None):
        raise ParameterError("--groups and --group-totals go together; give both.")
    screen = make_screen(json)
    with means_of(out, threads, memory, dask, checkpoint) as means:
        job = run_recover(
            source_of(file), Outputs(out, wide, unbilled, save, profiles_only, report), options,
            method=method, settings=settings, drop_bad=drop_bad, interval=interval, groups=groups,
            group_totals=group_totals, watch=screen.watch, say=screen.say, means=means,
        )  # fmt: skip
    show_job(job, "recover", screen, json=json)


@app.command()
def check(
    file: TableArg,
    freq: FreqOpt = "D",
    tz: TzOpt = None,
    inclusive_end: InclusiveOpt = False,
    snap: SnapOpt = "error",
    overlaps: OverlapsOpt = "error",
    negatives: NegativesOpt = "aside",
    true_up: TrueUpOpt = False,
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
    memory: MemoryOpt = None,
    each: Annotated[
        Path | None,
        typer.Option(
            help="Try a recovery, and write here for every series what its dates show, and which "
            "part of the answer is its own, the panel's, and open."
        ),
    ] = None,
    json: JsonOpt = False,
) -> None:
    """What is wrong with a table of readings, row by row, and what recover would do about it.

    Ends with exit code 1 when something would stop recover.

    Example: unsum check bills.csv

    Example: unsum check bills.csv --each series.csv
    """
    from tempfile import TemporaryDirectory

    from unsum.tables.within import free_memory, take_in_within
    from unsum.tables.write import check_destination

    columns = columns_of(
        series=series, start=start, end=end, total=total, quality=quality,
        active_from=active_from, active_to=active_to,
    )  # fmt: skip
    options = options_of(
        freq, tz, inclusive_end, snap, from_, to, columns, date_format, decimal, overlaps=overlaps,
        negatives=negatives, true_up=true_up,
    )  # fmt: skip
    if each is not None:
        check_destination(each, source_of(file))
    screen = make_screen(json)
    screen.say(f"reading {file}")
    with TemporaryDirectory(prefix="unsum-check-") as folder:
        within = bytes_of(memory) or free_memory() // 2
        intake = take_in_within(source_of(file), options, within, Path(folder), screen.say)
        sources = None
        if each is not None and intake.usable is not None:
            sources = _tell_each(intake, each, screen)
        _tell_check(intake, screen, sources, json=json)
    if intake.findings.errors:
        raise typer.Exit(Exit.BAD_INPUT)


def _tell_each(intake: Any, path: Path, screen: Any) -> dict[str, float]:
    """Write where the answer comes from, by series; the same for the series in the middle."""
    import pyarrow.compute as pc

    from unsum.engine import announce_compilation
    from unsum.errors import ParameterError
    from unsum.intervals import FEWEST
    from unsum.methods.auto import Auto
    from unsum.recovering import recover
    from unsum.tables.write import write_table

    if intake.usable.n_series < FEWEST:
        raise ParameterError(
            f"--each needs {FEWEST} series or more, to learn how they differ; these are "
            f"{intake.usable.n_series:,}."
        )
    announce_compilation("auto", screen.say)
    with screen.watch("trying methods", Auto().max_iter) as step:
        table = recover(intake.usable, progress=step).diagnosis(backend="pyarrow")
    write_table(table, path)
    screen.say(f"wrote {path}")
    middle = {name: pc.quantile(table[name])[0].as_py() for name in ("own", "panel", "open")}
    return {name: share / sum(middle.values()) for name, share in middle.items()}


def _tell_check(intake: Any, screen: Any, sources: dict[str, float] | None, *, json: bool) -> None:
    if json:
        usable = intake.usable.describe() if intake.usable else None
        told = {"command": "check", "readings": usable} | intake.findings.to_dict()
        screen.print_json(told if sources is None else told | {"sources": sources})
    else:
        screen.findings(intake.findings, everything=True)
        screen.check_summary(intake, sources)


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
        how = scheme_of(scheme, every, seed, ends=ends, offset=offset)
    elif dates is not None:
        how = read_dates(dates, panel)
    readings = take_sums(panel, how)
    write_table(readings.to_arrow(), out, file)
    screen = make_screen(json)
    found = how.findings if dates is not None else readings.findings
    if json:
        described = readings.describe() | found.to_dict()
        screen.print_json({"command": "aggregate", "output": str(out)} | described)
    else:
        screen.findings(found)
        screen.facts([("wrote", f"{out}: {readings!r}")])
