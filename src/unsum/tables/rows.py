"""Raw columns to arrays: the rows of a table of readings, parsed but not yet judged."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.calendar import Calendar, Frequency, find_zone, offset_name
from unsum.errors import ParameterError, require_choice
from unsum.findings import MAX_DETAILS
from unsum.tables.moments import NAIVE, MomentParser, Moments
from unsum.tables.source import Source, cell_text

REQUIRED = ("series", "start", "end", "total")
OPTIONAL = ("quality", "active_from", "active_to")
MISSING, UNREADABLE, DATE_ONLY = 1, 2, 4
ACTUAL, ESTIMATED, UNKNOWN = 0, 1, 2

_QUALITIES = {
    "": ACTUAL, "actual": ACTUAL, "a": ACTUAL, "measured": ACTUAL, "read": ACTUAL, "valid": ACTUAL,
    "estimated": ESTIMATED, "estimate": ESTIMATED, "e": ESTIMATED,
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.IGNORECASE)
_NO_TOTAL = pa.array(["", "nan", "NaN", "NAN", "NA", "N/A", "null", "NULL", "None", "-nan"])


@dataclass(frozen=True)
class Options:
    """How a table is to be read; the parameters of `read_readings`, checked."""

    freq: str = "D"
    tz: str | None = None
    end: str = "exclusive"
    snap: str = "error"
    overlaps: str = "error"
    range_start: str | date | int | None = None
    range_end: str | date | int | None = None
    columns: Mapping[str, str] | None = None
    date_format: str | None = None
    decimal: str = "."
    negatives: str = "aside"
    true_up: bool = False
    with_totals: bool = True  # False reads intervals alone, as if every total were zero
    calendar: Calendar | None = None  # the one that rows are placed on, if it is fixed

    def __post_init__(self) -> None:
        Frequency.parse(self.freq)
        require_choice("end", self.end, ("exclusive", "inclusive"))
        require_choice("snap", self.snap, ("error", "nearest"))
        require_choice("overlaps", self.overlaps, ("error", "solve"))
        require_choice("negatives", self.negatives, ("aside", "net"))
        require_choice("decimal", self.decimal, (".", ","))
        if self.tz is not None:
            object.__setattr__(self, "tz", str(self.tz))  # a ZoneInfo gives its name
            find_zone(str(self.tz))
        if self.date_format is not None:
            _check_format(self.date_format)
        for name in ("range_start", "range_end"):
            given = getattr(self, name)
            if isinstance(given, int | np.integer) != self.frequency.numbered and given is not None:
                kind = "a period number" if self.frequency.numbered else "a date"
                raise ParameterError(f"{name} must be {kind} with freq {self.freq!r}.")
        for role in self.columns or {}:
            require_choice("columns: a key", role, REQUIRED + OPTIONAL)

    @classmethod
    def on(cls, calendar: Calendar, **more: Any) -> Options:
        """For a table that belongs on a calendar."""
        return cls(calendar.frequency.text, calendar.tz, calendar=calendar, **more)

    @property
    def frequency(self) -> Frequency:
        return Frequency.parse(self.freq)

    def column(self, role: str) -> str:
        return (self.columns or {}).get(role, role)


def _check_format(date_format: str) -> None:
    try:
        sample = datetime(2001, 12, 28, 14, 45).strftime(date_format)
        date = datetime.strptime(sample, date_format).date()
    except (ValueError, re.error):
        date = None
    if date is None or (date.year, date.month, date.day) != (2001, 12, 28):
        raise ParameterError(
            f"date_format {date_format!r} does not give a whole date; use one such as '%d/%m/%Y'."
        )


@dataclass
class MomentColumn:
    """A whole column of moments. `offset` is None when no moment has one."""

    wall: np.ndarray
    flags: np.ndarray
    offset: np.ndarray | None = None
    tz: str | None = None
    numbered: bool = False

    def has(self, flag: int) -> np.ndarray:
        return (self.flags & flag) > 0

    def text(self, position: int) -> str:
        """A moment as it stood in the table (in UTC, where its column has a time zone)."""
        wall = int(self.wall[position])
        if self.numbered:
            return str(wall)
        text = str(np.datetime64(wall, "us").astype("datetime64[s]"))
        if self.offset is None or self.offset[position] == NAIVE:
            return text.removesuffix("T00:00:00")
        return f"{text} {offset_name(int(self.offset[position]))}"


@dataclass
class Rows:
    """Parsed rows. Series are numbered in the order of their sorted names; -1 is missing."""

    names: pa.Array
    series: np.ndarray
    start: MomentColumn
    end: MomentColumn
    total: np.ndarray
    total_flags: np.ndarray
    quality: np.ndarray | None = None
    active_from: MomentColumn | None = None
    active_to: MomentColumn | None = None
    samples: dict[str, dict[int, str]] = field(default_factory=dict)  # column -> position -> text

    def __len__(self) -> int:
        return len(self.total)

    def name(self, position: int) -> object:
        return self.names[int(self.series[position])].as_py()


def read_rows(source: Source, options: Options) -> Rows:
    """Stream the columns that matter into compact arrays."""
    roles = list(REQUIRED if options.with_totals else REQUIRED[:-1])
    roles += [role for role in OPTIONAL if options.column(role) in source.columns]
    parsers = {
        role: MomentParser(
            options.date_format,
            numbered=options.frequency.numbered,
            clip=role.startswith("active"),  # 9999-12-31 is a usual way to say for ever
        )
        for role in roles
        if role in ("start", "end", "active_from", "active_to")
    }
    series: list[pa.Array] = []
    parts: dict[str, list[Any]] = defaultdict(list)
    samples: dict[str, dict[int, str]] = defaultdict(dict)
    position = 0
    for batch in source.batches(list(dict.fromkeys(options.column(role) for role in roles))):
        series.append(_encode_names(plain_column(batch.column(options.column("series")))))
        for role in roles[1:]:
            column = plain_column(batch.column(options.column(role)))
            if role in parsers:
                moments = parsers[role].parse(column)
                parts[role].append(_compact(moments, numbered=options.frequency.numbered))
                bad = moments.unreadable
            elif role == "total":
                values, flags = parse_totals(column, options.decimal)
                parts[role].append((values, flags))
                bad = (flags & UNREADABLE) > 0
            else:
                parts[role].append(_parse_quality(column))
                bad = parts[role][-1] == UNKNOWN
            for i in np.flatnonzero(bad)[: MAX_DETAILS - len(samples[role])]:
                samples[role][position + int(i)] = cell_text(column, int(i))
        position += len(batch)
    names, codes = _unify(series)
    series.clear()
    pa.default_memory_pool().release_unused()
    totals = parts.pop("total", [])
    if not options.with_totals:
        totals = [(np.zeros(position), np.zeros(position, np.uint8))]
    rows = Rows(
        names=names,
        series=codes,
        start=_join(parts.pop("start", [])),
        end=_join(parts.pop("end", [])),
        total=np.concatenate([values for values, _ in totals] or [np.empty(0)]),
        total_flags=np.concatenate([flags for _, flags in totals] or [np.empty(0, np.uint8)]),
        samples=dict(samples),
    )
    if "quality" in parts:
        rows.quality = np.concatenate(parts["quality"])
    for role in ("active_from", "active_to"):
        if role in parts:
            setattr(rows, role, _join(parts.pop(role)))
    return rows


def _compact(moments: Moments, *, numbered: bool) -> MomentColumn:
    flags = (
        moments.missing * np.uint8(MISSING)
        + moments.unreadable * np.uint8(UNREADABLE)
        + moments.date_only * np.uint8(DATE_ONLY)
    ).astype(np.uint8)
    offset = None if (moments.offset == NAIVE).all() else moments.offset
    return MomentColumn(moments.wall, flags, offset, moments.tz, numbered)


def _join(parts: list[MomentColumn]) -> MomentColumn:
    wall = np.concatenate([part.wall for part in parts] or [np.empty(0, np.int64)])
    flags = np.concatenate([part.flags for part in parts] or [np.empty(0, np.uint8)])
    offset = None
    if any(part.offset is not None for part in parts):
        filled = (
            np.full(len(part.wall), NAIVE, np.int32) if part.offset is None else part.offset
            for part in parts
        )
        offset = np.concatenate(list(filled))
    tz = next((part.tz for part in parts if part.tz), None)
    return MomentColumn(wall, flags, offset, tz, numbered=any(part.numbered for part in parts))


def plain_column(column: pa.Array) -> pa.Array:
    """A column without encoding, and text of any kind as plain strings."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column


