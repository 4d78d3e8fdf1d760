"""Dates to periods and back: frequencies, time zones, days of 23 and 25 hours.

A calendar is the list of its edges: period t runs from edge t to edge t + 1. Moments are
microseconds since 1970, in UTC where there is a time zone and on the wall clock where there is
none. Steps of up to an hour have a fixed duration; longer ones follow the local wall clock, so a
day is a local day whatever its hours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

MINUTE = 60_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
MAX_PERIODS = 10_000_000
_SLICE = 1 << 20
EARLIEST, LATEST = -5_364_662_400_000_000, 7_258_118_400_000_000  # the years 1800 to 2199

_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_UNITS = {"min": MINUTE, "h": HOUR, "D": DAY, "W": WEEK}
_MONTHS = {"MS": 1, "M": 1, "ME": 1, "QS": 3, "Q": 3, "QE": 3, "YS": 12, "Y": 12, "YE": 12}
_ALIASES = {
    "minutely": "min", "T": "min", "H": "h", "hourly": "h", "hour": "h", "d": "D", "daily": "D",
    "day": "D", "weekly": "W", "week": "W", "monthly": "MS", "month": "MS", "quarterly": "QS",
    "quarter": "QS", "yearly": "YS", "year": "YS",
}  # fmt: skip


@dataclass(frozen=True)
class Frequency:
    """The length of a period: a fixed step, some calendar months, or plain numbered periods."""

    text: str
    step: int = 0  # microseconds; 0 for months and numbered periods
    months: int = 0
    weekday: int | None = None  # for weeks: the day they begin, when it is given

    @classmethod
    def parse(cls, text: str | Frequency) -> Frequency:
        if isinstance(text, Frequency):
            return text
        if text == "period":
            return cls("period")
        match = re.fullmatch(r"(\d*)\s*([A-Za-z]+)(?:-([A-Z]{3}))?", str(text).strip())
        if match:
            count = int(match[1] or 1)
            unit = _ALIASES.get(match[2], match[2])
            weekday = _WEEKDAYS.index(match[3]) if match[3] in _WEEKDAYS else None
            weekday_fits = match[3] is None or (unit == "W" and weekday is not None)
            if 0 < count < 100_000 and weekday_fits:
                if unit in _UNITS:
                    step = count * _UNITS[unit]
                    if step % DAY == 0 or DAY % step == 0:
                        return cls(str(text), step=step, weekday=weekday)
                elif unit in _MONTHS:
                    return cls(str(text), months=count * _MONTHS[unit])
        raise ParameterError(
            f"freq {text!r} is not a known step; use a divisor of a day such as '15min' or 'h', "
            "days or weeks such as 'D', '2D', 'W' or 'W-MON', months such as 'MS' or '3MS', "
            "or 'period' when the dates are already period numbers."
        )

    @property
    def numbered(self) -> bool:
        return not (self.step or self.months)

    @property
    def season(self) -> int:
        """After how many periods series tend to repeat: a day, a week of days, a year of months.

        One where the step is none of these, or does not divide them.
        """
        if 0 < self.step < DAY:
            return DAY // self.step
        if self.months:
            return 12 // self.months if 12 % self.months == 0 else 1
        return 7 if self.step == DAY else 1

    @property
    def daily_or_longer(self) -> bool:
        return self.step >= DAY or self.months > 0


class TimeZone:
    """Offsets of a zone over a span of time, as arrays, so that whole columns convert at once."""

    def __init__(self, name: str, first: int, last: int) -> None:
        zone = find_zone(name)
        days = range(int(first // DAY) - 2, int(last // DAY) + 3)
        offsets = [_offset(zone, day * DAY) for day in days]
        self._initial = offsets[0]
        changes = []
        for day, before, after in zip(days, offsets, offsets[1:], strict=False):
            if before != after:
                changes.append((_bisect_change(zone, day * DAY, before), before, after))
        table = np.array(changes, dtype=np.int64).reshape(-1, 3)
        self._at, self._before, self._after = table[:, 0], table[:, 1], table[:, 2]

    def to_utc(self, wall: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Wall-clock moments to UTC, with masks of those that happen twice and never.

        A time that happens twice is its first occurrence; one that never happens is the moment
        at which the clock jumped over it.
        """
        low = self._at + np.minimum(self._before, self._after)
        high = self._at + np.maximum(self._before, self._after)
        passed = np.searchsorted(high, wall, side="right")
        offset = np.concatenate([[self._initial], self._after])[passed]
        utc = wall - offset
        inside = np.zeros(len(wall), dtype=bool)
        if len(self._at):
            change = np.minimum(passed, len(self._at) - 1)
            inside = (passed < len(self._at)) & (low[change] <= wall)
            jump = self._after[change] > self._before[change]
            twice, never = inside & ~jump, inside & jump
            utc[never] = self._at[change][never]
            return utc, twice, never
        return utc, inside, inside

    def to_wall(self, utc: np.ndarray) -> np.ndarray:
        offset = np.concatenate([[self._initial], self._after])
        wall: np.ndarray = utc + offset[np.searchsorted(self._at, utc, side="right")]
        return wall


