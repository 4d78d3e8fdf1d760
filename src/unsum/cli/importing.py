"""The command that reads what people hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from unsum.cli.app import Exit, app
from unsum.cli.options import (
    DecimalOpt,
    DropOpt,
    FormatOpt,
    InclusiveOpt,
    JsonOpt,
    OutOpt,
    columns_of,
    make_screen,
)
from unsum.errors import ReadingsError
from unsum.tables.importers import FORMATS

_HELP = """What meters, utilities and libraries write, as a table of readings for 'unsum recover'.

Columns are found by their usual names, and said; the options name those that are not.

Example: unsum import registers reads.csv -o readings.csv --digits 5

Example: unsum import bills bills.tsv -o readings.csv --inclusive-end

Example: unsum import green-button usage.xml -o readings.csv --to kWh --tz America/New_York

Example: unsum import nem12 *.csv -o readings.parquet

Example: unsum import end-stamped HDF.csv -o readings.csv --tz Europe/Dublin

\b
Formats:
"""


def _list_formats() -> str:
    width = max(map(len, FORMATS))
    return "\n".join(f"  {name:<{width}}  {each.sentence}" for name, each in FORMATS.items())


def _print_list(wanted: bool) -> None:
    if wanted:
        typer.echo(_list_formats())
        raise typer.Exit


@app.command("import", help=_HELP + _list_formats())
def import_(
    format: Annotated[  # noqa: A002
        str, typer.Argument(help="One of the formats above.", show_default=False)
    ],
    files: Annotated[
        list[Path], typer.Argument(help="One file or several of them.", show_default=False)
    ],
    out: OutOpt,
    unit: Annotated[
        str | None, typer.Option(help="The unit of the file, where it does not say it.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(help="Convert to kWh, MWh, MJ, therm, ...; or m3, ft3, ccf, ..."),
    ] = None,
    calorific: Annotated[
        float | None, typer.Option(help="kWh in a cubic metre of gas, to convert volumes.")
    ] = None,
    tz: Annotated[
        str | None, typer.Option(help="The time zone of local times, such as Europe/Dublin.")
    ] = None,
    freq: Annotated[
        str | None, typer.Option(help="Fine values: their step; guessed from their times.")
    ] = None,
    inclusive_end: InclusiveOpt = False,
    from_previous: Annotated[
        bool,
        typer.Option("--from-previous", help="bills: each begins where the one before ended."),
    ] = False,
    multiplier: Annotated[
        str | None, typer.Option(help="registers: what reads are multiplied by, or its column.")
    ] = None,
    digits: Annotated[
        str | None,
        typer.Option(help="registers: digits after which they begin again, or their column."),
    ] = None,
    add_registers: Annotated[
        bool, typer.Option("--add-registers", help="registers: add up those of a meter.")
    ] = False,
    keep_negative: Annotated[
        bool,
        typer.Option("--keep-negative", help="registers: keep what meters ran backwards."),
    ] = False,
    by_file: Annotated[
        bool, typer.Option("--by-file", help="green-button: name series after their files.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="The name of the series, where no column tells it.")
    ] = None,
    series: Annotated[str | None, typer.Option(help="Column of series.")] = None,
    start: Annotated[str | None, typer.Option(help="Column of starts.")] = None,
    end: Annotated[str | None, typer.Option(help="Column of ends.")] = None,
    duration: Annotated[str | None, typer.Option(help="Column of days.")] = None,
    total: Annotated[str | None, typer.Option(help="Column of totals.")] = None,
    time: Annotated[str | None, typer.Option(help="Column of times, or dates of reads.")] = None,
    index: Annotated[str | None, typer.Option(help="Column of reads of a register.")] = None,
    value: Annotated[str | None, typer.Option(help="Column of fine values.")] = None,
    quality: Annotated[str | None, typer.Option(help="Column of actual or estimated.")] = None,
    unit_column: Annotated[str | None, typer.Option(help="Column of units.")] = None,
    serial: Annotated[str | None, typer.Option(help="Column of serial numbers.")] = None,
    register: Annotated[str | None, typer.Option(help="Column of register names.")] = None,
    date_format: FormatOpt = None,
    decimal: DecimalOpt = ".",
    drop_bad: DropOpt = False,
    list_formats: Annotated[  # noqa: ARG001
        bool,
        typer.Option(
            "--list", help="Print the formats and end.", is_eager=True, callback=_print_list
        ),
    ] = False,
    json: JsonOpt = False,
) -> None:
    from unsum.tables.importers import import_readings
    from unsum.tables.importers.imported import check_outputs

    check_outputs(out, files)
    columns = columns_of(
        series=series, start=start, end=end, duration=duration, total=total, time=time,
        index=index, value=value, quality=quality, unit=unit_column, serial=serial,
        register=register,
    )  # fmt: skip
    given = {
        "freq": freq, "multiplier": multiplier, "digits": digits,
        "end": "inclusive" if inclusive_end else None, "from_previous": from_previous or None,
        "add_registers": add_registers or None, "keep_negative": keep_negative or None,
        "by_file": by_file or None,
    }  # fmt: skip
    options = {option: value for option, value in given.items() if value is not None}
    screen = make_screen(json)
    screen.say(f"reading {', '.join(map(str, files[:3]))}")
    try:
        imported = import_readings(
            format, files, columns=columns, name=name, unit=unit, to=to, calorific=calorific,
            tz=tz, date_format=date_format, decimal=decimal, drop_bad=drop_bad, **options,
        )  # fmt: skip
    except ReadingsError as error:
        _stop(error, screen, drop_bad=drop_bad, json=json)
    aside = imported.write(out)
    _show(imported, out, aside, screen, json=json)


def _stop(error: ReadingsError, screen: Any, *, drop_bad: bool, json: bool) -> NoReturn:
    """What is wrong, with the way out; nothing is written."""
    if json:
        screen.print_json({"error": str(error), **error.findings.to_dict()})
    typer.echo(f"unsum: {error}", err=True)
    remedy = "" if drop_bad else " --drop-bad sets bad rows aside."
    typer.echo(f"Nothing was written.{remedy}", err=True)
    raise typer.Exit(Exit.BAD_INPUT) from None


def _show(imported: Any, out: Path, aside: Path | None, screen: Any, *, json: bool) -> None:
    """What was read, assumed and written, and the next command."""
    from unsum.tables.ledger import count

    found = imported.findings
    result = "daily" if imported.freq in (None, "D") else "values"
    following = f"unsum recover {out} -o {result}.parquet{imported.recover_options}"
    if json:
        screen.print_json(
            {
                "command": "import",
                **found.to_dict(),
                "readings": len(imported.table),
                "series": imported.n_series,
                "notes": list(imported.notes),
                "output": str(out),
                "set_aside": str(aside) if aside else None,
                "next": following,
            }
        )
        return
    screen.findings(found, dropped=True)
    readings = count(len(imported.table), "reading")
    rows = f"{found.rows_read:,} read = {found.rows_used:,} used + "
    rows += f"{found.rows_set_aside:,} set aside" + (f", in {aside}" if aside else "")
    screen.facts(
        [
            ("rows", f"{rows} ({found.row_origin})"),
            *(("note", sentence) for sentence in imported.notes),
            ("wrote", f"{out}: {readings} of {imported.n_series:,} series"),
            ("next", following),
        ]
    )
