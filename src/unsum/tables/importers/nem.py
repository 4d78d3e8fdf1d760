"""Files of the Australian market: NEM12, values by interval, and NEM13, accumulated reads.

Records by their first field. NEM12: 200 says whose values follow and in which unit, 300 holds a day
of them, 400 the quality of some of them. NEM13: 250 is a total between two reads. 100 opens a file
and 900 closes it. Times are those of the market, +10:00 all year.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from unsum.calendar import HOUR
from unsum.errors import TableError
from unsum.findings import MAX_DETAILS
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.clock import Clock
from unsum.tables.importers.imported import Draft, Imported, finish
from unsum.tables.importers.joined import find_row
from unsum.tables.importers.nem_records import Record, Stream, open_day, read_reads, split_fields
from unsum.tables.importers.records import LineSource, join_records, read_lines
from unsum.tables.importers.repeats import settle_repeats
from unsum.tables.importers.units import POWER, find_unit, multiply, settle_units
from unsum.tables.ledger import Ledger, count

MARKET = Clock("+10:00")


@dataclass
class _File:
    """The records of a file that hold totals, and whether it was closed."""

    path: Path
    records: list[Record] = field(default_factory=list)
    closed: bool = False
    opened: bool = True


def import_nem12(asked: Asked) -> Imported:
    """Every NMI and suffix is a series; every interval a reading."""
    return _import(asked, "NEM12")


def import_nem13(asked: Asked) -> Imported:
    """Every NMI and suffix is a series; every pair of reads a reading."""
    return _import(asked, "NEM13")


def _import(asked: Asked, version: str) -> Imported:
    asked.refuse("columns", "name", "tz", "date_format")
    files = [_read(path, version) for path in asked.paths()]
    records = [record for each in files for record in each.records]
    sources = [
        LineSource(each.path, np.array([record.line for record in each.records], np.int64))
        for each in files
    ]
    ledger = Ledger(join_records(sources, [len(each.records) for each in files]), len(records))
    notes = ["Times are those of the market, +10:00 all year.", *_judge_frames(files, ledger)]
    _judge_records(records, ledger)
    draft = _draft(asked, records, ledger, notes)
    return finish(asked, draft, MARKET, ledger, notes)


def _read(path: Path, version: str) -> _File:
    """The records of a file, each understood or with its problem."""
    file, stream, begun = _File(path), Stream(), False
    latest: Record | None = None
    for number, line in enumerate(read_lines(path), start=1):
        fields = split_fields(line)
        if not any(fields):
            continue
        kind = fields[0]
        if not begun or kind == "100":
            file.opened &= kind == "100"
            _check_version(path, number, fields, version)
            begun = True
        if kind == "900":
            file.closed = True
        elif kind == "200" and version == "NEM12":
            stream, latest = Stream.of(fields), None
        elif kind == "300" and version == "NEM12":
            latest = open_day(number, fields, stream)
            file.records.append(latest)
        elif kind == "400" and latest is not None:
            latest.describe(fields)
        elif kind == "250" and version == "NEM13":
            file.records.append(read_reads(number, fields))
        elif kind not in ("100", "500", "550"):
            file.records.append(
                Record(number, problem=f"{kind[:20]!r} is no record of {version}, or out of place")
            )
    if not begun:
        raise TableError(f"{path} is empty; a {version} file begins with record 100.")
    return file


def _check_version(path: Path, number: int, fields: list[str], version: str) -> None:
    first = {"NEM12": "200", "NEM13": "250"}[version]
    found = fields[1].strip().upper() if len(fields) > 1 else ""
    if fields[0] == "100" and found in ("NEM12", "NEM13") and found != version:
        raise TableError(f"{path} is a {found} file: import it as {found.lower()}.")
    if (fields[0] == "100" and found != version) or fields[0] not in ("100", first):
        raise TableError(
            f"{path} is no {version} file: line {number} begins with "
            f"{','.join(fields)[:40]!r}, not with '100,{version}'."
        )


def _judge_frames(files: list[_File], ledger: Ledger) -> list[str]:
    """Files that were not closed may lack records at their end; one without head is said."""
    cut = [each.path.name for each in files if not each.closed]
    if cut:
        ledger.add(
            "cut-off",
            f"{count(len(cut), 'file')} without an end record (900), so that something may be "
            "missing; fetch them again.",
            details=cut,
        )
    return [f"{each.path.name} has no head record (100)." for each in files if not each.opened]


def _judge_records(records: list[Record], ledger: Ledger) -> None:
    """Records that cannot be used, values that are not there, and qualities that are not told."""
    bad = [i for i, record in enumerate(records) if record.problem]
    if bad:
        where = np.array(bad)
        ledger.add(
            "malformed-row",
            f"{count(len(bad), 'record')} that cannot be read; correct them, or fetch the file "
            "again.",
            where,
            details=(
                f"{find_row(ledger.source, i)}: {records[i].problem}" for i in bad[:MAX_DETAILS]
            ),
            set_aside=where,
        )
    lacking = [i for i, record in enumerate(records) if np.isnan(record.values).any()]
    if lacking:
        n_values = sum(int(np.isnan(records[i].values).sum()) for i in lacking)
        empty = [i for i in lacking if np.isnan(records[i].values).all()]
        ledger.add(
            "no-value",
            f"{count(n_values, 'interval')} without a value.",
            np.array(lacking),
            set_aside=np.array(empty, np.int64),
        )
    untold = [i for i, record in enumerate(records) if record.untold and not record.problem]
    if untold:
        ledger.add(
            "unknown-quality",
            f"{count(len(untold), 'record')} that do not tell the quality of all values.",
            np.array(untold),
        )


def _draft(asked: Asked, records: list[Record], ledger: Ledger, notes: list[str]) -> Draft:
    names = sorted({record.series for record in records})
    places = {name: place for place, name in enumerate(names)}
    told = None if asked.unit is None else find_unit(asked.unit)
    units = {unit: i for i, unit in enumerate(dict.fromkeys(each.unit or told for each in records))}
    codes = np.array([units[record.unit or told] for record in records], np.int64)
    scale = settle_units(
        codes, [POWER.get(unit or "", unit) for unit in units], ledger, asked.to, asked.calorific
    )
    notes.extend(scale.notes)
    used = np.flatnonzero(ledger.in_use).tolist()
    if any(records[i].unit in POWER for i in used):
        notes.append("Power became energy: multiplied by the hours of each interval.")
    sizes = [len(records[i].values) for i in used]
    rows = np.repeat(np.array(used, np.int64), sizes)
    owner = np.repeat(np.array([places[records[i].series] for i in used], np.int64), sizes)
    empty = [np.empty(0)]
    start = np.concatenate([*empty, *(records[i].starts() for i in used)]).astype(np.int64)
    hours = np.repeat(np.array([records[i].hours for i in used]), sizes)
    values = np.concatenate([*empty, *(records[i].values for i in used)])
    total = multiply(values * hours, scale.factor[rows])
    step = np.repeat(np.array([records[i].step for i in used], np.int64), sizes)
    soft = np.concatenate([*empty, *(records[i].estimated for i in used)]) > 0
    there = np.flatnonzero(~np.isnan(total))
    alone = settle_repeats(
        ledger, rows[there], owner[there], start[there], total[there],
        lambda i: f"{names[owner[there[i]]]!r}, {MARKET.text(start[there[i]])}",
        remedy="keep the newest",
    )  # fmt: skip
    kept = there[alone]
    kept = kept[ledger.in_use[rows[kept]]]
    lengths = np.unique(step[kept])
    minutes = int(lengths[0]) // 60_000_000 if len(lengths) == 1 else 0
    return Draft(
        series=pa.array(names, pa.string()).take(pa.array(owner[kept])),
        start=start[kept],
        end=start[kept] + step[kept],
        total=total[kept],
        estimated=soft[kept],
        unit=scale.unit,
        freq=f"{minutes}min" if 0 < minutes <= HOUR // 60_000_000 else None,
    )
