"""Fine values: each is a reading of one step, which begins or ends at its time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from unsum.calendar import HOUR, Calendar, Frequency
from unsum.errors import TableError
from unsum.findings import MAX_DETAILS
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.clock import Clock, Grid, localise, name_step, read_clock
from unsum.tables.importers.columns import find_columns, is_called
from unsum.tables.importers.imported import Draft, Imported, finish, stop_if_bad
from unsum.tables.importers.joined import Joined
from unsum.tables.importers.reading import number_groups, read_sheet
from unsum.tables.importers.repeats import settle_repeats
from unsum.tables.importers.sheet import Sheet
from unsum.tables.importers.units import POWER, find_unit, multiply, settle_units, split_unit
from unsum.tables.ledger import count
from unsum.tables.panels import guess_frequency
from unsum.tables.source import Source

LONG = ("series", "time", "value")
EXTRA = ("unit", "quality")
HDF_TIME, HDF_FORMAT = "Read Date and End Time", "%d-%m-%Y %H:%M"
_CELL = "value of "


@dataclass(frozen=True)
class _Cells:
    """Values one after the other: whose, of which row, how much, and which are there at all."""

    names: list[str]
    codes: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    missing: np.ndarray

    def take(self, places: np.ndarray) -> _Cells:
        arrays = (self.codes, self.rows, self.values, self.missing)
        return _Cells(self.names, *(each[places] for each in arrays))


def import_nixtla(asked: Asked, *, freq: str | None = None) -> Imported:
    """A long table: series, the time a step begins, and its value."""
    return _import_long(asked, asked.open_table(), freq, ends=False)


def import_wide(asked: Asked, *, freq: str | None = None) -> Imported:
    """A wide table: the time a step begins, and a column of values per series."""
    return _import_wide(asked, asked.open_table(), freq, ends=False)


def import_end_stamped(asked: Asked, *, freq: str | None = None) -> Imported:
    """The same, long or wide, with the time that a step ends."""
    source = asked.open_table()
    build = _import_long if _is_long(asked, source) else _import_wide
    return build(asked, source, freq, ends=True)


def _is_long(asked: Asked, source: Source) -> bool:
    """Whether a table has a column of series and one of values, rather than one per series."""
    if asked.name is not None or {"series", "value"} & set(asked.columns):
        return True
    try:
        found = find_columns(source, asked, (), ("time", "series", "value"))
    except TableError:  # several columns look like values
        return False
    return {"series", "value"} <= set(found)


def _import_long(asked: Asked, source: Source, freq: str | None, *, ends: bool) -> Imported:
    asked.check_roles((*LONG, *EXTRA, *(["kind"] if ends else [])))
    columns = find_columns(source, asked, LONG, (*(["kind"] if ends else []), *EXTRA))
    layout = HDF_FORMAT if is_called(columns["time"], HDF_TIME) else None
    sheet = read_sheet(
        asked, source, LONG, columns=columns, date_format=layout, numbered=freq == "period"
    )
    if layout is not None and asked.date_format is None:
        sheet.notes.append(f"Times are read as {layout}, as ESB writes them.")
    sheet.judge(("series", "time"))
    codes, units = _quantities(sheet) if "kind" in sheet.labels else sheet.units("value")
    names, series = _name_series(sheet)
    cells = _Cells(
        names, series, np.arange(len(sheet)), sheet.numbers["value"], sheet.missing("value")
    )
    return _place(sheet, cells, codes, units, freq, ends=ends)


def _import_wide(asked: Asked, source: Source, freq: str | None, *, ends: bool) -> Imported:
    asked.check_roles(("time",))
    asked.refuse("name")
    time = find_columns(source, asked, ("time",))["time"]
    files = [source.file_column] if isinstance(source, Joined) else []
    names = [name for name in source.columns if name.strip() and name not in (time, *files)]
    if not names:
        raise TableError(f"{source.label} has no column of values beside {time!r}.")
    roles = {f"{_CELL}{name!r}": name for name in names}
    sheet = read_sheet(
        asked, source, (), columns={"time": time, **roles}, numbered=freq == "period"
    )
    sheet.notes[:] = [f"Columns: time from {time!r}, {count(len(names), 'series')} from the rest."]
    sheet.judge(("time",))
    cells = _Cells(
        names=names,
        codes=np.repeat(np.arange(len(names)), len(sheet)),
        rows=np.tile(np.arange(len(sheet)), len(names)),
        values=np.concatenate([sheet.numbers[role] for role in roles]),
        missing=np.concatenate([sheet.missing(role) for role in roles]),
    )
    own = {split_unit(name)[1] for name in names}  # one that all names end in
    unit = find_unit(asked.unit) if asked.unit is not None else own.pop() if len(own) == 1 else None
    return _place(sheet, cells, np.zeros(len(sheet), np.int64), [unit], freq, ends=ends)


def _quantities(sheet: Sheet) -> tuple[np.ndarray, list[str | None]]:
    """The unit of every row by the kind of its value; registers among them are set aside."""
    kinds = sheet.labels["kind"]
    register = np.array([*("register" in name.lower() for name in kinds.names), False])[kinds.codes]
    where = np.flatnonzero(register & sheet.ledger.in_use)
    if len(where):
        sheet.ledger.add(
            "not-a-total",
            f"{count(len(where), 'row')} with a read of a register, which is no total of a step; "
            "import them as registers.",
            where,
            details=(f"{sheet.where(i)}: {kinds.of(i)!r}" for i in where[:MAX_DETAILS]),
            set_aside=where,
        )
    codes, units = sheet.units("value")
    otherwise = len(kinds.names)
    own = [split_unit(name)[1] for name in kinds.names]
    if not any(own):
        return codes, units
    sheet.notes.append(f"Units are those that column {sheet.columns['kind']!r} names.")
    told = np.array(
        [place if own[place] else otherwise for place in range(otherwise)] + [otherwise]
    )
    return told[kinds.codes], [*own, units[0]]


def _name_series(sheet: Sheet) -> tuple[list[str], np.ndarray]:
    """The names of series; of several kinds of values in one table, with the kind."""
    series = sheet.labels["series"]
    kinds = sheet.labels.get("kind")
    if kinds is None or len(np.unique(kinds.codes[sheet.ledger.in_use])) < 2:
        return series.names, series.codes
    group = number_groups(series.codes, kinds.codes)
    first = np.unique(group, return_index=True)[1]
    names = [f"{series.of(i)}/{split_unit(kinds.of(i))[0]}" for i in first]
    return names, group


def _place(
    sheet: Sheet,
    cells: _Cells,
    codes: np.ndarray,
    units: list[str | None],
    freq: str | None,
    *,
    ends: bool,
) -> Imported:
    """Values on the calendar of their times, as readings of one step each."""
    asked, ledger = sheet.asked, sheet.ledger
    estimated = sheet.estimated()
    clock, moments = read_clock(sheet, ("time",))
    lines = moments["time"]
    if asked.tz is not None and clock.zone is None and ledger.in_use.any() and freq != "period":
        keys = cells.codes[: len(sheet)] if len(cells.rows) == len(sheet) else lines * 0
        lines, clock = localise(sheet, keys, lines, ends=ends), Clock(asked.tz)
    _judge_missing(sheet, cells)
    if ledger.fatal or not ledger.in_use.any():
        nothing = np.empty(0, np.int64)
        draft = Draft(pa.array([], pa.string()), nothing, nothing, nothing * 1.0)
        return finish(asked, draft, clock, ledger, sheet.notes)
    calendar, edges = _make_grid(sheet, lines, clock, freq, ends=ends)
    hours = np.diff(calendar.edges) / HOUR
    scale = settle_units(
        codes, [POWER.get(unit or "", unit) for unit in units], ledger, asked.to, asked.calorific
    )
    sheet.notes.extend(scale.notes)
    power = np.array([unit in POWER for unit in units])[codes]
    factor = np.where(power, hours[np.clip(edges - ends, 0, len(hours) - 1)], 1.0) * scale.factor
    if power[ledger.in_use].any():
        name = next(unit for unit in units if unit in POWER)
        sheet.notes.append(f"{name} became {POWER[name]}: multiplied by the hours of each step.")
    cells = cells.take(np.flatnonzero(~cells.missing & ledger.in_use[cells.rows]))
    kept = settle_repeats(
        ledger, cells.rows, cells.codes, edges[cells.rows], cells.values,
        lambda i: f"{cells.names[cells.codes[i]]!r}, {clock.text(lines[cells.rows[i]])}",
        remedy="keep the right one of each; local times that happen twice when clocks go back need "
        "their zone: tz='Europe/Dublin' (--tz Europe/Dublin)",
        estimated=None if estimated is None else estimated[cells.rows],
    )  # fmt: skip
    cells = cells.take(kept[ledger.in_use[cells.rows[kept]]])
    begin = edges[cells.rows].astype(np.int64) - ends
    draft = Draft(
        series=pa.array(cells.names, pa.string()).take(pa.array(cells.codes)),
        start=begin,
        end=begin + 1,
        total=multiply(cells.values, factor[cells.rows]),
        estimated=None if estimated is None else estimated[cells.rows],
        unit=scale.unit,
        freq=name_step(calendar.frequency),
    )
    return finish(asked, draft, Grid.of(calendar), ledger, sheet.notes)


def _judge_missing(sheet: Sheet, cells: _Cells) -> None:
    """Values that are not there: rows without any are set aside."""
    used = sheet.ledger.in_use
    lacking = np.bincount(cells.rows, cells.missing, minlength=len(sheet))
    size = len(cells.rows) // max(len(sheet), 1)
    where = np.flatnonzero((lacking > 0) & used)
    if len(where):
        sheet.ledger.add(
            "no-value",
            f"{count(int(lacking[where].sum()), 'value')} missing.",
            where,
            set_aside=np.flatnonzero((lacking == size) & used),
        )


def _make_grid(
    sheet: Sheet, lines: np.ndarray, clock: Clock, freq: str | None, *, ends: bool
) -> tuple[Calendar, np.ndarray]:
    """The calendar of the times, and the edge of each row."""
    used = lines[sheet.ledger.in_use]
    try:
        step = Frequency.parse(freq) if freq is not None else guess_frequency(used, clock.zone)
    except TableError:  # because of rows that cannot be used, if there are some
        stop_if_bad(sheet.ledger, drop_bad=sheet.asked.drop_bad)
        raise
    first, last = int(used.min()) - ends, int(used.max()) + (not ends)
    anchor = None if step.numbered else int(clock.to_wall(used[used.argmin()][None])[0])
    calendar = Calendar.covering(step, clock.zone, first, last, anchor)
    what = "end" if ends else "begin"
    how = "as told" if freq is not None else "by their times"
    name = name_step(step)
    sheet.notes.append(f"Values are of steps of {name!r}, {how}, that {what} at their times.")
    edges, exact = calendar.locate(lines)
    where = np.flatnonzero(~exact & sheet.ledger.in_use)
    if len(where):
        sheet.ledger.add(
            "off-grid",
            f"{count(len(where), 'row')} with a time that is not on a grid of {name!r}; "
            "correct it, or give the step: freq='h' (--freq h).",
            where,
            details=(f"{sheet.where(i)}: {clock.text(lines[i])}" for i in where[:MAX_DETAILS]),
            set_aside=where,
        )
    return calendar, edges