def find_zone(name: str) -> tzinfo:
    """A zone by its IANA name, or a fixed offset such as '+01:00'."""
    from zoneinfo import ZoneInfo

    match = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if match:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ParameterError(
            f"tz {name!r} is not a known time zone; use a name such as 'Europe/Paris', 'UTC' or "
            "'+01:00'."
        ) from None


def offset_name(seconds: int) -> str:
    """The name of a fixed offset: 'UTC', '+01:00'."""
    if seconds == 0:
        return "UTC"
    sign = "+" if seconds > 0 else "-"
    return f"{sign}{abs(seconds) // 3600:02d}:{abs(seconds) % 3600 // 60:02d}"


def _offset(zone: tzinfo, moment: int) -> int:
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)
    offset = when.astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds()) * 1_000_000


def _bisect_change(zone: tzinfo, day: int, before: int) -> int:
    """The second at which the offset changes, within the day after `day`."""
    low, high = day // 1_000_000, day // 1_000_000 + 86_400
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle * 1_000_000) == before:
            low = middle
        else:
            high = middle
    return high * 1_000_000


@dataclass(frozen=True, eq=False)
class Calendar:
    """The fine grid: `edges[t]` and `edges[t + 1]` bound period t."""

    frequency: Frequency
    tz: str | None
    edges: np.ndarray

    @classmethod
    def numbered(cls, n_periods: int) -> Calendar:
        """Periods that are plain numbers, without dates."""
        return cls(Frequency("period"), None, np.arange(n_periods + 1, dtype=np.int64))

    @classmethod
    def covering(
        cls, freq: str | Frequency, tz: str | None, first: int, last: int, anchor: int | None = None
    ) -> Calendar:
        """The shortest calendar that contains the moments first and last.

        Weeks and steps of several days are counted from the wall-clock moment `anchor` (by
        default, that of first).
        """
        frequency = Frequency.parse(freq)
        if frequency.numbered:
            return cls(frequency, None, np.arange(first, last + 1, dtype=np.int64))
        zone = TimeZone(tz, first, last) if tz else None
        wall_first, wall_last = _to_wall(zone, first), _to_wall(zone, last)
        if frequency.months:
            walls = _month_edges(frequency.months, wall_first, wall_last)
        else:
            step = frequency.step
            origin = _floor(wall_first, DAY)
            if step > DAY:
                origin = _anchor_day(frequency, wall_first if anchor is None else anchor)
            begin = origin + _floor(wall_first - origin, step)
            _require_length((wall_last - begin) // step)
            # One step more on both sides: clock changes shift local edges by up to an hour.
            walls = np.arange(begin - step, wall_last + 2 * step, step, dtype=np.int64)
        if tz:
            zone = TimeZone(tz, int(walls[0]), int(walls[-1]))
        if zone is None:
            edges = walls
        elif frequency.step and frequency.step <= HOUR:
            start = int(zone.to_utc(walls[1:2])[0][0])
            begin = start + _floor(first - start, frequency.step)
            edges = np.arange(begin, last + frequency.step, frequency.step, dtype=np.int64)
        else:
            edges = np.unique(zone.to_utc(walls)[0])
        low = int(np.searchsorted(edges, first, side="right")) - 1
        high = max(int(np.searchsorted(edges, last, side="left")), low + 1)
        return cls(frequency, tz, edges[low : high + 1])

    @property
    def n_periods(self) -> int:
        return len(self.edges) - 1

    @cached_property
    def walls(self) -> np.ndarray:
        """The edges on the local wall clock."""
        if self.tz is None or self.frequency.numbered:
            return self.edges
        return TimeZone(self.tz, int(self.edges.min()), int(self.edges.max())).to_wall(self.edges)

    def locate(self, moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nearest edge of each moment, and whether the moment is exactly on it.

        Halfway goes to the later edge. Moments outside the calendar go to -1 or n_periods + 1.
        """
        nearest = np.empty(len(moments), np.int32)
        exact = np.empty(len(moments), np.bool_)
        for low in range(0, len(moments), _SLICE):  # in slices, to hold no large temporaries
            part = slice(low, low + _SLICE)
            nearest[part], exact[part] = self._locate(moments[part])
        return nearest, exact

    def _locate(self, moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        after = np.searchsorted(self.edges, moments, side="left")
        inside = np.clip(after, 1, self.n_periods)
        left, right = self.edges[inside - 1], self.edges[inside]
        nearest = inside - (moments - left < right - moments)
        exact = self.edges[nearest] == moments
        nearest[moments < self.edges[0]] = -1
        nearest[moments > self.edges[-1]] = self.n_periods + 1
        return nearest, exact

    def labels(self, *, ends: bool = False) -> pa.Array:
        """When each period starts (or ends): dates for days and longer, else timestamps."""
        return self.label_edges(slice(1, None) if ends else slice(None, -1))

    def label_edges(self, which: Any) -> pa.Array:
        """The chosen edges as Arrow dates, timestamps, or numbers."""
        import pyarrow as pa

        if self.frequency.numbered:
            return pa.array(self.edges[which])
        if self.frequency.daily_or_longer:
            walls = self.walls[which]
            # A local day may begin at 01:00, when midnight was skipped: the date is what counts.
            return pa.array((walls // DAY).astype(np.int32), pa.int32()).cast(pa.date32())
        return pa.array(self.edges[which], pa.timestamp("us", tz=self.tz))

    def texts(self, which: Any) -> list[str]:
        """The chosen edges as text for people and CSV: ISO 8601, with offsets where zoned."""
        if self.frequency.numbered:
            return [str(edge) for edge in self.edges[which]]
        if self.frequency.daily_or_longer:
            return [str(day) for day in self.label_edges(which).to_pylist()]
        epoch = datetime(1970, 1, 1)
        texts = []
        for edge, wall in zip(self.edges[which], self.walls[which], strict=True):
            text = (epoch + timedelta(microseconds=int(wall))).isoformat(timespec="minutes")
            if self.tz is not None:
                offset = offset_name(int(wall - edge) // 1_000_000)
                text += (
                    "Z" if offset == "UTC" and self.tz == "UTC" else offset.replace("UTC", "+00:00")
                )
            texts.append(text)
        return texts

    def text(self, edge: int) -> str:
        """One edge as text."""
        return self.texts(slice(edge, edge + 1))[0]

    def cuts(self, rule: str | Frequency) -> np.ndarray:
        """The edges of this calendar where a period of a coarser frequency begins or ends.

        The first and last edge are always cuts: what sticks out of the calendar is cut off.
        """
        frequency = Frequency.parse(rule)
        if self.frequency.numbered or frequency.numbered:
            raise ParameterError(
                f"the rule {rule!r} needs dates on both sides; these periods are plain numbers, so "
                "give the cuts as integers instead."
            )
        first, last = int(self.edges[0]), int(self.edges[-1])
        monday = 4 * DAY - WEEK  # 1969-12-29, so that plain weeks begin on Monday
        coarse = Calendar.covering(frequency, self.tz, first, last, anchor=monday)
        inner = coarse.edges[(coarse.edges > first) & (coarse.edges < last)]
        positions, exact = self.locate(inner)
        if not exact.all():
            where = datetime(1970, 1, 1) + timedelta(microseconds=int(inner[~exact][0]))
            raise ParameterError(
                f"the rule {rule!r} cuts a period of {self.frequency.text!r} in two at {where}; "
                "use a rule that whole periods fit into."
            )
        return np.unique(np.concatenate([[0], positions, [self.n_periods]]))


def _to_wall(zone: TimeZone | None, moment: int) -> int:
    return moment if zone is None else int(zone.to_wall(np.array([moment]))[0])


def _floor(value: int, step: int) -> int:
    return value // step * step


def _anchor_day(frequency: Frequency, wall: int) -> int:
    if frequency.weekday is None:
        return _floor(wall, DAY)
    return (frequency.weekday + 4) * DAY  # 1970-01-05 was a Monday


def _month_edges(months: int, first: int, last: int) -> np.ndarray:
    begin = np.datetime64(first, "us").astype("datetime64[M]").astype(np.int64)
    until = np.datetime64(last, "us").astype("datetime64[M]").astype(np.int64)
    begin = _floor(int(begin), months)
    edges = np.arange(begin, until + months + 1, months, dtype=np.int64)
    return edges.astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)


def _require_length(n_periods: int) -> None:
    if n_periods > MAX_PERIODS:
        raise ParameterError(
            f"the readings span {n_periods:,} periods, more than {MAX_PERIODS:,}; use a coarser "
            "freq or limit the range."
        )


def moment_of(when: Any) -> int:
    """A date or time given by the user, as a wall-clock moment (or a period number)."""
    if isinstance(when, int | np.integer):
        return int(when)
    if isinstance(when, np.datetime64):
        when = str(when.astype("datetime64[us]"))
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            raise ParameterError(
                f"{when!r} is not a date; write it as 2024-01-31 or 2024-01-31T06:00."
            ) from None
    if not isinstance(when, date):
        raise ParameterError(f"{when!r} is not a date; write it as 2024-01-31.")
    if not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day)
    if when.tzinfo is not None:
        raise ParameterError(f"write {when} as a local time, without an offset.")
    moment = int((when - datetime(1970, 1, 1)) // timedelta(microseconds=1))
    if not EARLIEST <= moment < LATEST:
        raise ParameterError(f"{when} is outside the years 1800 to 2199.")
    return moment
