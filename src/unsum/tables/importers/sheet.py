"""A table on its way to readings: the columns that matter, parsed and judged cell by cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from unsum.findings import MAX_DETAILS
from unsum.tables.cells import LARGEST, judge_cells
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.columns import unit_in_name
from unsum.tables.importers.joined import find_row
from unsum.tables.importers.quality import judge_quality
from unsum.tables.importers.units import Scale, find_unit, settle_units
from unsum.tables.ledger import Ledger, count
from unsum.tables.rows import (
    MISSING,
    UNREADABLE,
    MomentColumn,
    Options,
    Rows,
)
from unsum.tables.source import Source

_DATE_REMEDY = "write dates as 2024-01-31, or name their format: date_format (--date-format)"
_NUMBER_REMEDY = (
    "write plain numbers such as 1234.5, without unit or thousands separator; for decimal commas "
    "use decimal=',' (--decimal ,)"
)


@dataclass
class Labels:
    """A column of names: the distinct ones, and the place of each row's (-1: none)."""

    codes: np.ndarray
    names: list[str]

    def of(self, position: int) -> str:
        code = int(self.codes[position])
        return self.names[code] if code >= 0 else ""


@dataclass
class Sheet:
    """The rows of a table by role: labels, moments and numbers, and the ledger that judges them."""

    asked: Asked
    source: Source
    columns: dict[str, str]
    ledger: Ledger
    labels: dict[str, Labels] = field(default_factory=dict)
    moments: dict[str, MomentColumn] = field(default_factory=dict)
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    flags: dict[str, np.ndarray] = field(default_factory=dict)
    samples: dict[str, dict[int, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ledger.reason)

    def where(self, position: int | np.integer) -> str:
        return find_row(self.source, int(position))

    def name(self, position: int | np.integer) -> str:
        return self.labels["series"].of(int(position))

    def missing(self, role: str) -> np.ndarray:
        if role in self.labels:
            return self.labels[role].codes < 0
        if role in self.moments:
            return self.moments[role].has(MISSING)
        return (self.flags[role] & MISSING) > 0

    def judge(self, required: Iterable[str]) -> None:
        """Find rows that are blank, lack something required, or hold what cannot be read."""
        self._judge_unread()
        blank = np.ones(len(self), bool)
        for role in self.columns:
            blank &= self.missing(role)
        where = np.flatnonzero(blank)
        if len(where):
            self.ledger.add(
                "blank-row", f"{count(len(where), 'blank row')}.", where, set_aside=where
            )
        for role in required:
            where = np.flatnonzero(self.missing(role) & ~blank)
            if len(where):
                self.ledger.add(
                    "missing-value",
                    f"{count(len(where), 'row')} without a value in column "
                    f"{self.columns.get(role, role)!r}; fill it in.",
                    where,
                    details=map(self.where, where[:MAX_DETAILS]),
                    set_aside=where,
                )
        self._judge_unreadable()

    def judge_followers(self, role: str) -> np.ndarray:
        """For rows that end where others begin: which of them can be relied on.

        A row whose time is not known could belong anywhere in its series, so that none of the
        series counts; one of an unknown series could belong anywhere, and stops all.
        """
        series = self.labels["series"].codes
        strays = any(text.strip() for text in self.source.skipped.values())
        if strays or (self.missing("series") & ~self.missing(role)).any():
            self.ledger.fatal = True
        timeless = self.moments[role].has(MISSING | UNREADABLE)
        torn = np.isin(series, series[timeless & (series >= 0)])
        where = np.flatnonzero(torn & self.ledger.in_use)
        if len(where):
            self.ledger.add(
                "open-reading",
                f"{count(len(where), 'row')} of series with a row whose time is not known, so that "
                "where readings begin and end is not known either.",
                where,
                series=dict.fromkeys(self.name(i) for i in where),
                set_aside=where,
            )
        return np.flatnonzero(~torn & (series >= 0) & ~timeless)

    def _judge_unread(self) -> None:
        """Lines that the reader skipped, which the one validator of cells tells of."""
        flags, nothing = np.zeros(len(self), np.uint8), np.zeros(len(self))
        sound = MomentColumn(nothing, flags)
        rows = Rows(pa.array([""]), flags, sound, sound, nothing, flags)
        judge_cells(rows, Options(), self.ledger)

    def _judge_unreadable(self) -> None:
        for role in (*self.moments, *self.numbers):
            flags = self.moments[role].flags if role in self.moments else self.flags[role]
            where = np.flatnonzero((flags & UNREADABLE) > 0)
            if len(where):
                remedy = _DATE_REMEDY if role in self.moments else _NUMBER_REMEDY
                texts = self.samples[role].items()
                self.ledger.add(
                    "unreadable-value",
                    f"{count(len(where), 'row')} with a value in column {self.columns[role]!r} "
                    f"that cannot be read; {remedy}.",
                    where,
                    details=(f"{self.where(i)}: {text[:60]!r}" for i, text in texts),
                    set_aside=where,
                )
        for role, values in self.numbers.items():
            where = np.flatnonzero(np.abs(values) > LARGEST)
            if len(where):
                self.ledger.add(
                    "infinite-total",
                    f"{count(len(where), 'row')} with an infinite number in column "
                    f"{self.columns[role]!r}; correct it.",
                    where,
                    set_aside=where,
                )

    def estimated(self) -> np.ndarray | None:
        """Which rows are estimated, where a column says it."""
        if "quality" not in self.labels:
            return None
        words = self.labels["quality"]
        return judge_quality(words.codes, words.names, self.columns["quality"], self.ledger)

    def scale(self, role: str) -> Scale:
        """The unit of the numbers of a role, and what they are multiplied by."""
        codes, units = self.units(role)
        scale = settle_units(codes, units, self.ledger, self.asked.to, self.asked.calorific)
        self.notes.extend(scale.notes)
        return scale

    def units(self, role: str) -> tuple[np.ndarray, list[str | None]]:
        """The unit of every row: of its own column, or of the file."""
        column = self.columns[role]
        own = unit_in_name(column)
        if self.asked.unit is not None:
            otherwise: str | None = find_unit(self.asked.unit)
            self.notes.append(f"The unit is {otherwise}, as told.")
        else:
            otherwise = own
            if own is not None and "unit" not in self.labels:
                self.notes.append(f"The unit is {own}, by the name of column {column!r}.")
        if "unit" not in self.labels:
            return np.zeros(len(self), np.int32), [otherwise]
        labels = self.labels["unit"]
        units = [find_unit(name) for name in labels.names]
        self.notes.append(f"Units are those of column {self.columns['unit']!r}.")
        places = {unit: place for place, unit in enumerate(dict.fromkeys([*units, otherwise]))}
        same = np.array([places[unit] for unit in (*units, otherwise)], np.int32)
        return same[labels.codes], list(places)
