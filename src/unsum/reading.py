"""From tables to readings, and what is wrong with tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from unsum.findings import Findings
from unsum.readings import Readings


def read_readings(
    path: str | Path,
    freq: str = "D",
    *,
    tz: str | None = None,
    end: str = "exclusive",
    snap: str = "error",
    overlaps: str = "error",
    negatives: str = "aside",
    true_up: bool = False,
    range_start: str | date | int | None = None,
    range_end: str | date | int | None = None,
    columns: Mapping[str, str] | None = None,
    date_format: str | None = None,
    decimal: str = ".",
    drop_bad: bool = False,
) -> Readings:
    """Read a CSV or Parquet file with one reading per row: series, start, end, total.

    Parameters
    ----------
    path
        A Parquet file (`.parquet`, `.pq`) or else a CSV file, plain or compressed.
    freq
        The fine time step: `"15min"`, `"h"`, `"D"`, `"W"`, `"MS"`, ..., or `"period"` when
        start and end are period numbers.
    tz
        The time zone of the periods. Timestamps with offsets are converted to it, those without
        are local times in it.
    end
        Whether `end` is the first moment after the interval (`"exclusive"`) or the last day or
        period in it (`"inclusive"`).
    snap
        `"error"` or `"nearest"`: what to do with boundaries between two periods.
    overlaps
        `"error"`: overlapping readings are refused. `"solve"`: they are a system that series must
        meet; what follows for disjoint intervals is found, and conflicts are named.
    negatives
        `"aside"`: readings with a negative total are set aside. `"net"`: such a credit is added to
        what it corrects: the same interval, or what it overlaps, or the reading before or after.
    true_up
        Where meters are read by registers, an actual reading makes up for the estimated ones just
        before it: then only their sum binds, and the estimates are guesses at their parts.
    range_start, range_end
        The range of the result, end excluded, where it is not that of the readings.
    columns
        Names of columns that differ, such as `{"series": "account", "total": "kwh"}`. Optional
        columns `quality`, `active_from`, `active_to` are used when present.
    date_format
        A format such as `"%d/%m/%Y"` for dates that are not written as ISO 8601 has it.
    decimal
        The decimal mark of totals written as text, `"."` or `","`.
    drop_bad
        Set bad rows aside instead of raising; `readings.findings` names them.

    Raises
    ------
    ReadingsError
        When rows cannot be used; its `findings` name every one of them.
    """
    from unsum.tables.intake import take_in
    from unsum.tables.rows import Options

    options = Options(
        freq, tz, end, snap, overlaps, range_start, range_end, columns, date_format, decimal,
        negatives, true_up,
    )  # fmt: skip
    return take_in(Path(path), options).readings(drop_bad=drop_bad)


def check(source: Any, freq: str = "D", **options: Any) -> Findings:
    """Everything worth knowing about a file or dataframe of readings; never raises for its rows.

    Takes the options of `read_readings`.
    """
    from unsum.tables.intake import take_in
    from unsum.tables.rows import Options

    return take_in(source, Options(freq, **options)).findings
