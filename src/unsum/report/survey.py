"""All series looked at once, block by block: what the page tells of the whole panel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsum.calendar import DAY, Calendar
from unsum.draws import sample_series
from unsum.engine import map_blocks
from unsum.panel import sum_between
from unsum.readings import Readings
from unsum.recovery import Recovery

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip
MOST_BINS = 24  # of the range, when the shape of a series is told in a few numbers
MOST_JUDGED = 5_000  # series whose uncertainty is looked at


@dataclass(frozen=True)
class Rhythm:
    """What repeats within a calendar: the place of every period in it, and the places' names."""

    name: str
    places: np.ndarray
    labels: tuple[str, ...]

    def means(self, rows: np.ndarray) -> np.ndarray:
        """The mean of each row (n, n_periods) over the periods of each place."""
        which = (self.places[:, None] == np.arange(len(self.labels))).astype(np.float64)
        return np.asarray(rows @ (which / np.maximum(which.sum(axis=0), 1.0)))


@dataclass(frozen=True)
class Survey:
    """A few numbers for every series, and sums over all of them."""

    recovery: Recovery
    level: np.ndarray  # mean value of a series
    moved: np.ndarray  # share of a series that is not where even spreading puts it
    shapes: np.ndarray  # (n_series, n_features), relative to the level
    doubt: np.ndarray  # relative error to expect of a series; nan where it was not looked at
    coarseness: np.ndarray  # how long, on average, is the reading that a period lies in

    @property
    def hardness(self) -> np.ndarray:
        """What is known least: by the expected error where there is one, else by coarseness."""
        if np.isnan(self.doubt).all():
            return self.coarseness
        return np.where(np.isnan(self.doubt), -np.inf, self.doubt)


def look_at(recovery: Recovery) -> Survey:
    """One pass over all values."""
    readings, plain = recovery.readings, replace(recovery, interval=None)
    if "values" in recovery.__dict__:  # already made: not again
        plain.__dict__["values"] = recovery.values
    bins, rhythms = range_bins(readings.n_periods), rhythms_of(readings.calendar)[:1]
    level, moved, shapes = [], [], []

    def look(first: int, part: Readings) -> tuple[np.ndarray, ...]:
        values = plain.values_of(first, part)
        total = values.sum(axis=1)
        safe = np.where(total > 0, total, 1.0)
        apart = np.abs(np.where(part.covered(), values - even_steps(part), 0.0))
        mean = safe / readings.n_periods
        features = [sum_between(values, bins) / np.diff(bins)]
        features += [rhythm.means(values) for rhythm in rhythms]
        moved = apart.sum(axis=1) / (2 * safe)
        return total / readings.n_periods, moved, np.hstack(features) / mean[:, None]

    for _, _, (mean, share, shape) in map_blocks(look, readings, recovery.threads):
        level.append(mean)
        moved.append(share)
        shapes.append(shape)
    return Survey(
        recovery,
        np.concatenate(level),
        np.concatenate(moved),
        np.concatenate(shapes),
        _doubt(recovery),
        _coarseness(readings),
    )


def even_steps(part: Readings) -> np.ndarray:
    """Readings as steps: the same share of its total for every period of a reading."""
    steps = np.zeros((part.n_series, part.n_periods + 1))
    owner, each = part.series_of_readings(), part.total / (part.stop - part.start)
    np.add.at(steps, (owner, part.start), each)
    np.subtract.at(steps, (owner, part.stop), each)
    return np.cumsum(steps, axis=1)[:, :-1]


def range_bins(n_periods: int) -> np.ndarray:
    """Cuts that divide the range into about equal parts."""
    return np.unique(np.linspace(0, n_periods, MOST_BINS + 1).round().astype(np.int64))


def rhythms_of(calendar: Calendar) -> list[Rhythm]:
    """What a calendar can show: hours of the day, days of the week, months of the year."""
    frequency = calendar.frequency
    if frequency.numbered:
        return []
    walls = calendar.walls[:-1]
    days = walls // DAY
    found = []
    if 0 < frequency.step < DAY:
        hours = tuple(f"{hour:02}h" for hour in range(24))
        found.append(Rhythm("day", (walls % DAY * 24 // DAY).astype(np.int64), hours))
    if 0 < frequency.step <= DAY and len(np.unique(days)) >= 7:
        found.append(Rhythm("week", (days + 3) % 7, WEEKDAYS))  # 1970-01-01 was a Thursday
    month = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    if len(np.unique(month)) >= 6 and frequency.months <= 1:
        found.append(Rhythm("year", month, MONTHS))
    return found


def _doubt(recovery: Recovery) -> np.ndarray:
    """The usual error of a series relative to its level, for a sample where they are many."""
    readings, sure = recovery.readings, recovery.uncertainty
    doubt = np.full(readings.n_series, np.nan)
    if sure is None:
        return doubt
    places = readings.read
    if len(places) > MOST_JUDGED:
        places = places[sample_series(readings.names.take(places), MOST_JUDGED, 0)]
    cuts = np.arange(readings.n_periods + 1)
    taken, first = sure.take(places), 0
    for part in readings.take(places).parts(1024):
        own = slice(first, first + part.n_series)
        doubt[places[own]] = np.sqrt(taken.variances(first, part, cuts).mean(axis=1))
        first += part.n_series
    doubt[np.flatnonzero(sure.levels[: len(doubt)] <= 0)] = np.nan
    return doubt


def _coarseness(readings: Readings) -> np.ndarray:
    """Periods that no reading covers count as if one reading had the whole range."""
    lengths = (readings.stop - readings.start).astype(np.float64)
    owner = readings.series_of_readings()
    squares = np.bincount(owner, lengths**2, readings.n_series)
    covered = np.bincount(owner, lengths, readings.n_series)
    n_periods = readings.n_periods
    found: np.ndarray = squares / n_periods + np.maximum(n_periods - covered, 0.0)
    return found
