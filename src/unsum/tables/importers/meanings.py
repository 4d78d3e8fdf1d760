"""What the interval readings of a Green Button file mean: whose they are, and of what.

Entries of the feed are linked by addresses. An IntervalBlock lies below a MeterReading, which lies
below a UsagePoint and is related to a ReadingType. Files differ in how they say so: an entry's
address `up` is one of those that its parent is `related` to, or the parent's own, or the parent's
own is where the entry's begins. Where there is only one it could be, links are not needed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from unsum.tables.importers.espi import Entry, Feed
from unsum.tables.importers.local_time import LocalTime

# Of the codes of IEC 61968-9: quantities of an interval, and others that have none.
QUANTITIES = {
    "31": "J", "42": "m3", "71": "VAh", "72": "Wh", "73": "VArh", "119": "ft3", "120": "ft3",
    "128": "gal", "132": "BTU", "134": "L", "166": "m3", "167": "m3", "169": "therm",
}  # fmt: skip
OTHERS = {
    "5": "current", "6": "temperature", "23": "temperature", "29": "voltage", "33": "frequency",
    "38": "power", "61": "apparent power", "63": "reactive power", "65": "power factor",
}  # fmt: skip
NOT_SUMS = {"1": "register reads", "2": "register reads", "3": "register reads",
            "6": "indications", "12": "instantaneous values"}  # fmt: skip
MOST_LEVELS = 16  # of addresses that are looked through
FLOWS = {"1": "delivered", "4": "net", "19": "received", "20": "total"}


@dataclass(frozen=True)
class Meaning:
    """What the readings of some blocks are."""

    point: str  # the address of the usage point, or what stands for it
    label: str  # its short name
    unit: str | None = None
    power: float = 1.0  # what values are multiplied by
    flow: str = ""
    length: int = 0  # seconds
    tier: str = ""
    local: LocalTime | None = None
    other: str = ""  # what they are, when they are no totals
    problem: str = ""  # why it is not known what they are


def understand(feed: Feed, *, by_file: bool) -> tuple[list[Meaning], np.ndarray]:
    """The distinct meanings of a file, and the place of each reading's."""
    meters = _Parents(feed.of_kind("MeterReading"))
    points = _Parents(feed.of_kind("UsagePoint"))
    types = _Others(feed.of_kind("ReadingType"))
    times = _Others(feed.of_kind("LocalTimeParameters"))
    meanings: dict[Meaning, int] = {}
    which = np.full(len(feed.start), -1)
    for block in feed.of_kind("IntervalBlock"):
        meter = meters.find(block)
        point = points.find(meter or block)
        kind = types.find(meter or block)
        if (meter is None and meters.entries) or (point is None and points.entries):
            meaning = Meaning("", "", problem="blocks that belong to no MeterReading or UsagePoint")
        elif kind is None and types.entries:
            meaning = Meaning("", "", problem="a MeterReading that is related to no ReadingType")
        else:
            own, label = _name_point(feed, point, by_file=by_file, alone=len(points.entries) < 2)
            fields = kind.fields if kind is not None else {}
            meaning = _describe(own, label, fields, times.find(point))
        which[block.first : block.stop] = meanings.setdefault(meaning, len(meanings))
    if (which < 0).any():
        stray = Meaning("", "", problem="no IntervalBlock")
        which[which < 0] = meanings.setdefault(stray, len(meanings))
    return list(meanings), which


class _Parents:
    """Entries that others lie below, found by addresses."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.own = {entry.own: entry for entry in entries if entry.own}
        self.related = {address: entry for entry in entries for address in entry.related if address}

    def find(self, child: Entry) -> Entry | None:
        for address in (child.own, child.up):
            if address in self.related:
                return self.related[address]
        for address in (child.up, child.own):
            for _ in range(MOST_LEVELS):
                if address in self.own and address != child.own:
                    return self.own[address]
                address = address.rpartition("/")[0]
        return self.entries[0] if len(self.entries) == 1 else None


class _Others:
    """Entries that others are related to."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.own = {entry.own: entry for entry in entries if entry.own}

    def find(self, entry: Entry | None) -> Entry | None:
        for address in entry.related if entry is not None else ():
            if address in self.own:
                return self.own[address]
        return self.entries[0] if len(self.entries) == 1 else None


