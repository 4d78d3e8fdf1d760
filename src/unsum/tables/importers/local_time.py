"""Local time as Green Button files tell it: an offset, and rules for daylight saving."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np

SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1)
_NO_RULE = (0, 0xFFFFFFFF)
_FARTHEST = 26 * 3600  # seconds from UTC that no clock is beyond


@dataclass(frozen=True)
class LocalTime:
    """An offset from UTC in seconds, and what is added in summer, from one rule to the other.

    A rule is a number of 32 bits: month (4), operator (3), day of the month (5), day of the week
    (3, Monday is 1), hour (5), seconds (12).
    """

    offset: int
    saving: int = 0
    begin: int = 0
    end: int = 0

    def __post_init__(self) -> None:
        if not (abs(self.offset) < _FARTHEST and abs(self.saving) < _FARTHEST):
            raise ValueError("an offset of more than a day")
        if self.has_summer:
            for rule in (self.begin, self.end):
                moment_of_rule(rule, 2023)  # a day that every year has

    @property
    def has_summer(self) -> bool:
        rules = self.begin not in _NO_RULE and self.end not in _NO_RULE
        return self.saving != 0 and rules

    def offsets(self, moments: np.ndarray) -> np.ndarray:
        """The offset from UTC, in seconds, at moments in UTC."""
        offsets = np.full(len(moments), self.offset, np.int64)
        if not self.has_summer or not len(moments):
            return offsets
        years = moments.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
        for year in range(int(years.min()) - 1, int(years.max()) + 2):
            begin = moment_of_rule(self.begin, year) - self.offset * SECOND
            end = moment_of_rule(self.end, year) - (self.offset + self.saving) * SECOND
            if end < begin:  # in the south, summer runs into the next year
                following = moment_of_rule(self.end, year + 1)
                end = following - (self.offset + self.saving) * SECOND
            offsets[(moments >= begin) & (moments < end)] = self.offset + self.saving
        return offsets


def moment_of_rule(rule: int, year: int) -> int:
    """When a rule applies in a year, on the wall clock; ValueError where it makes no sense."""
    month, operator, day = rule >> 28 & 15, rule >> 25 & 7, rule >> 20 & 31
    weekday, hour, seconds = rule >> 17 & 7, rule >> 12 & 31, rule & 4095
    if not 1 <= month <= 12 or hour > 23 or (operator and weekday == 0):
        raise ValueError(f"the rule {rule:08X}")
    first, length = date(year, month, 1), monthrange(year, month)[1]
    if operator == 0:
        when = date(year, month, day)
    elif operator == 1:
        begin = date(year, month, max(day, 1))
        when = begin + timedelta(days=(weekday - begin.isoweekday()) % 7)
    else:
        when = first + timedelta(days=(weekday - first.isoweekday()) % 7)
        weeks = operator - 2
        if operator == 7:  # the last one
            weeks = (length - when.day) // 7
        when += timedelta(days=7 * min(weeks, (length - when.day) // 7))
    passed = datetime(when.year, when.month, when.day, hour) - _EPOCH
    return (passed.days * 86_400 + passed.seconds + seconds) * SECOND
