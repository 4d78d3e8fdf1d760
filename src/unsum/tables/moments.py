"""Columns of dates in any dress: text, dates, timestamps, epoch numbers, to wall-clock moments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.calendar import DAY, EARLIEST, LATEST

NAIVE = np.int32(-(2**31))  # the offset of a moment that has none
_EPOCH = datetime(1970, 1, 1)


@dataclass
class Moments:
    """A column of moments: wall clock in microseconds, offset from UTC in seconds or NAIVE."""

    wall: np.ndarray
    offset: np.ndarray
    date_only: np.ndarray
    missing: np.ndarray
    unreadable: np.ndarray
    tz: str | None = None  # the zone of the column itself, when its type has one


class MomentParser:
    """Parses columns batch by batch and remembers the texts it has met."""

    def __init__(
        self, date_format: str | None = None, *, numbered: bool = False, clip: bool = False
    ) -> None:
        self.date_format = date_format
        self.numbered = numbered
        self.clip = clip  # take dates outside the known years as the first or last of them
        self._known: dict[Any, tuple[int, int, bool] | None] = {}

    def parse(self, column: pa.Array) -> Moments:
        kind = column.type
        n = len(column)
        missing = np.asarray(column.is_null())
        naive = np.full(n, NAIVE, np.int32)
        if pa.types.is_null(kind):
            nothing = np.zeros(n, np.int64)
            return Moments(nothing, naive, missing, missing, np.zeros(n, bool))
        if self.numbered:
            return self._parse_numbers(column, missing, naive)
        if pa.types.is_date(kind):
            days = _integers(column.cast(pa.date32()).cast(pa.int32()))
            wall = np.clip(days, -(10**7), 10**7) * DAY
            return self._within_years(wall, naive, np.ones(n, bool), missing)
        if pa.types.is_timestamp(kind):
            wall = _integers(column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()))
            offset = naive if kind.tz is None else np.zeros(n, np.int32)
            return self._within_years(wall, offset, np.zeros(n, bool), missing, kind.tz)
        return self._parse_uniques(column, missing)

    def _parse_numbers(self, column: pa.Array, missing: np.ndarray, naive: np.ndarray) -> Moments:
        """Period numbers: whole numbers, or text of them."""
        n = len(column)
        wall, bad = np.zeros(n, np.int64), np.zeros(n, bool)
        for i, value in enumerate(column.to_pylist()):
            try:
                wall[i] = int(value) if value not in (None, "") else 0
                bad[i] = value not in (None, "") and float(value) != wall[i]
            except (ValueError, TypeError, OverflowError):
                bad[i] = True
            missing[i] |= value == ""
        return Moments(wall, naive, np.ones(n, bool), missing, bad)

    def _within_years(
        self,
        wall: np.ndarray,
        offset: np.ndarray,
        date_only: np.ndarray,
        missing: np.ndarray,
        tz: str | None = None,
    ) -> Moments:
        if self.clip:
            wall = np.clip(wall, EARLIEST, LATEST - DAY)
        unreadable = ~missing & ((wall < EARLIEST) | (wall >= LATEST))
        return Moments(np.where(unreadable, 0, wall), offset, date_only, missing, unreadable, tz)

    def _parse_uniques(self, column: pa.Array, missing: np.ndarray) -> Moments:
        """Text and numbers repeat a lot in tables: each distinct value is parsed once."""
        encoded = pc.dictionary_encode(column)
        codes = _integers(encoded.indices)
        parsed = []
        for value in encoded.dictionary.to_pylist():
            if value not in self._known:
                self._known[value] = self._parse_one(value)
            parsed.append(self._known[value])
        blank = np.array([str(value).strip() == "" for value in encoded.dictionary.to_pylist()])
        table = np.array([one or (0, NAIVE, False) for one in parsed], np.int64).reshape(-1, 3)
        unreadable = np.array([one is None for one in parsed], bool)
        if not len(table):
            table, unreadable, blank = np.zeros((1, 3), np.int64), np.zeros(1, bool), np.ones(1)
        missing = missing | blank.astype(bool)[codes]
        return Moments(
            wall=table[codes, 0],
            offset=table[codes, 1].astype(np.int32),
            date_only=table[codes, 2].astype(bool),
            missing=missing,
            unreadable=unreadable[codes] & ~missing,
        )

    def _parse_one(self, value: Any) -> tuple[int, int, bool] | None:
        text = str(value).strip()
        if isinstance(value, float) and value.is_integer():
            text = str(int(value))
        try:
            if self.date_format is not None:
                moment = datetime.strptime(text, self.date_format)
                date_only = "%H" not in self.date_format and "%I" not in self.date_format
            elif text.isdigit() and len(text) != 8:
                return _from_epoch(int(text))
            else:
                moment = datetime.fromisoformat(text)
                date_only = len(text) <= 10
        except (ValueError, OverflowError):
            return None
        offset = moment.utcoffset()
        wall = _microseconds(moment)
        if self.clip:
            wall = min(max(wall, EARLIEST), LATEST - DAY)
        if not EARLIEST <= wall < LATEST:
            return None
        seconds = int(NAIVE) if offset is None else int(offset.total_seconds())
        return wall, seconds, date_only


def _from_epoch(number: int) -> tuple[int, int, bool] | None:
    """Seconds, milli-, micro- or nanoseconds since 1970, told apart by their size.

    Numbers below 1e8 (before March 1973) are not taken for dates.
    """
    for limit, factor in ((10**11, 1_000_000), (10**14, 1_000), (10**17, 1)):
        if 10**8 <= number < limit:
            moment = number * factor
            break
    else:
        moment = number // 1_000
    return (moment, 0, False) if 10**14 <= moment < LATEST else None


def _microseconds(moment: datetime) -> int:
    delta = moment.replace(tzinfo=None) - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _integers(column: pa.Array) -> np.ndarray:
    """An integer column as int64, nulls as zero."""
    return np.asarray(pc.fill_null(column, 0)).astype(np.int64)
