"""The dates of another file: intervals to read a panel by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unsum.panel import Panel
from unsum.readings import Readings
from unsum.tables.intake import take_in
from unsum.tables.rows import Options


def read_dates(path: Path, panel: Panel) -> Readings:
    """The intervals of a table with series, start and end, on the periods of a panel."""
    calendar = panel.calendar
    ends: list[Any] = [int(calendar.edges[0]), int(calendar.edges[-1])]
    if not calendar.frequency.numbered:
        ends = [np.datetime64(int(wall), "us") for wall in calendar.walls[[0, -1]]]
    options = Options(
        calendar.frequency.text,
        tz=calendar.tz,
        range_start=ends[0],
        range_end=ends[1],
        with_totals=False,
    )
    return take_in(path, options).readings(drop_bad=False)
