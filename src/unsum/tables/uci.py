"""The UCI table of 370 Portuguese clients, `LD2011_2014.txt`, as published.

Semicolons, decimal commas, quoted times that mark the end of each quarter of an hour, and kW: a
quarter of each value is kWh. Every day has 96 rows, whatever the clocks do: in March the hour that
does not exist is zero, in October the hour that comes twice holds both. Sums over days are right
all the same. Clients that came later are zero before.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from unsum.calendar import DAY, HOUR, MINUTE, Calendar
from unsum.errors import TableError
from unsum.panel import Panel

QUARTER = 15 * MINUTE


def read_uci(path: str | Path, step: str = "D") -> Panel:
    """kWh of every client by day, or by hour (`step="h"`), over the whole days of the file.

    The calendar has no time zone: its days have 24 hours, as in the file.
    """
    names, moments, columns = _read(Path(path))
    size = {"D": DAY, "h": HOUR}[step] // QUARTER
    begun = moments - QUARTER  # rows are stamped at the end of their quarter of an hour
    broken = np.flatnonzero(np.diff(begun) != QUARTER)
    if len(broken):
        raise TableError(
            f"row {broken[0] + 2} of {path} is not followed by the next quarter of an hour; the "
            "table has 96 rows a day."
        )
    first = int(-(-begun[0] // DAY) * DAY)
    skipped = (first - int(begun[0])) // QUARTER
    n_periods = (len(begun) - skipped) // size
    if step == "h":
        n_periods -= n_periods % 24
    if n_periods < 1:
        raise TableError(f"{path} holds no whole day.")
    used = slice(skipped, skipped + n_periods * size)
    values = np.stack([column[used].reshape(n_periods, size).sum(axis=1) / 4 for column in columns])
    calendar = Calendar.covering(step, None, first, first + n_periods * size * QUARTER)
    return Panel(pa.array(names), calendar, values)


def first_use(panel: Panel) -> np.ndarray:
    """The first period in which each series is not zero; the length of the panel if none is."""
    used = panel.values > 0
    return np.where(used.any(axis=1), used.argmax(axis=1), panel.n_periods)


def _read(path: Path) -> tuple[list[str], np.ndarray, list[np.ndarray]]:
    try:
        table = csv.read_csv(
            path,
            parse_options=csv.ParseOptions(delimiter=";"),
            convert_options=csv.ConvertOptions(decimal_point=",", timestamp_parsers=[csv.ISO8601]),
        )
    except pa.ArrowInvalid as error:
        raise TableError(f"{path} cannot be read as the UCI table: {error}") from error
    times = table.column(0)
    if table.num_columns < 2 or not pa.types.is_timestamp(times.type):
        raise TableError(
            f"the first column of {path} must hold times and the others a client each, separated "
            "by semicolons, as in LD2011_2014.txt."
        )
    columns = []
    for name in table.column_names[1:]:
        column = table.column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise TableError(f"column {name!r} of {path} does not hold numbers; first {column[0]}.")
        values = np.asarray(column.cast(pa.float64()))
        bad = np.flatnonzero(~(values >= 0))
        if len(bad):
            raise TableError(
                f"row {bad[0] + 2} of {path} has {values[bad[0]]} for {name!r}; values must be "
                "nonnegative."
            )
        columns.append(values)
    moments = np.asarray(times.cast(pa.timestamp("us")).cast(pa.int64()))
    return table.column_names[1:], moments, columns
