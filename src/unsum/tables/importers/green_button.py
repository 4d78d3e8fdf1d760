"""Green Button files: whose readings they are, over what time, in which unit and direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from unsum.calendar import DAY, EARLIEST, HOUR, LATEST, MINUTE, offset_name
from unsum.findings import MAX_DETAILS
from unsum.tables.cells import LARGEST
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.clock import Clock, spell
from unsum.tables.importers.espi import FeedSource, read_feed
from unsum.tables.importers.imported import Draft, Imported, finish
from unsum.tables.importers.joined import find_row
from unsum.tables.importers.local_time import SECOND, LocalTime
from unsum.tables.importers.meanings import Meaning, name_all, understand
from unsum.tables.importers.records import join_records
from unsum.tables.importers.repeats import settle_repeats
from unsum.tables.importers.units import find_unit, multiply, settle_units
from unsum.tables.ledger import Ledger, count
from unsum.tables.rows import MISSING, UNREADABLE, parse_totals

# By a reference day, interpolated, forecast, mixed, normalised for weather.
ESTIMATES = ("8", "9", "12", "13", "15")


@dataclass
class _Readings:
    """Interval readings of all files, in their order; times are in UTC."""

    meanings: list[Meaning]
    meaning: np.ndarray  # the place of each reading's
    start: np.ndarray
    end: np.ndarray
    value: np.ndarray
    estimated: np.ndarray


@dataclass(frozen=True, eq=False)
class _Local(Clock):
    """Times written with the offset that the file's own rules give them."""

    offsets: tuple[np.ndarray, ...] = ()

    def label(self, start: np.ndarray, end: np.ndarray) -> tuple[pa.Array, pa.Array]:
        return spell(start, self.offsets[0]), spell(end, self.offsets[1])


def import_green_button(asked: Asked, *, by_file: bool = False) -> Imported:
    """Every usage point, and every direction of it, as a series."""
    asked.refuse("columns", "name", "date_format")
    feeds = [read_feed(path) for path in asked.paths()]
    sizes = [len(feed.start) for feed in feeds]
    ledger = Ledger(join_records([FeedSource(feed) for feed in feeds], sizes), sum(sizes))
    meanings: list[Meaning] = []
    places: list[np.ndarray] = []
    for feed in feeds:
        own, which = understand(feed, by_file=by_file)
        places.append(which + len(meanings))
        meanings += own
    texts = [[text for feed in feeds for text in getattr(feed, name)]
             for name in ("start", "duration", "value", "quality")]  # fmt: skip
    readings = _parse(texts, meanings, np.concatenate(places), ledger)
    notes = _note_shared(places, meanings)
    _judge_meanings(readings, ledger)
    draft, clock = _draft(asked, readings, ledger, notes)
    return finish(asked, draft, clock, ledger, notes)


def _note_shared(places: list[np.ndarray], meanings: list[Meaning]) -> list[str]:
    """Usage points that several files have, which are taken as one series each."""
    points = [{meanings[place].point for place in np.unique(each)} for each in places]
    shared = {point for i, own in enumerate(points) for point in own & set().union(*points[:i])}
    if not shared:
        return []
    example = min(shared)[-60:]
    return [
        f"{count(len(shared), 'usage point')} in several files, such as {example!r}: taken as one; "
        "by_file=True (--by-file) keeps files apart."
    ]


def _parse(
    texts: list[list[str]], meanings: list[Meaning], meaning: np.ndarray, ledger: Ledger
) -> _Readings:
    """Numbers from texts; what is missing or cannot be read is a finding."""
    columns = {}
    usual = np.array([each.length for each in meanings])[meaning]
    for name, column in zip(("start", "duration", "value"), texts, strict=False):
        values, flags = parse_totals(pa.array(column, pa.string()))
        lacking = (flags & MISSING) > 0
        if name == "duration":  # where a reading has none, that of its type counts
            values = np.where(lacking, usual, values)
            lacking &= usual == 0
        whole = (np.abs(values) < 1e12) & (np.floor(values) == values) | (name == "value")
        bad = ((flags & UNREADABLE) > 0) | (~lacking & ~(whole & (np.abs(values) < LARGEST)))
        _judge_texts(name, column, lacking, bad, ledger)
        columns[name] = np.where(lacking | bad, 0.0, values)
    start = columns["start"].astype(np.int64) * SECOND
    end = start + columns["duration"].astype(np.int64) * SECOND
    outside = (start < EARLIEST) | (end >= LATEST) | (start >= end)
    where = np.flatnonzero(outside & ledger.in_use)
    if len(where):
        ledger.add(
            "start-not-before-end",
            f"{count(len(where), 'reading')} without a duration, or outside the years 1800 to "
            "2199; correct it.",
            where,
            details=(
                f"{find_row(ledger.source, i)}: start {texts[0][i][:20]!r}, duration "
                f"{texts[1][i][:20]!r}"
                for i in where[:MAX_DETAILS]
            ),
            set_aside=where,
        )
    soft = {text: bool(set(text.split()) & set(ESTIMATES)) for text in set(texts[3])}
    estimated = np.array([soft[text] for text in texts[3]], bool)
    return _Readings(meanings, meaning, start, end, columns["value"], estimated)


