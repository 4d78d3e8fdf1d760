"""What people hold, turned into the canonical table of readings: series, start, end, total.

One module for each family of formats. A table is read row by row into a sheet (`sheet`), judged
cell by cell, and becomes readings; files that are no tables (`green_button`, `nem`) have readers of
their own. Whether readings overlap, leave gaps or fit a grid is not judged here: the one validator
of `tables/intake.py` does that when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unsum.errors import ParameterError, require_choice

if TYPE_CHECKING:
    from unsum.tables.importers.imported import Imported


@dataclass(frozen=True)
class Format:
    """A format that can be imported: where its function lives, and the options it takes."""

    name: str
    sentence: str
    home: str
    function: str
    options: tuple[str, ...] = ()


FORMATS = {
    each.name: each
    for each in (
        Format(
            "registers",
            "Cumulative reads: meter, date, index; rollovers and new meters are noticed.",
            "registers", "import_registers",
            ("multiplier", "digits", "add_registers", "keep_negative"),
        ),
        Format(
            "bills",
            "Bills with start and end, with end and days (Opower), or with their end alone.",
            "bills", "import_bills", ("end", "from_previous"),
        ),
        Format(
            "green-button",
            "Green Button files (ESPI): every usage point and direction is a series.",
            "green_button", "import_green_button", ("by_file",),
        ),
        Format("nem12", "Interval reads of the Australian market.", "nem", "import_nem12"),
        Format("nem13", "Accumulated reads of the Australian market.", "nem", "import_nem13"),
        Format(
            "cer", "The Irish smart-meter trial as published, File1.txt to File6.txt, by day.",
            "published", "import_cer", ("first_day", "n_days"),
        ),
        Format(
            "uci", "The UCI table LD2011_2014.txt as published, by day or by hour.",
            "published", "import_uci", ("freq",),
        ),
        Format(
            "opendsm",
            "Billing frames of OpenDSM and eemeter: values where periods begin, then none.",
            "opendsm", "import_opendsm",
        ),
        Format(
            "nixtla", "Long tables of fine values: unique_id, ds, y.",
            "fine", "import_nixtla", ("freq",),
        ),
        Format(
            "wide", "Fine values with a column of times and one column per series.",
            "fine", "import_wide", ("freq",),
        ),
        Format(
            "end-stamped",
            "Fine values, long or wide, whose times mark the end of each period (ESB's HDF).",
            "fine", "import_end_stamped", ("freq",),
        ),
    )
}  # fmt: skip


def import_readings(
    format: str,  # noqa: A002
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
    unit: str | None = None,
    to: str | None = None,
    calorific: float | None = None,
    tz: str | None = None,
    date_format: str | None = None,
    decimal: str = ".",
    drop_bad: bool = False,
    **options: Any,
) -> Imported:
    """Read what a meter, a utility or a library wrote, as a canonical table of readings.

    Parameters
    ----------
    format
        One of `registers`, `bills`, `green-button`, `nem12`, `nem13`, `cer`, `uci`, `opendsm`,
        `nixtla`, `wide`, `end-stamped`.
    source
        A path or several; for formats that are tables, also a dataframe of any library.
    columns
        Names of columns that cannot be guessed, such as `{"series": "account", "index": "kwh"}`.
    name
        The name of the one series of a table that has no column of series.
    unit
        The unit of the totals, where the file does not say it.
    to
        The unit to convert to, such as `"kWh"`; by default the file's own unit is kept.
    calorific
        kWh in a cubic metre, to convert volumes of gas to energy.
    tz
        The time zone that fine values without offset are in, such as `"Europe/Dublin"`, and that
        times with offsets are written in.
    date_format
        A format such as `"%d/%m/%Y"` for dates that are not written as ISO 8601 has it.
    decimal
        The decimal mark of numbers written as text, `"."` or `","`.
    drop_bad
        Set bad rows aside instead of raising; `findings` names them.
    options
        What the format takes besides. `registers`: `multiplier` and `digits` (a number, or the name
        of a column), `add_registers`, `keep_negative`. `bills`: `end` (`"exclusive"` or
        `"inclusive"`), `from_previous`. `green-button`: `by_file`. `nixtla`, `wide`,
        `end-stamped`, `uci`: `freq`. `cer`: `first_day`, `n_days`.

    Raises
    ------
    ReadingsError
        When rows cannot be used; its `findings` name every one of them.
    """
    from unsum.tables.importers.asked import Asked

    require_choice("format", format, tuple(FORMATS))
    known = FORMATS[format]
    wrong = [option for option in options if option not in known.options]
    if wrong:
        taken = f"; it takes {', '.join(known.options)}" if known.options else ""
        raise ParameterError(f"format {format!r} has no option {wrong[0]!r}{taken}.")
    module = import_module(f"unsum.tables.importers.{known.home}")
    asked = Asked(
        format=format,
        sources=_list_sources(source),
        columns=dict(columns or {}),
        name=name,
        unit=unit,
        to=to,
        calorific=calorific,
        tz=tz,
        date_format=date_format,
        decimal=decimal,
        drop_bad=drop_bad,
    )
    imported: Imported = getattr(module, known.function)(asked, **options)
    return imported


def _list_sources(source: Any) -> tuple[Any, ...]:
    several = isinstance(source, Sequence) and not isinstance(source, str | bytes | Path)
    sources = tuple(source) if several else (source,)
    if not sources:
        raise ParameterError("source must be a path, several paths, or a dataframe; got none.")
    if len(sources) > 1 and not all(isinstance(each, str | Path) for each in sources):
        raise ParameterError("several sources must all be paths; join dataframes before.")
    return sources
