"""The clock that the times of a table are on, and times as they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from unsum.calendar import DAY, HOUR, MINUTE, Calendar, Frequency, TimeZone, offset_name
from unsum.findings import MAX_DETAILS
from unsum.tables.importers.sheet import Sheet
from unsum.tables.ledger import count
from unsum.tables.moments import NAIVE

_FOLDS = (HOUR, HOUR // 2, 2 * HOUR)  # how far clocks are put back


@dataclass(frozen=True)
class Clock:
    """Moments are UTC where there is a zone, and on the wall clock where there is none."""

    zone: str | None = None

    def to_wall(self, moments: np.ndarray) -> np.ndarray:
        if self.zone is None or not len(moments):
            return moments
        return TimeZone(self.zone, int(moments.min()), int(moments.max())).to_wall(moments)

    def to_moments(self, walls: np.ndarray) -> np.ndarray:
        if self.zone is None or not len(walls):
            return walls
        return TimeZone(self.zone, int(walls.min()), int(walls.max())).to_utc(walls)[0]

    def add_days(self, moments: np.ndarray, days: np.ndarray | int) -> np.ndarray:
        """Moments some local days later, whatever hours those days have."""
        return self.to_moments(self.to_wall(moments) + np.asarray(days * DAY).astype(np.int64))

    def after_day(self, moments: np.ndarray) -> np.ndarray:
        """The first moment after the local day of each."""
        return self.to_moments(self.to_wall(moments) // DAY * DAY + DAY)

    def text(self, moment: int | np.integer) -> str:
        """A moment for people."""
        wall = int(self.to_wall(np.array([moment]))[0])
        text = str(np.datetime64(wall, "us").astype("datetime64[s]")).removesuffix("T00:00:00")
        return text if self.zone is None else f"{text} ({self.zone})"

    def label(self, start: np.ndarray, end: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """Starts and ends as dates, where all are midnights on no zone's clock, or as timestamps.

        Where seconds matter, they are texts: tables of timestamps are written to the minute.
        """
        both = np.concatenate([start, end])
        if self.zone is None and not (both % DAY).any():
            days = pa.array((both // DAY).astype(np.int32)).cast(pa.date32())
            return days[: len(start)], days[len(start) :]
        kind = pa.timestamp("us", tz=self.zone)
        if not (both % MINUTE).any():
            return pa.array(start, kind), pa.array(end, kind)
        offset = (self.to_wall(both) - both) // 1_000_000
        texts = spell(both, offset if self.zone is not None else None)
        return texts[: len(start)], texts[len(start) :]


@dataclass(frozen=True)
class Grid(Clock):
    """A clock whose moments are the edges of a calendar, by their places."""

    calendar: Calendar | None = None

    @classmethod
    def of(cls, calendar: Calendar) -> Grid:
        """The grid of a calendar; days and longer steps are dates, which need no zone."""
        return cls(None if calendar.frequency.daily_or_longer else calendar.tz, calendar)

    def label(self, start: np.ndarray, end: np.ndarray) -> tuple[pa.Array, pa.Array]:
        assert self.calendar is not None
        return self.calendar.label_edges(start), self.calendar.label_edges(end)


def name_step(step: Frequency) -> str:
    """A step in short: 'D' rather than '1D'."""
    return re.sub(r"^1(?=[A-Za-z])", "", step.text)


def spell(moments: np.ndarray, offset: np.ndarray | None) -> pa.Array:
    """Moments as ISO 8601 to the second, with their offsets (in seconds) where they have them."""
    walls = moments if offset is None else moments + offset.astype(np.int64) * 1_000_000
    unit = "us" if (walls % 1_000_000).any() else "s"
    texts = np.datetime_as_string(walls.astype("datetime64[us]").astype(f"datetime64[{unit}]"))
    if offset is not None:
        distinct, which = np.unique(offset, return_inverse=True)
        names = [offset_name(int(each)).replace("UTC", "+00:00") for each in distinct]
        texts = np.char.add(texts, np.array(names, np.str_)[which.ravel()])
    return pa.array(texts, pa.string())


def read_clock(sheet: Sheet, roles: tuple[str, ...]) -> tuple[Clock, dict[str, np.ndarray]]:
    """The clock of some columns, and their moments on it.

    Times without offset stay on the wall clock: what they mean in a zone is settled when they are
    used.
    """
    columns = [sheet.moments[role] for role in roles]
    keep = sheet.ledger.in_use
    offsets: set[int] = set()
    for column in columns:
        known = {int(NAIVE)}
        if column.offset is not None:
            known = {int(each) for each in np.unique(column.offset[keep])}
        offsets |= known
    walls = {role: sheet.moments[role].wall for role in roles}
    if not offsets - {int(NAIVE)}:
        return Clock(), walls
    zone = sheet.asked.tz or next((column.tz for column in columns if column.tz), None)
    if zone is None and len(offsets) == 1:
        zone = offset_name(offsets.pop())
    if zone is None or int(NAIVE) in offsets:
        _judge_offsets(sheet, roles, offsets)
        return Clock(), walls
    moments = {}
    for role in roles:
        offset = sheet.moments[role].offset
        own = np.zeros(len(sheet), np.int64) if offset is None else offset.astype(np.int64)
        moments[role] = walls[role] - np.where(own == NAIVE, 0, own) * 1_000_000
    return Clock(zone), moments


def _judge_offsets(sheet: Sheet, roles: tuple[str, ...], offsets: set[int]) -> None:
    details, positions = [], []
    for offset in sorted(offsets):
        for role in roles:
            own = sheet.moments[role].offset
            own = np.full(len(sheet), NAIVE) if own is None else own
            found = np.flatnonzero(sheet.ledger.in_use & (own == offset))
            if len(found):
                name = "no offset" if offset == NAIVE else f"offset {offset_name(offset)}"
                details.append(f"{sheet.where(found[0])} has {name}")
                positions.append(int(found[0]))
                break
    remedy = "say which zone they are in: tz='Europe/Paris' (--tz Europe/Paris)"
    if int(NAIVE) in offsets:
        remedy = "write all of them with their offset"
    sheet.ledger.stop(
        "differing-offsets",
        f"times have differing offsets from UTC; {remedy}.",
        positions=np.unique(positions),
        details=details,
    )


def localise(sheet: Sheet, keys: np.ndarray, walls: np.ndarray, *, ends: bool) -> np.ndarray:
    """Local times of the zone that was asked for, as moments.

    Where clocks are put back, a series has some times twice: they are told apart by their order.
    """
    zone = TimeZone(str(sheet.asked.tz), int(walls.min()), int(walls.max()))
    moments, twice, never = zone.to_utc(walls)
    if ends:  # a period may end at the very moment that the clocks are put forward
        never &= zone.to_wall(moments - 1) + 1 != walls
    single = np.zeros(len(walls), bool)
    where = np.flatnonzero(twice & sheet.ledger.in_use)
    if len(where):
        own = np.argsort(keys, kind="stable")
        rising = np.sign(np.diff(walls[own])[np.diff(keys[own]) == 0]).sum() >= 0
        order = where if rising else where[::-1]
        order = order[np.lexsort((np.arange(len(order)), walls[order], keys[order]))]
        again = (np.diff(keys[order]) == 0) & (np.diff(walls[order]) == 0)
        moments[order[1:][again]] = _second(
            zone, moments[order[1:][again]], walls[order[1:][again]]
        )
        paired = np.append(again, False) | np.append(False, again)
        single[order[~paired]] = True
    for code, what, bad in (
        ("ambiguous-time", "happen twice", single),
        ("skipped-time", "never happen", never),
    ):
        where = np.flatnonzero(bad & sheet.ledger.in_use)
        if len(where):
            sheet.ledger.add(
                code,
                f"{count(len(where), 'row')} with times that {what} on the clocks of "
                f"{sheet.asked.tz}; write these times with their offset.",
                where,
                details=(
                    f"{sheet.where(i)}: {Clock().text(walls[i])}" for i in where[:MAX_DETAILS]
                ),
                set_aside=where,
            )
    return moments


def _second(zone: TimeZone, moments: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """The later of the two moments that have the same local time."""
    for fold in _FOLDS:
        if (zone.to_wall(moments + fold) == walls).all():
            return moments + fold
    return moments
