"""Single records of NEM12 and NEM13 files."""

from __future__ import annotations

import csv
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from unsum.calendar import HOUR, MINUTE, moment_of
from unsum.errors import ParameterError
from unsum.tables.importers.units import POWER, find_unit

AHEAD = 10 * HOUR  # the market's time, before UTC
MINUTES = 24 * 60
ESTIMATES = ("E", "F", "S")  # forward estimates, final and other substitutes
QUALITIES = ("A", "N", "V", *ESTIMATES)
_NONE = np.empty(0)


@dataclass
class Stream:
    """What a 200 record says of the records after it."""

    series: str = ""
    unit: str | None = None
    minutes: int = 0
    problem: str = "no 200 record before it"

    @classmethod
    def of(cls, fields: list[str]) -> Stream:
        if len(fields) < 9:
            return cls(problem=f"the 200 record before it has {len(fields)} fields, not 9 or more")
        nmi, suffix, unit, length = (fields[i].strip() for i in (1, 4, 7, 8))
        minutes = int(length) if length.isascii() and length.isdigit() and len(length) < 5 else 0
        if not nmi:
            return cls(problem="the 200 record before it has no NMI")
        if minutes == 0 or MINUTES % minutes:
            return cls(problem=f"the 200 record before it has intervals of {length[:20]!r} minutes")
        return cls(name_stream(nmi, suffix), find_unit(unit) or None, minutes, "")


@dataclass
class Record:
    """Values of consecutive intervals, from a line of the file."""

    line: int
    series: str = ""
    unit: str | None = None
    start: int = 0
    step: int = 0
    values: np.ndarray = field(default_factory=lambda: _NONE)  # NaN: no value
    estimated: np.ndarray = field(default_factory=lambda: _NONE.astype(bool))
    open: np.ndarray = field(default_factory=lambda: _NONE.astype(bool))  # quality is told later
    problem: str = ""

    def starts(self) -> np.ndarray:
        return self.start + self.step * np.arange(len(self.values))

    @property
    def hours(self) -> float:
        """What makes energy of the values: the hours of an interval, for power alone."""
        return self.step / HOUR if self.unit in POWER else 1.0

    @property
    def untold(self) -> bool:
        return bool(self.open.any())

    def describe(self, fields: list[str]) -> None:
        """A 400 record: the quality of some of the values."""
        try:
            first, last = int(fields[1]), int(fields[2])
            quality = fields[3].strip()[:1].upper()
        except (IndexError, ValueError):
            first, last, quality = 0, 0, ""
        if self.problem:
            return
        if not 1 <= first <= last <= len(self.values) or quality not in QUALITIES:
            self.problem = f"the 400 record after it cannot be read: {','.join(fields)[:40]!r}"
            return
        self.mark(slice(first - 1, last), quality)

    def mark(self, part: slice, quality: str) -> None:
        """Give some of the values a quality."""
        self.open[part] = quality == "V"
        self.estimated[part] = quality in ESTIMATES
        if quality == "N":
            self.values[part] = np.nan


def open_day(line: int, fields: list[str], stream: Stream) -> Record:
    """A 300 record: a day of values, then their quality."""
    if stream.problem:
        return Record(line, problem=stream.problem)
    n_values = MINUTES // stream.minutes
    if len(fields) < n_values + 3:
        return Record(
            line, problem=f"{max(len(fields) - 3, 0)} values and a quality, not {n_values}"
        )
    day = read_moment(fields[1], "%Y%m%d")
    if day is None:
        return Record(line, problem=f"{fields[1][:20]!r} is no date such as 20240131")
    values = read_numbers(fields[2 : n_values + 2])
    if isinstance(values, str):
        return Record(line, problem=f"{values[:20]!r} is no value")
    quality = fields[n_values + 2].strip()[:1].upper()
    if quality not in QUALITIES:
        return Record(line, problem=f"{fields[n_values + 2][:20]!r} is no quality")
    record = Record(
        line, stream.series, stream.unit, day, stream.minutes * MINUTE, values,
        np.zeros(n_values, bool), np.zeros(n_values, bool),
    )  # fmt: skip
    record.mark(slice(None), quality)
    return record


def read_reads(line: int, fields: list[str]) -> Record:
    """A 250 record: the total between two reads of a register."""
    if len(fields) < 20:
        return Record(line, problem=f"{len(fields)} fields, not 20 or more")
    start, end = (read_moment(fields[i], "%Y%m%d%H%M%S") for i in (9, 14))
    values = read_numbers([fields[18]])
    if start is None or end is None:
        text = fields[9 if start is None else 14]
        return Record(line, problem=f"{text[:20]!r} is no time such as 20240131000000")
    if not start < end:
        return Record(line, problem=f"its reads, {fields[9]} and {fields[14]}, are not in order")
    if isinstance(values, str):
        return Record(line, problem=f"{values[:20]!r} is no quantity")
    if not fields[1].strip():
        return Record(line, problem="it has no NMI")
    qualities = [fields[i].strip()[:1].upper() for i in (10, 15)]
    if "N" in qualities:
        values = np.array([np.nan])
    return Record(
        line, name_stream(fields[1].strip(), fields[4].strip()), find_unit(fields[19]) or None,
        start, end - start, values,
        np.array([any(each in ESTIMATES for each in qualities)]),
        np.array([not all(each in QUALITIES for each in qualities)]),
    )  # fmt: skip


def name_stream(nmi: str, suffix: str) -> str:
    return f"{nmi}/{suffix}" if suffix else nmi


def split_fields(line: str) -> list[str]:
    """The fields of a record, the first without blanks around it."""
    fields = line.split(",")
    if '"' in line:
        with suppress(csv.Error):  # what is too long is named as unreadable
            fields = next(csv.reader([line]), [])
    if fields:
        fields[0] = fields[0].strip()
    return fields


def read_moment(text: str, layout: str) -> int | None:
    """A time of the market as a moment in UTC."""
    text = text.strip()
    if not (text.isascii() and text.isdigit()):
        return None
    try:
        return moment_of(datetime.strptime(text, layout)) - AHEAD
    except (ValueError, ParameterError):
        return None


def read_numbers(fields: list[str]) -> np.ndarray | str:
    """Numbers, NaN where a field is blank; or the first field that is no finite number."""
    try:
        values = np.array(fields, np.float64)
    except ValueError:
        values = np.full(len(fields), np.nan)
        for i, text in enumerate(fields):
            try:
                values[i] = float(text) if text.strip() else np.nan
            except ValueError:
                return text
            if text.strip() and not np.isfinite(values[i]):
                return text
        return values
    bad = np.flatnonzero(~np.isfinite(values))
    return fields[bad[0]] if len(bad) else values
