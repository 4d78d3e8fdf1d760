"""What an import gives: a canonical table, what was found on the way, and what was assumed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.calendar import DAY
from unsum.errors import ReadingsError
from unsum.findings import Findings
from unsum.readings import Readings
from unsum.tables.cells import LARGEST
from unsum.tables.frames import to_native
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.clock import Clock
from unsum.tables.ledger import Ledger
from unsum.tables.source import Source
from unsum.tables.write import check_destination, whole_file, write_set_aside, write_table

_OFFSET = re.compile(r"[+-]\d\d:\d\d$")


@dataclass(frozen=True, eq=False)
class Imported:
    """A canonical table of readings, and how it came about."""

    table: pa.Table  # series, start, end, total, and quality and unit where they are known
    findings: Findings
    notes: tuple[str, ...] = ()
    freq: str | None = None  # the step, where every reading is one
    tz: str | None = None  # the zone that times are written in
    source: Source | None = field(default=None, repr=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """The table as a dataframe of `backend`, or of the library that the source came from."""
        return to_native(self.table, backend or (self.source.backend if self.source else None))

    def readings(self, freq: str | None = None, **options: Any) -> Readings:
        """The table as readings; takes the options of `read_readings`."""
        return Readings.from_frame(self.table, freq or self.freq or "D", **options)

    @property
    def n_series(self) -> int:
        return len(self.table["series"].unique())

    @property
    def recover_options(self) -> str:
        """What `unsum recover` has to be told about the table."""
        options = f" --freq {self.freq}" if self.freq not in (None, "D") else ""
        times = self.table["start"]
        if self.tz is not None:
            options += f" --tz {self.tz}"
        elif pa.types.is_string(times.type) and _OFFSET.search(times[0].as_py()):
            options += " --tz ZONE"
        if self.freq is None and not self._at_midnights():
            options += " --snap nearest"
        return options

    def _at_midnights(self) -> bool:
        """Whether readings begin and end with local days."""
        for name in ("start", "end"):
            times = self.table[name]
            if pa.types.is_string(times.type):
                return all("T00:00:00" in text for text in times.to_pylist())
            if pa.types.is_timestamp(times.type):
                walls = pc.local_timestamp(times) if times.type.tz else times
                if (np.asarray(walls.cast(pa.int64())) % DAY).any():
                    return False
        return True

    def write(self, path: Path) -> Path | None:
        """Write the table, and beside it the rows set aside, whose file is returned if any."""
        aside = aside_of(path)
        check_destination(path)
        if not self.findings.rows_set_aside or self.source is None:
            write_table(self.table, path)
            return None
        with whole_file(aside) as temporary:  # takes its name only after the main output has
            write_set_aside(self.source, self.findings, temporary)
            write_table(self.table, path)
        return aside


def check_outputs(path: Path, inputs: Iterable[Path]) -> None:
    """Refuse early what cannot be written, or would be written over an input."""
    for source in inputs:
        check_destination(path, source if source.exists() else None)
        check_destination(aside_of(path), source if source.exists() else None)


def aside_of(path: Path) -> Path:
    """Where rows set aside go, beside the output."""
    return path.with_name(f"{path.stem}.set-aside.csv")


@dataclass(frozen=True)
class Draft:
    """Readings on their way into a table, in any order; starts and ends are moments of a clock."""

    series: pa.Array
    start: np.ndarray
    end: np.ndarray
    total: np.ndarray
    estimated: np.ndarray | None = None
    unit: str | None = None
    freq: str | None = None


def finish(
    asked: Asked, draft: Draft, clock: Clock, ledger: Ledger, notes: Iterable[str]
) -> Imported:
    """The import, or an error that names every bad row."""
    source = ledger.source
    if not len(draft.total) and not ledger.fatal:
        ledger.stop(
            "empty-table",
            f"{source.label} holds no usable reading; the other findings say why.",
            details=[item.sentence for item in ledger.items],
        )
    if not (np.abs(draft.total) <= LARGEST).all():
        ledger.stop("infinite-total", "some totals are too large once they are converted.")
    findings = stop_if_bad(ledger, drop_bad=asked.drop_bad)
    table = _make_table(draft, *clock.label(draft.start, draft.end))
    return Imported(table, findings, tuple(notes), draft.freq, clock.zone or asked.tz, source)


def stop_if_bad(ledger: Ledger, *, drop_bad: bool) -> Findings:
    """What was found, raised when it cannot be gone on with."""
    findings = ledger.close()
    if ledger.fatal or (findings.errors and not drop_bad):
        raise ReadingsError(findings)
    return findings


def _make_table(draft: Draft, start: pa.Array, end: pa.Array) -> pa.Table:
    columns = {
        "series": draft.series,
        "start": start,
        "end": end,
        "total": pa.array(draft.total + 0.0),  # no negative zeros
    }
    if draft.estimated is not None:
        words = pa.array(["actual", "estimated"])
        columns["quality"] = words.take(pa.array(draft.estimated.astype(np.int8)))
    if draft.unit is not None:
        columns["unit"] = pa.repeat(pa.scalar(draft.unit, pa.string()), len(draft.total))
    return pa.table(columns).sort_by(
        [("series", "ascending"), ("start", "ascending"), ("end", "ascending")]
    )
