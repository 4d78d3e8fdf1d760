"""What is known about periods: temperature, weekdays, anything with one number per period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from unsum.calendar import DAY, Calendar
from unsum.errors import ParameterError, TableError

MOST = 100  # indicators; more could explain anything


@dataclass(frozen=True, eq=False)
class Indicators:
    """Columns of numbers (n_periods, n_indicators) with their names."""

    names: tuple[str, ...]
    values: np.ndarray

    def __repr__(self) -> str:
        return f"Indicators({', '.join(self.names)})"

    def by_blocks(self, block: int) -> Indicators:
        """Their means over blocks of periods."""
        heads = np.arange(0, len(self.values), block)
        counts = np.diff(np.append(heads, len(self.values)))
        means = np.add.reduceat(self.values, heads, axis=0) / counts[:, None]
        return Indicators(self.names, means)

    @property
    def scaled(self) -> np.ndarray:
        """Every column with mean 0 and variance 1; columns that do not vary are left out."""
        centred = self.values - self.values.mean(axis=0)
        size = centred.std(axis=0)
        moving = size > 1e-12 * np.maximum(np.abs(self.values).max(axis=0), 1e-300)
        scaled: np.ndarray = centred[:, moving] / size[moving]
        return scaled

    @property
    def directions(self) -> np.ndarray:
        """An orthonormal basis of what they span."""
        if not self.scaled.size:
            return np.zeros((len(self.values), 0))
        u, s, _ = np.linalg.svd(self.scaled, full_matrices=False)
        return np.asarray(u[:, s > 1e-9 * s[0]])


def make_indicators(source: Any, calendar: Calendar) -> Indicators:
    """Indicators on a calendar: from a table with a column of times, an array, or `"calendar"`.

    Parameters
    ----------
    source
        A CSV or Parquet file or any dataframe with a column `time` and columns of numbers, one row
        for every period; an array (n_periods, n_indicators); or `"calendar"` for the weekdays of
        days and the hours of the week of shorter steps. `"calendar:PT"` or `"calendar:US-CA"` adds
        the public holidays of a country or of a part of it (ISO 3166; needs `unsum[holidays]`).
    calendar
        The periods.
    """
    if isinstance(source, Indicators):
        found = source
    elif isinstance(source, str) and source.split(":")[0] == "calendar":
        found = _of_calendar(calendar, source.partition(":")[2])
    elif isinstance(source, np.ndarray):
        values = np.atleast_2d(source.T).T.astype(np.float64)
        found = Indicators(tuple(f"indicator {i + 1}" for i in range(values.shape[1])), values)
    else:
        found = _from_table(source, calendar)
    _require_sense(found, calendar)
    return found


def _of_calendar(calendar: Calendar, country: str) -> Indicators:
    """Weekdays and holidays, and within days the hours of working days and of days off."""
    if not 0 < calendar.frequency.step <= DAY:
        raise ParameterError(
            "calendar indicators need days or shorter steps with dates; these periods are "
            f"{calendar.frequency.text!r}."
        )
    walls = calendar.walls[:-1]
    dates = [date(1970, 1, 1) + timedelta(days=int(day)) for day in walls // DAY]
    weekday = np.array([each.weekday() for each in dates])
    names, columns = [], []
    for day, name in enumerate(
        ("tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    ):
        names.append(name)
        columns.append((weekday == day + 1).astype(float))
    off = weekday >= 5
    if country:
        holiday = _holidays(dates, country)
        names.append("holiday")
        columns.append((holiday & ~off).astype(float))  # on a weekend it changes little
        off = off | holiday
    if calendar.frequency.step < DAY:
        hour = (walls % DAY) // (DAY // 24)
        for kind, chosen in (("working day", ~off), ("day off", off)):
            for each in np.unique(hour)[1:]:
                names.append(f"hour {each} of a {kind}")
                columns.append((chosen & (hour == each)).astype(float))
    return Indicators(tuple(names), np.array(columns).T)


def _holidays(dates: list[date], country: str) -> np.ndarray:
    """Which dates are public holidays of a country, such as PT, or of a part of it, as US-CA."""
    try:
        from holidays import country_holidays
    except ImportError:
        raise ParameterError(
            f"the holidays of {country!r} need the package holidays; install it: "
            "pip install 'unsum[holidays]'"
        ) from None
    nation, _, part = country.partition("-")
    years = range(dates[0].year, dates[-1].year + 1)
    try:
        known = country_holidays(nation.upper(), subdiv=part or None, years=years)
    except NotImplementedError as error:
        raise ParameterError(
            f"no holidays are known for {country!r} ({error}); write a country as ISO 3166 does, "
            "such as 'calendar:PT' or 'calendar:US-CA', or give a table with a column of your own."
        ) from None
    return np.array([each in known for each in dates])


def _from_table(source: Any, calendar: Calendar) -> Indicators:
    from unsum.tables.panels import read_panel

    label = str(source) if isinstance(source, str | Path) else "the table of indicators"
    panel = read_panel(source, calendar.frequency.text, tz=calendar.tz, signed=True)
    begins, known = calendar.edges[:-1], panel.calendar.edges[:-1]
    places = np.searchsorted(known, begins)
    inside = known[np.minimum(places, len(known) - 1)] == begins
    if not inside.all():
        missing = calendar.text(int(np.flatnonzero(~inside)[0]))
        raise TableError(
            f"{label} has no row for {missing}; indicators are needed for every period, from "
            f"{calendar.text(0)} to before {calendar.text(calendar.n_periods)}."
        )
    names = tuple(str(name) for name in panel.names.to_pylist())
    return Indicators(names, panel.values[:, places].T)


def _require_sense(found: Indicators, calendar: Calendar) -> None:
    if found.values.shape[0] != calendar.n_periods:
        raise ParameterError(
            f"indicators have {found.values.shape[0]} rows, the readings {calendar.n_periods} "
            "periods; there must be one row for every period."
        )
    if not np.isfinite(found.values).all():
        column = int(np.flatnonzero(~np.isfinite(found.values).all(axis=0))[0])
        row = int(np.flatnonzero(~np.isfinite(found.values[:, column]))[0])
        raise ParameterError(
            f"indicator {found.names[column]!r} has no number at {calendar.text(row)}; fill it in."
        )
    if found.values.shape[1] > MOST:
        raise ParameterError(
            f"{found.values.shape[1]} indicators are more than {MOST}; choose the best of them."
        )
