"""A made-up town: customers of several kinds, their days, and the bills they get.

Nothing here is real; it is meant to look and misbehave like a utility's table.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa

from unsum.calendar import DAY, Calendar
from unsum.panel import Panel

FIRST_DAY = date(2023, 1, 1)
N_DAYS = 425
HOLIDAYS = ((1, 1), (4, 10), (5, 1), (5, 29), (7, 14), (8, 15), (11, 1), (12, 25), (12, 26))
N_ROUTES = 20


@dataclass(frozen=True)
class Kind:
    """A kind of customer: its level in kWh a day and what its days depend on."""

    name: str
    share: float
    level: float
    heating: float  # part of the level per 10 degrees below 16
    cooling: float  # part of the level per 10 degrees above 24
    weekend: float  # level on Saturday and Sunday relative to other days
    holiday: float
    noise: float
    away: bool  # goes on vacation


KINDS = (
    Kind("house", 0.30, 11, 0.15, 0.10, 1.12, 1.15, 0.22, away=True),
    Kind("electric-heat", 0.22, 14, 0.95, 0.10, 1.10, 1.15, 0.18, away=True),
    Kind("flat", 0.22, 6, 0.25, 0.05, 1.08, 1.10, 0.28, away=True),
    Kind("shop", 0.10, 45, 0.15, 0.45, 0.62, 0.20, 0.12, away=False),
    Kind("office", 0.08, 90, 0.25, 0.40, 0.30, 0.25, 0.10, away=False),
    Kind("workshop", 0.05, 160, 0.10, 0.05, 0.15, 0.10, 0.20, away=True),
    Kind("cottage", 0.03, 7, 0.60, 0.20, 3.00, 2.50, 0.45, away=True),
)


@dataclass(frozen=True)
class Town:
    """The truth, day by day, and the table of bills with its mistakes."""

    truth: Panel
    bills: pa.Table


def simulate_town(n_customers: int = 300, seed: int = 0, n_days: int = N_DAYS) -> Town:
    """Simulate the days of a town and bill them."""
    rng = np.random.default_rng(seed)
    shares = np.array([kind.share for kind in KINDS])
    chosen = rng.choice(len(KINDS), n_customers, p=shares / shares.sum())
    temperature = _temperature(rng, n_days)
    names = [f"C{number:04d}" for number in range(1, n_customers + 1)]
    values = np.stack([_days(KINDS[kind], temperature, rng) for kind in chosen])
    first = (FIRST_DAY - date(1970, 1, 1)).days * DAY
    calendar = Calendar.covering("D", None, first, first + n_days * DAY)
    truth = Panel(pa.array(names), calendar, values)
    return Town(truth, _bill(truth, rng))


def _temperature(rng: np.random.Generator, n_days: int) -> np.ndarray:
    """Daily means: a year's wave and weather that lasts some days."""
    day = np.arange(n_days)
    season = 12.5 - 9.0 * np.cos(2 * np.pi * (day - 20) / 365.25)
    weather = np.zeros(n_days)
    for t in range(1, n_days):
        weather[t] = 0.82 * weather[t - 1] + rng.normal(0, 1.9)
    temperature: np.ndarray = season + weather
    return temperature


def _days(kind: Kind, temperature: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n_days = len(temperature)
    days = [FIRST_DAY + timedelta(days=t) for t in range(n_days)]
    weekend = np.array([day.weekday() >= 5 for day in days])
    holiday = np.array([(day.month, day.day) in HOLIDAYS for day in days])
    level = kind.level * rng.lognormal(0, 0.35)
    cold = np.maximum(16 - temperature, 0) / 10 * kind.heating * rng.lognormal(0, 0.3)
    hot = np.maximum(temperature - 24, 0) / 10 * kind.cooling * rng.lognormal(0, 0.3)
    rhythm = np.where(weekend, kind.weekend, 1.0)
    rhythm = np.where(holiday, kind.holiday, rhythm) ** rng.uniform(0.7, 1.3)
    habit = np.zeros(n_days)
    for t in range(1, n_days):
        habit[t] = 0.6 * habit[t - 1] + rng.normal(0, kind.noise * 0.8)
    use = level * (1 + cold + hot) * rhythm * np.exp(habit - habit.var() / 2)
    if kind.away:
        for _ in range(rng.integers(0, 4)):
            begin = int(rng.integers(0, n_days - 5))
            use[begin : begin + int(rng.integers(5, 18))] *= rng.uniform(0.08, 0.25)
    days_of_use: np.ndarray = np.round(use, 2)
    return days_of_use


def _bill(truth: Panel, rng: np.random.Generator) -> pa.Table:
    """Monthly bills on routes, some every two months, some daily smart meters, a few mistakes."""
    routes = [_route(rng, truth.n_periods) for _ in range(N_ROUTES)]
    rows: list[tuple[str, int, int, float, str]] = []
    for name, use in zip(truth.names.to_pylist(), truth.values, strict=True):
        dates = routes[rng.integers(N_ROUTES)]
        pace = rng.random()
        if pace < 0.10:
            dates = np.arange(truth.n_periods + 1)
        elif pace < 0.25:
            dates = dates[rng.integers(2) :: 2]
        for begin, until in pairwise(dates):
            quality = "estimated" if len(dates) < 100 and rng.random() < 0.03 else "actual"
            rows.append((name, int(begin), int(until), float(use[begin:until].sum()), quality))
    return _to_table(rows + _mistakes(rows, rng))


def _route(rng: np.random.Generator, n_days: int) -> np.ndarray:
    """The days on which a reader walks a route: every 27 to 35 days."""
    dates = [int(rng.integers(0, 30))]
    while dates[-1] + 35 <= n_days:
        dates.append(dates[-1] + int(rng.integers(27, 36)))
    return np.array(dates)


def _mistakes(
    rows: list[tuple[str, int, int, float, str]], rng: np.random.Generator
) -> list[tuple[str, int, int, float, str]]:
    """Rows that no utility is spared: a repeat, a credit, an overlap, dates swapped, no total."""
    long = [row for row in rows if row[2] - row[1] > 20]
    name, begin, until, total, quality = long[int(rng.integers(len(long)))]
    other = long[int(rng.integers(len(long)))]
    return [
        (name, begin, until, total, quality),
        (other[0], other[1], other[2], -0.25 * other[3], "actual"),
        (name, begin + 9, until + 9, total * 1.1, "actual"),
        (other[0], other[2], other[1], other[3], "actual"),
        (other[0], other[1] + 1, other[1] + 3, float("nan"), "actual"),
    ]


def _to_table(rows: list[tuple[str, int, int, float, str]]) -> pa.Table:
    names, begins, untils, totals, qualities = zip(*rows, strict=True)
    epoch = (FIRST_DAY - date(1970, 1, 1)).days
    return pa.table(
        {
            "series": names,
            "start": pa.array(np.array(begins) + epoch, pa.int32()).cast(pa.date32()),
            "end": pa.array(np.array(untils) + epoch, pa.int32()).cast(pa.date32()),
            "total": pa.array(np.round(totals, 2), from_pandas=True),
            "quality": qualities,
        }
    )
