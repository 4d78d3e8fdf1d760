"""The Irish smart-meter trial (CER, from ISSDA), `File1.txt` to `File6.txt`, as published.

Lines `meter DDDTT kWh`: DDD is the day, 1 being 1 January 2009; TT the half hour, 1 to 48, with 49
and 50 on the day that has 25 hours. The day that has 23 hours lacks two. So a day has as many half
hours as most meters have on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from unsum.calendar import DAY, Calendar
from unsum.errors import TableError
from unsum.panel import Panel

DAY_0 = 14_244 * DAY  # 31 December 2008


def read_cer(
    paths: str | Path | Sequence[str | Path],
    first_day: int | None = None,
    n_days: int | None = None,
) -> tuple[Panel, list[str]]:
    """kWh of every meter by day, and the meters left out because a day of theirs is incomplete.

    Days are those of all files, or `n_days` from `first_day` on (1 is 1 January 2009).
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    parts = [_read(Path(path)) for path in files]
    meter = np.concatenate([part[0] for part in parts])
    day = np.concatenate([part[1] for part in parts])
    kwh = np.concatenate([part[2] for part in parts])
    low = int(day.min()) if first_day is None else first_day
    high = int(day.max()) + 1 if n_days is None else low + n_days
    inside = (day >= low) & (day < high)
    if not inside.any():
        raise TableError(f"no file has a day from {low} to {high - 1}.")
    names, who = np.unique(meter, return_inverse=True)
    place = who[inside] * (high - low) + day[inside] - low
    size = len(names) * (high - low)
    counts = np.bincount(place, minlength=size).reshape(len(names), -1)
    values = np.bincount(place, kwh[inside], minlength=size).reshape(len(names), -1)
    complete = (counts >= np.median(np.where(counts, counts, 48), axis=0)).all(axis=1)
    if not complete.any():
        raise TableError(f"no meter has all half hours of the days {low} to {high - 1}.")
    labels = pa.array(names.astype(str))
    calendar = Calendar.covering("D", None, DAY_0 + low * DAY, DAY_0 + high * DAY)
    kept, left_out = labels.filter(pa.array(complete)), labels.filter(pa.array(~complete))
    return Panel(kept, calendar, values[complete]), left_out.to_pylist()


def _read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    names = ["meter", "code", "kwh"]
    types = {"meter": pa.int64(), "code": pa.int64(), "kwh": pa.float64()}
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter=" "),
            convert_options=csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise TableError(
            f"{path} cannot be read as lines of meter, day and half hour, kWh: {error}"
        ) from error
    meter, code, kwh = (np.asarray(table[name]) for name in names)
    half = code % 100
    bad = np.flatnonzero((code < 100) | (half < 1) | (half > 50) | ~(kwh >= 0))
    if len(bad):
        row = int(bad[0])
        raise TableError(
            f"line {row + 1} of {path} has {code[row]} and {kwh[row]}: the code must be a day and "
            "a half hour from 01 to 50, the kWh nonnegative."
        )
    same = meter * 100_000 + code
    if len(np.unique(same)) < len(same):
        order = np.argsort(same, kind="stable")
        again = order[1:][np.diff(same[order]) == 0]
        row = int(again.min())
        raise TableError(f"line {row + 1} of {path} repeats meter {meter[row]}, code {code[row]}.")
    return meter, code // 100, kwh
