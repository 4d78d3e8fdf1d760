"""Two public datasets as published, through the readers that the experiments use."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from unsum.calendar import DAY, Calendar
from unsum.errors import ParameterError, require_choice
from unsum.panel import Panel
from unsum.tables.cer import DAY_0, read_cer
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.clock import Grid
from unsum.tables.importers.imported import Draft, Imported, finish
from unsum.tables.importers.records import LineSource, join_records
from unsum.tables.importers.units import multiply, settle_units
from unsum.tables.ledger import Ledger, count
from unsum.tables.source import open_source
from unsum.tables.uci import QUARTER, first_use, read_uci

_ABOUT_TABLES = ("columns", "name", "unit", "tz", "date_format", "calorific")


def import_cer(
    asked: Asked, *, first_day: int | None = None, n_days: int | None = None
) -> Imported:
    """Daily kWh of every meter that has all half hours."""
    asked.refuse(*_ABOUT_TABLES)
    paths = asked.paths()
    panel, left_out = read_cer(paths, first_day, n_days)
    low, high = ((int(edge) - DAY_0) // DAY for edge in panel.calendar.edges[[0, -1]])
    sources, lacking, outside = [], [], []
    for path in paths:
        meter, day = _read_keys(path)
        sources.append(LineSource(path, np.arange(1, len(day) + 1)))
        lacking.append(np.asarray(pc.is_in(meter, value_set=pa.array(left_out, pa.string()))))
        outside.append((day < low) | (day >= high))
    sizes = [len(each) for each in outside]
    ledger = Ledger(join_records(sources, sizes), sum(sizes))
    for code, masks, sentence in (
        ("outside-range", outside, "{} of other days."),
        ("no-usable-reading", lacking, f"{{}} of {count(len(left_out), 'meter')} that lack half "
         "hours of some day."),
    ):  # fmt: skip
        where = np.flatnonzero(np.concatenate(masks) & ledger.in_use)
        if len(where):
            text = sentence.format(count(len(where), "row"))
            names = left_out if masks is lacking else ()
            ledger.add(code, text, where, series=names, set_aside=where)
    notes = ["Values are kWh of half hours, added up by day; day 1 is 1 January 2009."]
    return _finish(asked, panel, ledger, notes)


def _read_keys(path: object) -> tuple[pa.Array, np.ndarray]:
    """The meter of every line, as text, and its day."""
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=["meter", "code", "kwh"]),
        parse_options=csv.ParseOptions(delimiter=" "),
        convert_options=csv.ConvertOptions(include_columns=["meter", "code"]),
    )
    return table["meter"].cast(pa.string()), np.asarray(table["code"]) // 100


def import_uci(asked: Asked, *, freq: str = "D") -> Imported:
    """kWh of every client by day, or by hour, over the whole days of the file."""
    asked.refuse(*_ABOUT_TABLES)
    require_choice("freq", freq, ("D", "h"))
    if len(asked.sources) > 1:
        raise ParameterError("the UCI table is one file; give one path.")
    (path,) = asked.paths()
    panel = read_uci(path, freq)
    first = open_source(path).columns[0]
    times = csv.read_csv(
        path,
        parse_options=csv.ParseOptions(delimiter=";"),
        convert_options=csv.ConvertOptions(
            include_columns=[first], column_types={first: pa.timestamp("us")}
        ),
    )
    begun = np.asarray(times.column(0).cast(pa.int64())) - QUARTER
    ledger = Ledger(LineSource(path, np.arange(2, len(begun) + 2)), len(begun))
    edges = panel.calendar.edges
    where = np.flatnonzero((begun < edges[0]) | (begun >= edges[-1]))
    if len(where):
        ledger.add("outside-range", f"{count(len(where), 'row')} of no whole day.", where,
                   set_aside=where)  # fmt: skip
    late = int((first_use(panel) > 0).sum())
    notes = ["Values are kW of quarter hours that end at their times, added up to kWh."]
    if late:
        notes.append(f"{count(late, 'client')} with zeros at first, as a client not there yet has.")
    return _finish(asked, panel, ledger, notes)


def _finish(asked: Asked, panel: Panel, ledger: Ledger, notes: list[str]) -> Imported:
    """Every value of a panel of kWh as a reading of one period."""
    scale = settle_units(np.zeros(len(ledger.reason), np.int64), ["kWh"], ledger, asked.to)
    calendar: Calendar = panel.calendar
    period = np.tile(np.arange(panel.n_periods), panel.n_series)
    series = np.repeat(np.arange(panel.n_series), panel.n_periods)
    draft = Draft(
        series=panel.names.cast(pa.string()).take(pa.array(series)),
        start=period,
        end=period + 1,
        total=multiply(panel.values.ravel(), scale.factor[ledger.in_use][0]),
        unit=scale.unit,
        freq=calendar.frequency.text,
    )
    return finish(asked, draft, Grid.of(calendar), ledger, [*notes, *scale.notes])