def _encode_names(column: pa.Array) -> pa.Array:
    if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        column = pc.replace_with_mask(
            column, pc.fill_null(pc.equal(column, ""), False), pa.scalar(None, pa.string())
        )
    return pc.dictionary_encode(column)


def _unify(series: list[pa.Array]) -> tuple[pa.Array, np.ndarray]:
    """One sorted dictionary of names for all batches, and every row's place in it."""
    if not series:
        return pa.array([], pa.string()), np.empty(0, np.int32)
    encoded = pa.chunked_array(series).unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    rank = np.empty(len(order) + 1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    rank[-1] = -1
    codes = np.asarray(pc.fill_null(encoded.indices, -1))
    return encoded.dictionary.take(pa.array(order)), rank[codes]


def parse_totals(column: pa.Array, decimal: str = ".") -> tuple[np.ndarray, np.ndarray]:
    """Totals as floats, and flags of those missing or unreadable (their value is NaN)."""
    if pa.types.is_string(column.type):
        return _parse_total_texts(column, decimal)
    flags = np.asarray(column.is_null()).astype(np.uint8) * np.uint8(MISSING)
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = np.array(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan))
        flags[np.isnan(values)] = MISSING
        return values, flags
    flags[flags == 0] = 0 if pa.types.is_null(kind) else UNREADABLE
    return np.full(len(column), np.nan), flags


def _parse_total_texts(column: pa.Array, decimal: str) -> tuple[np.ndarray, np.ndarray]:
    text = pc.utf8_trim_whitespace(column)
    absent = pc.fill_null(pc.is_in(text, value_set=_NO_TOTAL.cast(text.type)), True)
    text = pc.replace_with_mask(text, absent, pa.scalar("nan", text.type))
    if decimal == ",":  # a point would be a thousands separator, or a mistake
        text = pc.replace_substring(text, ".", "?")
        text = pc.replace_substring(text, ",", ".")
    flags = np.asarray(absent).astype(np.uint8) * np.uint8(MISSING)
    try:
        values = np.array(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        values = np.full(len(column), np.nan)
        for i, item in enumerate(text.to_pylist()):
            if _NUMBER.fullmatch(item):
                values[i] = float(item)
            elif not flags[i]:
                flags[i] = UNREADABLE
    return values, flags


def _parse_quality(column: pa.Array) -> np.ndarray:
    try:
        encoded = pc.dictionary_encode(column.cast(pa.string()))
    except pa.ArrowException:
        raise ParameterError("the quality column must hold text such as 'actual'.") from None
    known = [
        _QUALITIES.get(str(text).strip().lower(), UNKNOWN)
        for text in encoded.dictionary.to_pylist()
    ]
    places = np.asarray(pc.fill_null(encoded.indices, -1))
    qualities: np.ndarray = np.array([*known, ACTUAL], np.uint8)[places]
    return qualities
