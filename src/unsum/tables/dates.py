"""The dates of another file: intervals to read a panel by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from unsum.panel import Panel
from unsum.readings import Readings
from unsum.tables.source import open_source


def read_dates(path: Path, panel: Panel) -> Readings:
    """The intervals of a table with series, start and end, on the periods of a panel."""
    source = open_source(path)
    columns: list[str] = [name for name in ("series", "start", "end") if name in source.columns]
    table = pa.Table.from_batches(list(source.batches(columns)) or [pa.record_batch([], [])])
    calendar = panel.calendar
    return Readings.from_frame(
        table.append_column("total", pa.array(np.zeros(len(table)))),
        calendar.frequency.text,
        tz=calendar.tz,
        range_start=int(calendar.walls[0]),
        range_end=int(calendar.walls[-1]),
    )
