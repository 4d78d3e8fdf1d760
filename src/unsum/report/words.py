"""What the page says in words and tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from unsum.calendar import Calendar
from unsum.errors import ParameterError
from unsum.panel import cut_points
from unsum.readings import describe_dates
from unsum.recovery import Recovery

MOST_TOTALS = 60  # sums over all series
MOST_TAILS = 10
RULES = {"MS": "calendar month", "D": "day", "QS": "quarter", "YS": "year"}


def count(recovery: Recovery) -> list[tuple[str, str]]:
    """The figures that people look for first."""
    readings = recovery.readings
    lengths = readings.stop.astype(np.int64) - readings.start
    covered = float(lengths.sum()) / max(readings.n_series * readings.n_periods, 1)
    tiles = [
        (f"{readings.n_series:,}", "series"),
        (f"{readings.n_readings:,}", "readings"),
        (f"{readings.n_periods:,}", "periods"),
        (f"{covered:.0%}", "of them covered"),
    ]
    if recovery.expected_error is not None:
        least = "at least " if recovery.hides_a_rhythm else ""
        tiles.append((f"± {recovery.expected_error:.0%}", f"expected error, {least}per period"))
    if readings.findings.rows_read:
        tiles.append((f"{readings.findings.rows_set_aside:,}", "rows set aside"))
    return tiles


def tell(recovery: Recovery) -> list[tuple[str, str]]:
    """The panel in a few sentences, each with its heading."""
    readings = recovery.readings
    calendar = readings.calendar
    span = f"{calendar.text(0)} to {calendar.text(readings.n_periods)}"
    step = calendar.frequency.text
    told = [
        (
            "Readings",
            f"{readings.n_readings:,} readings of {readings.n_series:,} series, recovered at "
            f"{readings.n_periods:,} periods ({step!r}) from {span}, the end not included.",
        )
    ]
    if readings.n_readings:
        told.append(("Dates", _sentence(describe_dates(readings))))
    told.append(("Method", f"{recovery.method}: {recovery.why}."))
    if recovery.profiles is not None:
        rank = recovery.profiles.shape[1]
        told.append(("Rank", f"{rank} shared profiles; {_sentence(recovery.stop_reason)}"))
    told.append(("Expected error", _expectation(recovery)))
    told.append(
        (
            "Exactness",
            "Every value is nonnegative, and every series adds up to each of its readings "
            f"{'that is not an estimate ' if readings.estimated is not None else ''}"
            "within one part in a billion; this was checked.",
        )
    )
    return told + _account(recovery)


def _expectation(recovery: Recovery) -> str:
    error = recovery.expected_error
    if error is None:
        return f"The method {recovery.method!r} does not tell how far it may be from the truth."
    text = f"About {error:.0%} of a series' mean, period by period, where readings cover it."
    if recovery.hides_a_rhythm:
        text += " More if there is a rhythm that the dates of the readings hide."
    return text


def _account(recovery: Recovery) -> list[tuple[str, str]]:
    """What became of the rows of the table."""
    found = recovery.readings.findings
    if not found.rows_read:
        return []
    rows = f"{found.rows_read:,} rows read = {found.rows_used:,} used + "
    rows += f"{found.rows_set_aside:,} set aside."
    reasons: dict[str, int] = {}
    for code in found.set_aside_codes:
        reasons[code] = reasons.get(code, 0) + 1
    if reasons:
        listed = ", ".join(f"{count:,} for {code}" for code, count in reasons.items())
        rows += f" Set aside: {listed}."
    return [("Rows", rows)]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def sum_all(recovery: Recovery) -> tuple[str, list[dict[str, Any]]]:
    """Sums over all series by months, or by what suits the range, and the name of that."""
    from unsum.tables.sums import sum_groups

    calendar = recovery.readings.calendar
    name, cuts = _choose_cuts(calendar)
    rows = sum_groups(recovery, cuts, "all").to_pylist()
    for row, start, end in zip(
        rows, calendar.texts(cuts[:-1]), calendar.texts(cuts[1:]), strict=True
    ):
        row |= {"label": start, "until": end}
    return name, rows


def _choose_cuts(calendar: Calendar) -> tuple[str, np.ndarray]:
    for rule, name in RULES.items():
        try:
            cuts = cut_points(calendar, rule)
        except ParameterError:  # periods without dates, or that do not fit into the rule's
            continue
        if 2 < len(cuts) <= min(MOST_TOTALS + 1, calendar.n_periods):
            return name, cuts
    count = min(MOST_TOTALS, calendar.n_periods)
    return "part of the range", np.linspace(0, calendar.n_periods, count + 1).astype(np.int64)


def tell_tails(recovery: Recovery) -> dict[str, Any] | None:
    """What follows the last readings, in sum and where it is largest."""
    if not recovery.tails:
        return None
    (whole,) = recovery.unbilled(by="all", backend="pyarrow").to_pylist()
    table = recovery.unbilled(backend="pyarrow")
    largest = table.sort_by([("total", "descending")]).slice(0, MOST_TAILS).to_pylist()
    return {"whole": whole, "largest": largest, "n_series": recovery.tails}