def _name_point(feed: Feed, point: Entry | None, *, by_file: bool, alone: bool) -> tuple[str, str]:
    """What tells a usage point from others, and its short name."""
    own = point.own if point is not None else ""
    title = point.fields.get("title", "") if point is not None else ""
    label = own.rpartition("/")[2] or title
    if label and not by_file:
        return own or label, label
    return (
        f"{feed.path}#{own}",
        feed.path.stem if alone or not label else f"{feed.path.stem}/{label}",
    )


def _describe(own: str, label: str, fields: dict[str, str], time: Entry | None) -> Meaning:
    """What a ReadingType says."""
    problem = ""
    power = _whole(fields.get("powerOfTenMultiplier", ""), 30)
    length = _whole(fields.get("intervalLength", ""), 10**9)
    if power is None or length is None or length < 0:
        problem = "a ReadingType whose multiplier or interval length cannot be read"
    code = fields.get("uom", "")
    other = OTHERS.get(code) or NOT_SUMS.get(fields.get("accumulationBehaviour", ""), "")
    unit = QUANTITIES.get(code, f"uom {code[:12]}" if code not in ("", "0") else None)
    try:
        local = _local_time(time)
    except ValueError:
        local, problem = None, problem or "a usage point whose local time cannot be read"
    return Meaning(
        own, label, unit, 10.0 ** (power or 0), fields.get("flowDirection", "")[:12],
        length or 0, fields.get("tou", "")[:12], local, other, problem,
    )  # fmt: skip


def _local_time(entry: Entry | None) -> LocalTime | None:
    """The rules of an entry; ValueError where they make no sense."""
    if entry is None or not entry.fields.get("tzOffset"):
        return None
    seconds = [int(entry.fields.get(name) or 0) for name in ("tzOffset", "dstOffset")]
    rules = [int(entry.fields.get(name) or "0", 16) for name in ("dstStartRule", "dstEndRule")]
    return LocalTime(*seconds, *rules)


def _whole(text: str, most: int) -> int | None:
    """A whole number that is not absurd; nothing counts as zero."""
    try:
        number = int(text or 0)
    except ValueError:
        return None
    return number if abs(number) <= most else None


def name_all(
    meanings: list[Meaning], present: list[int], notes: list[str]
) -> tuple[list[str], np.ndarray]:
    """The names of the series that are present, and the place of every meaning's name.

    A usage point has its short name, with what tells its series apart where it has several: the
    direction, the unit, the interval, the tariff. What is received says so even when it is alone.
    """
    names: dict[str, int] = {}
    codes = np.zeros(len(meanings), np.int64)
    points: dict[str, list[int]] = {}
    for place in present:
        points.setdefault(meanings[place].point, []).append(place)
    labels = Counter(meanings[places[0]].label for places in points.values())
    for point, places in points.items():
        label = meanings[places[0]].label
        base = label if labels[label] == 1 else point.partition("://")[2] or point
        features = [_features(meanings[place]) for place in places]
        several = [len(set(each)) > 1 for each in zip(*features, strict=True)]
        for place, own in zip(places, features, strict=True):
            told = [
                text
                for text, tells in zip(own, several, strict=True)
                if text and (tells or text == FLOWS["19"])
            ]
            codes[place] = names.setdefault("/".join([base, *told]), len(names))
    listed = ", ".join(repr(name) for name in list(names)[:5])
    notes.append(f"Series are usage points: {listed}{', ...' if len(names) > 5 else ''}.")
    return list(names), codes


def _features(meaning: Meaning) -> tuple[str, str, str, str]:
    flow = FLOWS.get(meaning.flow, f"flow {meaning.flow}" if meaning.flow else "")
    length = f"{meaning.length / 60:g} min" if meaning.length else ""
    return flow, meaning.unit or "", length, f"tou {meaning.tier}" if meaning.tier else ""
