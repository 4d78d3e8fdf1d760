"""What is wrong, or worth knowing, about a table of readings.

One vocabulary for the library, the command line, the JSON and the page. A finding gathers all
rows with the same problem; its details tell the first few of them one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Severity = Literal["error", "warning", "note"]

MAX_DETAILS = 5
MAX_ROWS_LISTED = 10
MAX_ROWS_IN_JSON = 1000

# code: (severity, what recover does about it)
CATALOGUE: dict[str, tuple[Severity, str]] = {
    "missing-column": ("error", "stops"),
    "empty-table": ("error", "stops"),
    "unclosed-quote": ("error", "stops"),
    "malformed-row": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "missing-value": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "unreadable-value": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "missing-total": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "infinite-total": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "start-not-before-end": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "differing-offsets": ("error", "stops"),
    "ambiguous-time": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "skipped-time": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "off-grid": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "range-too-long": ("error", "stops"),
    "conflicting-duplicate": (
        "error",
        "stops, or sets all copies aside when told to drop bad rows: which is right is unknown",
    ),
    "overlap": (
        "error",
        "stops, or sets as few of them aside as it can when told to drop bad rows",
    ),
    "conflicting-readings": (
        "error",
        "stops, or sets the longest of each conflict aside when told to drop bad rows",
    ),
    "conflicting-activity": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "outside-activity": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "negative-total": ("warning", "sets the rows aside"),
    "outside-range": ("warning", "sets the rows aside"),
    "no-usable-reading": ("warning", "leaves these series out of the result"),
    "snapped": ("warning", "moves these boundaries to the nearest point of the grid"),
    "gap": ("warning", "fills these periods by the method and marks them as not covered"),
    "ends-look-inclusive": ("warning", "takes the ends as exclusive, as told"),
    "absurd-magnitude": ("warning", "uses these readings as they are"),
    "no-weekly-shape": ("warning", "goes on; the shape of the week is not learned from these data"),
    "no-daily-shape": ("warning", "goes on; the shape of the day is not learned from these data"),
    "netted": ("warning", "takes the sums of these rows as readings"),
    "made-up": ("note", "takes the sums of these rows as readings, and the estimates as guesses"),
    "solved-overlaps": ("note", "recovers series that meet all of them"),
    "total-gap": (
        "warning",
        "recovers what comes nearest, in least squares",
    ),
    "no-own-reading": ("note", "recovers these series from the totals of their groups"),
    "adjusted": ("warning", "goes on with the adjusted value"),
    "hidden-rhythm": ("note", "goes on; the error it expects is then a lower bound"),
    "merged-duplicates": ("note", "counts each of these readings once"),
    "all-zero": ("note", "recovers zeros wherever these series are read"),
    "trimmed-to-activity": ("note", "spreads these totals over the active periods alone"),
    "unknown-quality": ("note", "takes these readings as actual ones"),
    "idle-reading": ("note", "sets the rows aside: there is nothing to recover"),
    "blank-row": ("note", "skips these rows"),
    # of importers
    "mixed-units": ("error", "stops"),
    "unknown-unit": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "negative-difference": (
        "error",
        "stops, or sets both reads aside when told to drop bad rows, and starts anew after them",
    ),
    "unmatched-registers": ("error", "stops, or sets the rows aside when told to drop bad rows"),
    "lone-read": ("warning", "sets the rows aside: a single read makes no reading"),
    "open-reading": ("warning", "sets the rows aside: where they begin or end is not known"),
    "not-a-total": ("warning", "sets the rows aside"),
    "cut-off": ("warning", "goes on with what is there"),
    "meter-change": ("note", "starts anew: what was used between two meters is not known"),
    "rollover": ("note", "adds what the register holds"),
    "no-value": ("note", "leaves them out: nothing is known there"),
}


@dataclass(frozen=True)
class Finding:
    """One kind of problem, with every row that has it."""

    code: str
    sentence: str
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    series: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        return CATALOGUE[self.code][0]

    @property
    def action(self) -> str:
        """What `recover` does about it."""
        return CATALOGUE[self.code][1]

    def rows_text(self) -> str:
        """The rows in words, the first ten of them by number."""
        if not len(self.rows):
            return ""
        listed = ", ".join(str(row) for row in self.rows[:MAX_ROWS_LISTED])
        more = len(self.rows) - MAX_ROWS_LISTED
        word = "row" if len(self.rows) == 1 else "rows"
        return f"{word} {listed}" + (f" and {more:,} more" if more > 0 else "")

    def to_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "severity": self.severity,
            "sentence": self.sentence,
            "details": list(self.details),
            "rows": [int(row) for row in self.rows[:MAX_ROWS_IN_JSON]],
            "n_rows": len(self.rows),
            "series": list(self.series[:MAX_ROWS_IN_JSON]),
            "n_series": len(self.series),
            "action": self.action,
        }


@dataclass(frozen=True)
class Findings:
    """All findings of a table, and the count of its rows: read = used + set aside."""

    items: tuple[Finding, ...] = ()
    rows_read: int = 0
    set_aside_rows: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    set_aside_reasons: np.ndarray = field(default_factory=lambda: np.empty(0, np.int16))
    row_origin: str = "rows count from 0"
    total_read: float | None = None  # the sum of all totals that could be read
    total_set_aside: float | None = None

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def _repr_html_(self) -> str:
        from unsum.notebook import show_findings

        return show_findings(self)

    @property
    def rows_set_aside(self) -> int:
        return len(self.set_aside_rows)

    @property
    def set_aside_codes(self) -> list[str]:
        """For each row set aside, the code of the finding that is the reason."""
        return [self.items[reason].code for reason in self.set_aside_reasons]

    @property
    def rows_used(self) -> int:
        return self.rows_read - self.rows_set_aside

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.items if finding.severity == "error")

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(finding.code for finding in self.items)

    def error_text(self) -> str:
        """The errors as lines of text, with their first details and the way out."""
        lines = []
        for finding in self.errors:
            rows = f" ({finding.rows_text()})" if len(finding.rows) else ""
            lines.append(finding.sentence + rows)
            lines.extend(f"  {detail}" for detail in finding.details)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows_read": self.rows_read,
            "rows_used": self.rows_used,
            "rows_set_aside": self.rows_set_aside,
            "row_origin": self.row_origin,
            "findings": [finding.to_dict() for finding in self.items],
        }
