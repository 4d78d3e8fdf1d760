"""Commands on what was recovered and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unsum.cli.app import app
from unsum.cli.options import (
    ActiveFromOpt,
    ActiveToOpt,
    DaskOpt,
    DecimalOpt,
    DropOpt,
    EndOpt,
    FileArg,
    FormatOpt,
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
    SeriesOpt,
    SnapOpt,
    StartOpt,
    TableArg,
    ThreadsOpt,
    TimeOpt,
    TotalOpt,
    TrueUpOpt,
    TzOpt,
    UnbilledOpt,
    ValueOpt,
    WideOpt,
    columns_of,
    make_screen,
    means_of,
    show_job,
    source_of,
)
from unsum.errors import ParameterError


@app.command()
def totals(
    file: Annotated[
        Path,
        typer.Argument(
            help="A table of fine series, or a recovery kept by 'recover --save'.",
            show_default=False,
        ),
    ],
    out: OutOpt,
    rule: Annotated[str, typer.Option(help="MS, W, QS, YS, or any step: 7D, 6h.")] = "MS",
    by: Annotated[
        str | None,
        typer.Option(help="Sums over series: 'all', or a table with columns series and group."),
    ] = None,
    interval: IntervalOpt = None,
    freq: PanelFreqOpt = None,
    tz: TzOpt = None,
    time: TimeOpt = "time",
    series: SeriesOpt = "series",
    value: ValueOpt = "value",
    decimal: DecimalOpt = ".",
    json: JsonOpt = False,
) -> None:
    """Fine series to calendar months, weeks, quarters, or any longer step; or sums over series.

    Intervals and sums over series need a recovery kept by 'unsum recover --save'.

    Example: unsum totals daily.parquet -o months.csv --rule MS

    Example: unsum totals bills.unsum -o portfolio.csv --rule MS --by all --interval 0.9
    """
    from unsum.saving import SUFFIX
    from unsum.tables.write import write_table

    if file.suffix == SUFFIX:
        table, n_series = _totals_of_recovery(file, rule, by, interval)
    else:
        if by is not None or interval is not None:
            raise ParameterError(
                "--by and --interval need a recovery kept by 'unsum recover --save', a .unsum file."
            )
        from unsum.tables.panels import read_panel

        panel = read_panel(
            file, freq, tz=tz, time=time, series=series, value=value, decimal=decimal
        )
        table, n_series = panel.totals(rule), panel.n_series
    write_table(table, out, file)
    screen = make_screen(json)
    if json:
        screen.print_json({"command": "totals", "output": str(out), "rows": len(table)})
    else:
        screen.facts([("wrote", f"{out}: {len(table):,} totals of {n_series:,} series")])


def _totals_of_recovery(
    file: Path, rule: str, by: str | None, interval: float | None
) -> tuple[Any, int]:
    from unsum.tables.sums import read_groups

    recovery = _load_recovery(file)
    if interval is not None:
        recovery = recovery.with_interval(interval)
    groups = by if by in (None, "all") else read_groups(Path(str(by)))
    table = recovery.totals(rule, by=groups, backend="pyarrow")
    return table, recovery.readings.n_series


def _load_recovery(file: Path) -> Any:
    from unsum.model import Model
    from unsum.saving import load

    recovery = load(file)
    if isinstance(recovery, Model):
        raise ParameterError(f"{file} holds profiles only; apply it to readings: unsum apply.")
    return recovery


@app.command()
def update(
    model: Annotated[Path, typer.Argument(help="What 'recover --save' kept.", show_default=False)],
    file: FileArg,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The updated recovery to write: .unsum.")
    ],
    revisions: Annotated[
        Path | None, typer.Option(help="Also write what moved, by how much, and why.")
    ] = None,
    values: Annotated[
        Path | None, typer.Option(help="Also write the fine series that new readings touch.")
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn again from all readings, old and new.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="New readings take the place of those they overlap.")
    ] = False,
    rule: Annotated[str, typer.Option(help="The step of revisions: MS, W, D, ...")] = "MS",
    inclusive_end: InclusiveOpt = False,
    drop_bad: DropOpt = False,
    series: SeriesOpt = "series",
    start: StartOpt = "start",
    end: EndOpt = "end",
    total: TotalOpt = "total",
    quality: QualityOpt = None,
    date_format: FormatOpt = None,
    decimal: DecimalOpt = ".",
    json: JsonOpt = False,
) -> None:
    """New readings for a recovery: the series they touch are recovered again, the others stay.

    New readings take the place of estimated ones that they overlap. With --learn they may lie
    beyond the dates of the recovery.

    Example: unsum update bills.unsum new-bills.csv -o bills.unsum --revisions moved.csv

    Example: unsum update bills.unsum new-bills.csv -o bills.unsum --learn
    """
    from unsum.tables.jobs import check_apart
    from unsum.tables.source import open_source
    from unsum.tables.write import (
        check_destination,
        check_model_destination,
        whole_file,
        write_set_aside,
        write_table,
    )

    check_model_destination(out)
    aside = out.with_name(f"{out.stem}.set-aside.csv")
    tables = [path for path in (revisions, values, aside) if path is not None]
    for path in tables:
        check_destination(path, file)
    check_apart([out, *tables], [file])
    columns = columns_of(series=series, start=start, end=end, total=total, quality=quality)
    done = _load_recovery(model).update(
        file, learn=learn, replace=replace, columns=columns, drop_bad=drop_bad,
        end="inclusive" if inclusive_end else "exclusive", date_format=date_format,
        decimal=decimal,
    )  # fmt: skip
    moved, found = done.revisions(rule), done.news.findings
    if revisions is not None:
        write_table(moved, revisions)
    if values is not None:
        write_table(done.values(), values)
    if found.rows_set_aside:
        with whole_file(aside) as temporary:
            write_set_aside(open_source(file), found, temporary)
    done.recovery.save(out)
    screen = make_screen(json)
    told = {
        "series": len(done.touched), "readings": len(done.news), "revisions": len(moved),
        "superseded": len(done.superseded),
    }  # fmt: skip
    if json:
        told |= found.to_dict()
        screen.print_json({"command": "update", "output": str(out), "learned": learn, **told})
        return
    screen.findings(found, dropped=True)
    screen.facts(
        [
            ("new", f"{told['readings']:,} readings of {told['series']:,} series"),
            ("moved", f"{told['revisions']:,} totals by {rule!r}"),
            ("gone", f"{told['superseded']:,} older readings that new ones take the place of"),
            ("wrote", ", ".join(str(path) for path in (out, revisions, values) if path)),
        ]
    )


@app.command()
def report(
    file: Annotated[Path, typer.Argument(help="What 'recover --save' kept.", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page to write: .html.")],
    interval: IntervalOpt = None,
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    json: JsonOpt = False,
) -> None:
    """A page about a recovery: one HTML file to look at, to mail, or to print; it needs no net.

    Example: unsum report bills.unsum -o bills.html

    Example: unsum report bills.unsum -o bills.html --interval 0.8 --title "Town, 2023"
    """
    from unsum.report import write_report
    from unsum.tables.write import check_page_destination

    check_page_destination(out)
    recovery = _load_recovery(file)
    if interval is not None:
        recovery = recovery.with_interval(interval)
    write_report(recovery, out, title or file.stem)
    screen = make_screen(json)
    size = out.stat().st_size
    if json:
        screen.print_json({"command": "report", "output": str(out), "bytes": size})
    else:
        screen.facts([("wrote", f"{out}: {size / 1e6:.1f} MB; open it in a browser")])


@app.command()
def apply(
    model: Annotated[Path, typer.Argument(help="What 'recover --save' kept.", show_default=False)],
    file: TableArg,
    out: ResultOpt,
    interval: IntervalOpt = None,
    traits: Annotated[
        str | None,
        typer.Option(help="The traits of the new series, where the model was learned with some."),
    ] = None,
    inclusive_end: InclusiveOpt = False,
    snap: SnapOpt = "error",
    overlaps: OverlapsOpt = "error",
    negatives: NegativesOpt = "aside",
    true_up: TrueUpOpt = False,
    drop_bad: DropOpt = False,
    unbilled: UnbilledOpt = None,
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
    dask: DaskOpt = None,
    json: JsonOpt = False,
) -> None:
    """New series, or new readings of known ones, on stored profiles, without learning again.

    The step, the time zone and the dates are those of the model. Each series is recovered from its
    rows in FILE and from what the model knows of all series, whoever else is in FILE.

    Example: unsum apply bills.unsum newcomers.csv -o newcomers.parquet

    Example: unsum apply bills.unsum newcomers.csv -o newcomers.csv --interval 0.9
    """
    from unsum.tables.jobs import Outputs
    from unsum.tables.running import run_apply

    columns = columns_of(
        series=series, start=start, end=end, total=total, quality=quality,
        active_from=active_from, active_to=active_to,
    )  # fmt: skip
    screen = make_screen(json)
    with means_of(out, threads, memory, dask) as means:
        job = run_apply(
            model, source_of(file), Outputs(out, wide, unbilled, report=report),
            drop_bad=drop_bad, means=means, watch=screen.watch, say=screen.say, interval=interval,
            traits=traits, end="inclusive" if inclusive_end else "exclusive", snap=snap,
            overlaps=overlaps, negatives=negatives, true_up=true_up, date_format=date_format,
            decimal=decimal, columns=columns,
        )  # fmt: skip
    show_job(job, "apply", screen, json=json)
