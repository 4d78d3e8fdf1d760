"""The book of an intake: which rows are still in use, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from unsum.findings import MAX_DETAILS, Finding, Findings
from unsum.tables.source import Source

SKIPPED_CODES = ("unclosed-quote", "malformed-row", "blank-row")


def count(n: int, noun: str) -> str:
    """'1 row', '1,204 rows', '3 series'."""
    plural = noun if n == 1 or noun.endswith("s") else noun + "s"
    return f"{n:,} {plural}"


class Ledger:
    """Collects findings; every row has at most one reason to be set aside, the first given."""

    def __init__(self, source: Source, n_rows: int) -> None:
        self.source = source
        self.reason = np.full(n_rows, -1, np.int16)  # the place of a finding, or -1
        self.fatal = False
        self._items: list[Finding] = []

    @property
    def items(self) -> tuple[Finding, ...]:
        """The findings so far."""
        return tuple(self._items)

    @property
    def in_use(self) -> np.ndarray:
        return self.reason < 0

    def row(self, position: int) -> int:
        """The number under which a person finds the row."""
        return int(self.source.row_numbers(np.array([position]))[0])

    def add(
        self,
        code: str,
        sentence: str,
        positions: np.ndarray | None = None,
        *,
        details: Iterable[str] = (),
        series: Iterable[object] = (),
        set_aside: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> None:
        """Note a finding about some rows, given by position or (malformed ones) by number.

        `set_aside` are the positions that are not used because of it.
        """
        if positions is not None:
            rows = self.source.row_numbers(np.sort(positions).astype(np.int64))
        elif rows is None:
            rows = np.empty(0, np.int64)
        names = tuple(str(name) for name in series)
        shown = tuple(detail for detail, _ in zip(details, range(MAX_DETAILS), strict=False))
        self._items.append(Finding(code, sentence, rows, names, shown))
        if set_aside is not None:
            free = set_aside[self.reason[set_aside] < 0]
            self.reason[free] = len(self._items) - 1

    def stop(self, code: str, sentence: str, **more: object) -> None:
        """Note a finding after which the table cannot be understood any further."""
        self.fatal = True
        self.add(code, sentence, **more)  # type: ignore[arg-type]

    def close(self) -> Findings:
        """All findings, errors first, and the rows that are set aside."""
        positions = np.flatnonzero(self.reason >= 0)
        rows, reasons = [self.source.row_numbers(positions)], [self.reason[positions]]
        for place, finding in enumerate(self._items):
            skipped = np.array([row for row in finding.rows if row in self.source.skipped])
            if finding.code in SKIPPED_CODES and len(skipped):
                rows.append(skipped)
                reasons.append(np.full(len(skipped), place, np.int16))
        ranks = {"error": 0, "warning": 1, "note": 2}
        order = sorted(range(len(self._items)), key=lambda i: ranks[self._items[i].severity])
        moved = np.argsort(order) if order else np.empty(0, np.int64)
        all_rows, all_reasons = np.concatenate(rows), np.concatenate(reasons)
        by_row = np.argsort(all_rows, kind="stable")
        return Findings(
            items=tuple(self._items[i] for i in order),
            rows_read=len(self.reason) + len(self.source.skipped),
            set_aside_rows=all_rows[by_row],
            set_aside_reasons=moved[all_reasons[by_row]].astype(np.int16),
            row_origin=self.source.row_origin,
        )
