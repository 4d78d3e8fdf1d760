"""Readings, findings and recoveries as notebooks show them: a little HTML, without scripts.

Colours are those of the page it stands on, light or dark, and styles are inline, so that they
survive where notebooks are not trusted. Nothing is computed for it that takes time: of the values
of a recovery, the first series at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum.errors import UnsumError
from unsum.readings import describe_dates

if TYPE_CHECKING:
    import pyarrow as pa

    from unsum.findings import Finding, Findings
    from unsum.readings import Readings
    from unsum.recovery import Recovery

ROWS = 5
MAX_FINDINGS = 5  # beside something else
MAX_CELL, MAX_TEXT = 60, 600
MARKS = {"error": "#d1495b", "warning": "#d9822b", "note": "#4f8fcf"}
FAINT = "rgba(128,128,128,0.4)"
BOX = f"border:1px solid {FAINT};border-radius:4px;padding:0.6em 0.9em;max-width:60em"
CELL = "text-align:left;padding:0.1em 1.2em 0.1em 0;border:0;background:none;vertical-align:top"
NUMBER = CELL.replace("left", "right", 1)
TABLE = "border:0;border-collapse:collapse;margin:0.4em 0;color:inherit;font:inherit"

Facts = list[tuple[str, str]]


def show_readings(readings: Readings) -> str:
    """Counts, range, coverage, findings and the first rows of readings."""
    body = [_facts(_describe(readings)), *_remarks(readings.findings.items)]
    return _box("Readings", [*body, _rows(_first_readings(readings), readings.n_readings)])


def show_findings(findings: Findings) -> str:
    """How many rows were read and used, and every finding with what is done about it."""
    if not findings.items:
        return _box("Findings", [_facts(_count_rows(findings)), _line("nothing to remark")])
    return _box("Findings", [_facts(_count_rows(findings)), *map(_finding_at_length, findings)])


def show_recovery(recovery: Recovery) -> str:
    """The method and why, the error to expect, findings, and the first rows of a recovery."""
    readings = recovery.readings
    found = _known_findings(recovery)
    facts = [("method", recovery.method), ("why", recovery.why)]
    if recovery.expected_error is not None:
        hidden = {"no-weekly-shape", "no-daily-shape", "hidden-rhythm"}
        more = ", or more: dates hide a rhythm" if hidden & {each.code for each in found} else ""
        facts.append(("expected error", f"{recovery.expected_error:.3f} (mean-normalised){more}"))
    if recovery.interval is not None:
        facts.append(("intervals", f"{100 * recovery.interval:g} %"))
    if recovery.stop_reason:
        facts.append(("fit", recovery.stop_reason))
    body = [_facts(facts + _describe(readings)), *_remarks(found)]
    rows = readings.n_series * readings.n_periods
    return _box("Recovery", [*body, _rows(_first_values(recovery), rows)])


def _describe(readings: Readings) -> Facts:
    calendar = readings.calendar
    step = repr(calendar.frequency.text) + (f" in {calendar.tz}" if calendar.tz else "")
    facts = [
        ("series", f"{readings.n_series:,}"),
        ("readings", f"{readings.n_readings:,}"),
        ("range", f"{calendar.text(0)} to {calendar.text(readings.n_periods)}"),
        ("periods", f"{readings.n_periods:,} of {step}"),
    ]
    if readings.n_readings:
        facts.append(("coverage", describe_dates(readings)))
    if readings.further is not None:
        facts.append(("further totals", f"{len(readings.further):,}"))
    return facts + (_count_rows(readings.findings) if readings.findings.rows_read else [])


def _count_rows(findings: Findings) -> Facts:
    return [
        (
            "rows",
            f"{findings.rows_read:,} read = {findings.rows_used:,} used + "
            f"{findings.rows_set_aside:,} set aside",
        )
    ]


def _known_findings(recovery: Recovery) -> Sequence[Finding]:
    """The findings; what totals of groups leave open only where it is already known."""
    if recovery.readings.further is None or "_joined" in recovery.__dict__:
        return recovery.findings
    return recovery.readings.findings.items + tuple(getattr(recovery.fit, "findings", ()))


def _first_readings(readings: Readings) -> pa.Table | None:
    if not readings.n_readings:
        return None
    enough = int(np.searchsorted(readings.indptr, ROWS))
    return readings[:enough].to_arrow()[:ROWS]


def _first_values(recovery: Recovery) -> pa.Table | None:
    """The first rows of the long table, unless all values have to be made for them."""
    from unsum.tables.write import long_table

    if recovery.readings.further is not None and "values" not in recovery.__dict__:
        return None
    part = recovery.readings[:1]
    try:
        values = recovery.values_of(0, part)
        bounds = recovery.bound(0, part, np.arange(part.n_periods + 1), values)
    except UnsumError:  # what is wrong is said when values are asked for
        return None
    return long_table(part, values, bounds)[:ROWS]


def _remarks(found: Sequence[Finding]) -> Iterable[str]:
    """The gravest findings, a line each; rows with errors were dropped, or there were no readings.

    The others are counted.
    """
    gravest = sorted(found, key=lambda finding: list(MARKS).index(finding.severity))
    for finding in gravest[:MAX_FINDINGS]:
        yield _finding(finding, "dropped" if finding.severity == "error" else finding.severity)
    if len(found) > MAX_FINDINGS:
        yield _line(f"and {len(found) - MAX_FINDINGS} more in .findings")


def _finding(finding: Finding, label: str, more: str = "") -> str:
    rows = f" ({finding.rows_text()})" if len(finding.rows) else ""
    return (
        f'<div style="border-left:3px solid {MARKS[finding.severity]};padding-left:0.6em;'
        f'margin:0.3em 0">{label} <b>{_text(finding.code)}</b>: '
        f"{_text(finding.sentence + rows, MAX_TEXT)}{more}</div>"
    )


def _finding_at_length(finding: Finding) -> str:
    lines = [*finding.details, f"recover {finding.action}"]
    more = "".join(f'<div style="opacity:0.75">{_text(line, MAX_TEXT)}</div>' for line in lines)
    return _finding(finding, finding.severity, more)


def _rows(table: pa.Table | None, count: int) -> str:
    """A table, and how many rows there are beyond it."""
    if table is None:
        return ""
    numbers = [not isinstance(each, str) for each in table.slice(0, 1).to_pylist()[0].values()]
    styles = [NUMBER if number else CELL for number in numbers]
    head = "".join(
        f'<th style="{style};font-weight:normal;opacity:0.7">{_text(name)}</th>'
        for style, name in zip(styles, table.column_names, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{style}">{_text(_spell(cell))}</td>'
            for style, cell in zip(styles, row.values(), strict=True)
        )
        + "</tr>"
        for row in table.to_pylist()
    )
    rest = _line(f"{len(table)} of {count:,} rows") if count > len(table) else ""
    return f'<table style="{TABLE}"><tr>{head}</tr>{body}</table>{rest}'


def _spell(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:,.6g}" if isinstance(cell, float) else str(cell)


def _facts(facts: Facts) -> str:
    rows = "".join(
        f'<tr style="background:none"><td style="{CELL};opacity:0.7;white-space:nowrap">'
        f'{_text(label)}</td><td style="{CELL}">{_text(fact, MAX_TEXT)}</td></tr>'
        for label, fact in facts
    )
    return f'<table style="{TABLE}">{rows}</table>'


def _line(sentence: str) -> str:
    return f'<div style="opacity:0.7">{_text(sentence)}</div>'


def _box(title: str, parts: Iterable[str]) -> str:
    return f'<div style="{BOX}"><b>{_text(title)}</b>{"".join(parts)}</div>'


def _text(text: str, most: int = MAX_CELL) -> str:
    """Text as text, whatever it holds, and not too long."""
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")
