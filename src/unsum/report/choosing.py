"""The series that a page can show one by one, packed into a few bytes each."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from unsum.draws import sample_series
from unsum.report.survey import Survey

MOST_NUMBERS = 500_000  # of all series on a page; two bytes each
MOST_SERIES = 600
LARGEST = 65_535


def choose_series(survey: Survey, interval: float | None) -> np.ndarray:
    """All, or where they are many, the hardest, those that moved most, the largest, and others."""
    readings = survey.recovery.readings
    per_series = readings.n_periods * (3 if interval is not None else 1)
    most = int(np.clip(MOST_NUMBERS // per_series, 5, MOST_SERIES))
    if readings.n_series <= most:
        return np.arange(readings.n_series)
    best = [
        np.argsort(-order, kind="stable")[: most // 4]
        for order in (survey.hardness, survey.moved, survey.level)
    ]
    chosen = np.unique(np.concatenate(best))
    others = np.setdiff1d(np.arange(readings.n_series), chosen)
    drawn = sample_series(readings.names.take(others), most - len(chosen), 0)
    return np.union1d(chosen, others[drawn])


def pack_series(survey: Survey, places: np.ndarray, interval: float | None) -> list[dict[str, Any]]:
    """What the page needs of each series: readings, values, and the ends of its interval."""
    recovery = survey.recovery
    packed = []
    cuts = np.arange(recovery.readings.n_periods + 1)
    for n in places.tolist():
        part = recovery.readings[n : n + 1]
        rows = [recovery.values_of(n, part)]
        if interval is not None and recovery.uncertainty is not None:
            bounds = recovery.uncertainty.bound(n, part, cuts, rows[0], interval)
            rows += [bounds.lower, bounds.upper]
        unit = max(float(row.max()) for row in rows) or 1.0
        packed.append(
            {
                "name": str(part.names[0].as_py()),
                "level": _short(survey.level[n]),
                "moved": _short(survey.moved[n]),
                "hardness": _short(survey.hardness[n]),
                "unit": unit,
                "rows": [_pack(row[0] / unit) for row in rows],
                "start": part.start.tolist(),
                "stop": part.stop.tolist(),
                "total": [_short(total) for total in part.total],
                "soft": [] if part.estimated is None else np.flatnonzero(part.estimated).tolist(),
            }
        )
    return packed


def _pack(shares: np.ndarray) -> str:
    """Numbers between 0 and 1 in two bytes each, which is finer than a screen."""
    whole = np.round(np.clip(shares, 0.0, 1.0) * LARGEST).astype("<u2")
    return base64.b64encode(whole.tobytes()).decode()


def _short(number: float) -> float | None:
    """Six digits are enough to look at."""
    return float(f"{number:.6g}") if np.isfinite(number) else None
