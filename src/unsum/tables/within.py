"""Readings of tables larger than memory: judged part by part, and kept on disk."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unsum.calendar import Calendar
from unsum.errors import ParameterError, TableError
from unsum.findings import MAX_DETAILS, Finding, Findings
from unsum.readings import Readings
from unsum.tables.cells import judge_malformed
from unsum.tables.intake import Intake, find_absent, take_in
from unsum.tables.ledger import Ledger, count
from unsum.tables.rows import OPTIONAL, REQUIRED, Options
from unsum.tables.source import Source, open_source
from unsum.tables.spilling import SpilledSource, divide_names, spill
from unsum.tables.store import StoreWriter, open_store

BYTES_OF_ROW = 160  # that judging a table takes, for each of its rows
MOST_PARTS = 200  # each of them an open file while the table is divided
SHARE = 0.5  # of the memory, for judging
MEMORY = 4 << 30  # where the machine does not tell how much is free
FATAL = {"range-too-long", "differing-offsets", "unclosed-quote"}
OF_PANEL = ("no-weekly-shape", "no-daily-shape", "hidden-rhythm", "ends-look-inclusive")

Say = Callable[[str], None]


def free_memory() -> int:
    """Bytes that programs may still take."""
    path = Path("/proc/meminfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return MEMORY


def count_parts(source: Source, memory: int) -> int:
    """Into how many parts a table must be cut so that each can be judged in memory."""
    needed = -(-source.count_rows() * BYTES_OF_ROW // max(1, int(SHARE * memory)))
    return int(np.clip(needed, 1, MOST_PARTS))


def take_in_within(
    table: Any, options: Options, memory: int, folder: Path, say: Say = lambda _: None
) -> Intake:
    """Judge a table of any size; `folder` holds what does not fit into memory.

    What comes out is what `take_in` would give; findings of several parts are told together.
    """
    source = open_source(table)
    n_parts = count_parts(source, memory)
    if n_parts == 1 or find_absent(source, options):
        return take_in(source, options)
    say(f"dividing {source.label} into {n_parts:,} parts, of which each fits into memory")
    series = options.column("series")
    columns = [options.column(role) for role in REQUIRED]
    columns += [options.column(role) for role in OPTIONAL if options.column(role) in source.columns]
    cuts = divide_names(source, series, n_parts)
    spilled = folder / "spilled"
    spilled.mkdir(parents=True, exist_ok=True)
    try:
        parts = spill(source, list(dict.fromkeys(columns)), series, cuts, spilled)
        return _join(source, parts, options, folder, say)
    finally:
        shutil.rmtree(spilled, ignore_errors=True)


def _join(
    source: Source, parts: list[SpilledSource], options: Options, folder: Path, say: Say
) -> Intake:
    """Judge the parts, find the calendar of all, and write the readings one after the other."""
    judged: list[Findings] = []
    calendars: list[Calendar | None] = []
    for k, part in enumerate(parts):
        say(f"judging part {k + 1} of {len(parts)}")
        intake = take_in(part, options)
        judged.append(intake.findings)
        usable = intake.usable
        calendars.append(None if usable is None else usable.calendar)
        if usable is not None:
            _refuse_further(usable)
            writer = StoreWriter(folder / f"judged-{k:05}")
            writer.append(usable)
            writer.close(usable.calendar)
    ledger = Ledger(source, 0)
    judge_malformed(ledger)
    findings = merge_findings([*judged, ledger.close()], source, len(parts))
    known = [calendar for calendar in calendars if calendar is not None]
    if not known or ledger.fatal or any(set(found.codes) & FATAL for found in judged):
        return Intake(findings, source, None)
    calendar = _calendar_of_all(known, options)
    writer = StoreWriter(folder / "readings")
    for k, part in enumerate(parts):
        if calendars[k] is not None:
            writer.append(_place(open_store(folder / f"judged-{k:05}"), part, calendar, options))
            shutil.rmtree(folder / f"judged-{k:05}")
    writer.close(calendar, source.backend)
    return Intake(findings, source, open_store(folder / "readings", findings))


def _refuse_further(part: Readings) -> None:
    if part.further is not None:
        raise TableError(
            "readings that interleave with others (overlaps='solve', true_up=True) are solved in "
            "memory; allow more of it (--memory), or recover fewer series at once."
        )


def _calendar_of_all(known: list[Calendar], options: Options) -> Calendar:
    zones = sorted({str(calendar.tz) for calendar in known})
    if len(zones) > 1:
        raise TableError(
            f"timestamps have differing offsets from UTC ({', '.join(zones)}) and no time zone is "
            "given; say which zone the periods are in: tz='Europe/Paris', or --tz Europe/Paris."
        )
    first = min(int(calendar.edges[0]) for calendar in known)
    last = max(int(calendar.edges[-1]) for calendar in known)
    return Calendar.covering(
        options.frequency, known[0].tz, first, last, anchor=int(known[0].walls[0])
    )


def _place(judged: Readings, part: SpilledSource, calendar: Calendar, options: Options) -> Readings:
    """The readings of a part on the calendar of all."""
    try:
        return judged.on(calendar)
    except ParameterError:  # its own steps begin on other days
        again = replace(
            options, calendar=calendar, tz=calendar.tz, range_start=None, range_end=None
        )
        found = take_in(part, again).usable
        if found is None:
            raise TableError(
                f"{part.label}: parts of the table begin their periods of {options.freq!r} on "
                "different days; say on which, such as freq='W-MON' (--freq W-MON)."
            ) from None
        return found


def merge_findings(several: list[Findings], source: Source, n_parts: int) -> Findings:
    """Findings of parts of a table as findings of the table."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in (finding for found in several for finding in found):
        kinds.setdefault(_kind(finding), []).append(finding)
    for kind in [*kinds]:  # what holds of some parts only does not hold of the table
        if kind[0] in (*OF_PANEL, "empty-table") and len(kinds[kind]) < n_parts:
            del kinds[kind]
    ranks = {"error": 0, "warning": 1, "note": 2}
    order = sorted(kinds, key=lambda kind: ranks[kinds[kind][0].severity])
    place = {kind: k for k, kind in enumerate(order)}
    rows = np.concatenate([found.set_aside_rows for found in several])
    reasons = np.concatenate(
        [
            np.array([place.get(_kind(finding), -1) for finding in found])[found.set_aside_reasons]
            for found in several
            if len(found)
        ]
        or [np.empty(0, np.int16)]
    ).astype(np.int16)
    by_row = np.argsort(rows, kind="stable")
    return Findings(
        items=tuple(_merge(kinds[kind]) for kind in order),
        rows_read=sum(found.rows_read for found in several),
        set_aside_rows=rows[by_row],
        set_aside_reasons=reasons[by_row],
        row_origin=source.row_origin,
        total_read=sum(found.total_read or 0.0 for found in several),
        total_set_aside=sum(found.total_set_aside or 0.0 for found in several),
    )


def _kind(finding: Finding) -> tuple[str, str]:
    """Findings that differ in numbers only are of one kind."""
    return finding.code, re.sub(r"[\d,]+", "#", finding.sentence).replace("rows", "row")


def _merge(same: list[Finding]) -> Finding:
    rows = np.sort(np.concatenate([finding.rows for finding in same]))
    if len(same) == 1 or not len(rows):
        return same[0]
    sentence = (
        f"{count(len(rows), 'row')} in {len(same)} parts of the table; in the first of them: "
    )
    series = tuple(name for finding in same for name in finding.series)
    details = tuple(detail for finding in same for detail in finding.details)[:MAX_DETAILS]
    return Finding(same[0].code, sentence + same[0].sentence, rows, series, details)
