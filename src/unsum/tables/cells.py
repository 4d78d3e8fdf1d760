"""The first round of judgement: every cell on its own."""

from __future__ import annotations

import numpy as np

from unsum.findings import MAX_DETAILS
from unsum.tables.ledger import Ledger, count
from unsum.tables.rows import MISSING, UNKNOWN, UNREADABLE, Options, Rows

LARGEST = 1e305  # sums of larger totals would overflow
_REMEDIES = {
    "start": "write dates as 2024-01-31, or name their format with date_format (--date-format)",
    "total": "write totals as plain numbers such as 1234.5, without unit or thousands separator; "
    "for decimal commas use decimal=',' (--decimal ,)",
}


def judge_cells(rows: Rows, options: Options, ledger: Ledger) -> None:
    """Find cells that are missing, unreadable, or impossible, and set their rows aside."""
    judge_malformed(ledger)
    moments = {"start": rows.start, "end": rows.end}
    blank = rows.series < 0
    if options.with_totals:
        blank = blank & ((rows.total_flags & MISSING) > 0)
    for column in moments.values():
        blank &= column.has(MISSING)
    where = np.flatnonzero(blank)
    if len(where):
        ledger.add("blank-row", f"{count(len(where), 'blank row')}.", where, set_aside=where)

    for role, lacking in (
        ("series", rows.series < 0),
        ("start", rows.start.has(MISSING)),
        ("end", rows.end.has(MISSING)),
    ):
        where = np.flatnonzero(lacking & ~blank)
        if len(where):
            ledger.add(
                "missing-value",
                f"{count(len(where), 'row')} without a value in column {options.column(role)!r}; "
                "fill it in.",
                where,
                set_aside=where,
            )
    moments |= {
        role: column
        for role, column in (("active_from", rows.active_from), ("active_to", rows.active_to))
        if column is not None
    }
    for role, column in moments.items():
        _judge_unreadable(role, column.has(UNREADABLE), rows, options, ledger)
    _judge_unreadable("total", (rows.total_flags & UNREADABLE) > 0, rows, options, ledger)
    _judge_totals(rows, blank, ledger, net=options.negatives == "net")
    if rows.quality is not None:
        where = np.flatnonzero((rows.quality == UNKNOWN) & ledger.in_use)
        if len(where):
            ledger.add(
                "unknown-quality",
                f"{count(len(where), 'row')} with a quality other than 'actual' or 'estimated'.",
                where,
                details=_quoted(rows, "quality", ledger),
            )


def judge_malformed(ledger: Ledger) -> None:
    """Rows that the CSV reader skipped: wrong number of fields, or an open quote, or blanks."""
    skipped = ledger.source.skipped
    open_quotes = [row for row, text in skipped.items() if "\n" in text.strip()]
    blanks = [row for row, text in skipped.items() if not text.strip()]
    others = sorted(set(skipped) - set(open_quotes) - set(blanks))
    if open_quotes:
        ledger.stop(
            "unclosed-quote",
            "a quote is opened and not closed, so that lines run together; close it.",
            details=[
                f"row {row} swallows {skipped[row].count(chr(10)):,} lines: {skipped[row][:60]!r}"
                for row in sorted(open_quotes)
            ],
            rows=np.array(sorted(open_quotes)),
        )
    if others:
        ledger.add(
            "malformed-row",
            f"{count(len(others), 'row')} with more or fewer fields than the header; quote fields "
            "that contain the separator.",
            details=(f"row {row}: {skipped[row][:80]!r}" for row in others),
            rows=np.array(others),
        )
    if blanks:
        ledger.add(
            "blank-row", f"{count(len(blanks), 'line')} of blanks.", rows=np.array(sorted(blanks))
        )


def _judge_unreadable(
    role: str, bad: np.ndarray, rows: Rows, options: Options, ledger: Ledger
) -> None:
    where = np.flatnonzero(bad)
    if len(where):
        remedy = _REMEDIES["total" if role == "total" else "start"]
        ledger.add(
            "unreadable-value",
            f"{count(len(where), 'row')} with a value in column {options.column(role)!r} that "
            f"cannot be read; {remedy}.",
            where,
            details=_quoted(rows, role, ledger),
            set_aside=where,
        )


def _judge_totals(rows: Rows, blank: np.ndarray, ledger: Ledger, *, net: bool) -> None:
    missing = ((rows.total_flags & MISSING) > 0) | (
        np.isnan(rows.total) & ((rows.total_flags & UNREADABLE) == 0)
    )
    for code, bad, sentence in (
        ("missing-total", missing & ~blank, "without a total; fill it in, or drop the row"),
        ("infinite-total", np.abs(rows.total) > LARGEST, "with an infinite total; correct it"),
    ):
        where = np.flatnonzero(bad)
        if len(where):
            ledger.add(code, f"{count(len(where), 'row')} {sentence}.", where, set_aside=where)
    where = np.flatnonzero((rows.total < 0) & ledger.in_use)
    if len(where) and not net:
        ledger.add(
            "negative-total",
            f"{count(len(where), 'row')} with a negative total (a credit or correction); "
            "negatives='net' (--negatives net) nets them with what they correct, true_up=True "
            "(--true-up) takes them with the estimates before.",
            where,
            details=(
                f"row {ledger.row(i)}: series {rows.name(i)!r}, total {rows.total[i]:g}"
                for i in where[:MAX_DETAILS]
            ),
            set_aside=where,
        )


def _quoted(rows: Rows, role: str, ledger: Ledger) -> list[str]:
    """The first bad cells of a column, word for word."""
    texts = rows.samples.get(role, {})
    return [f"row {ledger.row(position)}: {text!r}" for position, text in texts.items()]