def _judge_texts(
    name: str, texts: list[str], lacking: np.ndarray, bad: np.ndarray, ledger: Ledger
) -> None:
    for code, mask, what in (
        ("missing-value", lacking, f"without a {name}; fill it in"),
        ("unreadable-value", bad, f"with a {name} that is no number; correct it"),
    ):
        where = np.flatnonzero(mask)
        if len(where):
            ledger.add(
                code,
                f"{count(len(where), 'reading')} {what}.",
                where,
                details=(
                    f"{find_row(ledger.source, i)}: {texts[i][:40]!r}" for i in where[:MAX_DETAILS]
                ),
                set_aside=where,
            )


def _judge_meanings(readings: _Readings, ledger: Ledger) -> None:
    """Readings that belong to nobody, and those that are no totals."""
    for code, name, end in (
        ("malformed-row", "problem", "; correct the links of the file."),
        ("not-a-total", "other", ", which is no total of an interval."),
    ):
        texts = [getattr(each, name) for each in readings.meanings]
        affected = np.array([bool(text) for text in texts])[readings.meaning] & ledger.in_use
        where = np.flatnonzero(affected)
        if len(where):
            said = dict.fromkeys(texts[place] for place in readings.meaning[where])
            ledger.add(
                code,
                f"{count(len(where), 'reading')} of {', '.join(list(said)[:3])}{end}",
                where,
                set_aside=where,
            )


def _draft(
    asked: Asked, readings: _Readings, ledger: Ledger, notes: list[str]
) -> tuple[Draft, Clock]:
    meanings, meaning = readings.meanings, readings.meaning
    told = None if asked.unit is None else find_unit(asked.unit)
    units = [each.unit or told for each in meanings]
    scale = settle_units(meaning, units, ledger, asked.to, asked.calorific)
    if asked.to is None and scale.unit is not None:
        notes.append(f"The unit is {scale.unit}.")
    notes.extend(scale.notes)
    used = np.flatnonzero(ledger.in_use)
    names, codes = name_all(meanings, sorted(set(meaning[used].tolist())), notes)
    owner = codes[meaning]
    power = np.array([each.power for each in meanings])
    total = multiply(multiply(readings.value, power[meaning]), scale.factor)
    alone = settle_repeats(
        ledger, used, owner[used], readings.start[used], total[used],
        lambda i: f"{names[owner[used[i]]]!r}, {Clock('UTC').text(readings.start[used[i]])}",
        remedy="keep the newest",
        estimated=readings.estimated[used],
    )  # fmt: skip
    kept = used[alone]
    kept = kept[ledger.in_use[kept]]
    start, end = readings.start[kept], readings.end[kept]
    clock = _choose_clock(
        asked, [each.local for each in meanings], meaning[kept], start, end, notes
    )
    draft = Draft(
        series=pa.array(names, pa.string()).take(pa.array(owner[kept])),
        start=start,
        end=end,
        total=total[kept],
        estimated=readings.estimated[kept],
        unit=scale.unit,
        freq=_common_step(end - start),
    )
    return draft, clock


def _choose_clock(
    asked: Asked,
    local: list[LocalTime | None],
    meaning: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    notes: list[str],
) -> Clock:
    """The zone that was asked for, or the local time that the files tell, or UTC."""
    if asked.tz is not None:
        return Clock(asked.tz)
    present = np.unique(meaning)
    if any(local[place] is None for place in present) or not len(present):
        notes.append(
            "The files do not tell local time: times are in UTC; give tz (--tz) for local."
        )
        return Clock("UTC")
    offsets = tuple(np.zeros(len(start), np.int64) for _ in range(2))
    for place in present:
        rule, own = local[place], meaning == place
        assert rule is not None
        for offset, moments in zip(offsets, (start, end), strict=True):
            offset[own] = rule.offsets(moments[own])
    different = np.unique(np.concatenate(offsets))
    if len(different) == 1:
        return Clock(offset_name(int(different[0])))
    notes.append(
        "Times have the offsets that the files' own rules give, "
        f"{', '.join(offset_name(int(each)) for each in different[:4])}: to recover them, name the "
        "zone (--tz)."
    )
    return _Local(offsets=offsets)


def _common_step(lengths: np.ndarray) -> str | None:
    """The step, where all readings have the same one."""
    if len(lengths) == 0 or (lengths != lengths[0]).any():
        return None
    step = int(lengths[0])
    if step in (DAY, HOUR):
        return "D" if step == DAY else "h"
    return f"{step // MINUTE}min" if step < HOUR and step % MINUTE == 0 else None
