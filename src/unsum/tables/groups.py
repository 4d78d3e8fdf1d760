"""Totals of groups of series: which series are in which group, and what the groups sum to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.errors import ParameterError, TableError
from unsum.findings import Finding
from unsum.measures import Measures
from unsum.readings import Readings
from unsum.tables.intake import Intake, take_in
from unsum.tables.rows import Options
from unsum.tables.source import open_source


def take_in_groups(readings: Readings, groups: Any, totals: Any, **options: Any) -> Intake:
    """Judge a file or dataframe of totals of groups, and add them to readings."""
    pairs = _read_pairs(groups)
    columns = {"series": "group"} | dict(options.pop("columns", {}))
    source = Path(totals) if isinstance(totals, str) else totals
    intake = take_in(source, Options.on(readings.calendar, columns=columns, **options))
    if intake.usable is None:
        return Intake(intake.findings, intake.source, None)
    loads = intake.usable
    used = _members_of(loads, pairs)
    everyone = _with_members(readings, used)
    more = _members_finding(readings, everyone)
    about = tuple(
        replace(each, sentence=f"totals of groups: {each.sentence}") for each in intake.findings
    )
    kept = replace(everyone.findings, items=everyone.findings.items + more + about)
    measures = measure_groups(everyone, loads, used)
    if everyone.further is not None:
        measures = everyone.further.join(measures)
    usable = replace(everyone, further=measures, findings=kept)
    return Intake(intake.findings, intake.source, usable)


def measure_groups(
    readings: Readings, loads: Readings, groups: Mapping[str, list[str]]
) -> Measures:
    """The totals of groups as measures; the series of `loads` are the groups."""
    place = {str(name): n for n, name in enumerate(readings.names.to_pylist())}
    names = tuple(map(str, loads.names.to_pylist()))
    members = [np.array(sorted({place[each] for each in groups[name]}), np.int64) for name in names]
    sets = loads.series_of_readings()
    calendar, n = loads.calendar, loads.n_readings
    labels = tuple(
        f"group {names[s]!r}, {calendar.text(int(a))} to {calendar.text(int(b))}"
        for s, a, b in zip(sets, loads.start, loads.stop, strict=True)
    )
    return Measures(
        n_series=readings.n_series,
        n_periods=readings.n_periods,
        set_ptr=np.concatenate([[0], np.cumsum([len(each) for each in members])]),
        set_series=np.concatenate(members),
        measure=np.arange(n),
        piece_set=sets.astype(np.int64),
        start=loads.start,
        stop=loads.stop,
        weight=np.ones(n),
        total=loads.total,
        labels=labels,
        set_names=names,
        estimated=np.zeros(n, np.bool_) if loads.estimated is None else loads.estimated,
        own=np.zeros(n, np.bool_),
    )


def _read_pairs(source: Any) -> dict[str, list[str]]:
    """The members of every group."""
    groups: dict[str, list[str]] = {}
    if isinstance(source, Mapping) and set(source) != {"series", "group"}:
        for group, members in source.items():
            if isinstance(members, str) or not isinstance(members, Iterable):
                raise ParameterError(
                    f"the members of group {group!r} must be a list of series; got {members!r}."
                )
            groups[str(group)] = list(dict.fromkeys(map(str, members)))
    else:
        opened = open_source(Path(source) if isinstance(source, str) else source)
        for column in ("series", "group"):
            if column not in opened.columns:
                raise TableError(
                    f"{opened.label} has no column {column!r} (it has "
                    f"{', '.join(opened.columns[:8])}); a table of groups has the columns series "
                    "and group, and a row for each pair."
                )
        for table in opened.texts():
            pairs = zip(table["series"].to_pylist(), table["group"].to_pylist(), strict=True)
            for series, group in pairs:
                if not series or not group:
                    raise TableError(
                        f"{opened.label} has a row with series {series!r} and group {group!r}; "
                        "fill in both."
                    )
                groups.setdefault(group, []).append(series)
        opened.refuse_malformed()
        groups = {group: list(dict.fromkeys(members)) for group, members in groups.items()}
    empty = [group for group, members in groups.items() if not members]
    if empty or not groups:
        raise TableError(f"the groups have no members{f': {empty[0]!r}' if empty else ''}.")
    return groups


def _members_of(loads: Readings, groups: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The members of the groups that have totals."""
    names = list(map(str, loads.names.to_pylist()))
    unknown = [name for name in names if name not in groups]
    if unknown:
        raise TableError(
            f"group {unknown[0]!r} has totals but no members ({len(unknown):,} groups have none); "
            "add rows for it to the table of groups, or remove its totals."
        )
    return {name: groups[name] for name in names}


def _with_members(readings: Readings, groups: Mapping[str, list[str]]) -> Readings:
    """The readings with all members of groups among the series, in the order of their names."""
    place = {str(name) for name in readings.names.to_pylist()}
    others = sorted({each for members in groups.values() for each in members} - place)
    if not others:
        return readings
    try:
        names = pa.concat_arrays([readings.names, pa.array(others).cast(readings.names.type)])
    except pa.ArrowInvalid:
        raise ParameterError(
            f"the member {others[0]!r} of a group is not among the series, whose names are "
            f"{readings.names.type}; write it the same way."
        ) from None
    order = np.asarray(pc.sort_indices(names))
    counts = np.concatenate([np.diff(readings.indptr), np.zeros(len(others), np.int64)])[order]
    whole = np.tile(np.array([0, readings.n_periods], readings.active.dtype), (len(others), 1))
    further, also, moved = readings.further, readings.also, np.argsort(order)
    if also is not None:
        also = np.column_stack([moved[also[:, 0]], also[:, 1:]])
        also = also[np.argsort(also[:, 0], kind="stable")]
    bounded = readings.bounded
    if bounded is not None:
        bounded = np.concatenate([bounded, np.zeros((len(others), 2), np.bool_)])[order]
    return replace(
        readings,
        also=also,
        bounded=bounded,
        further=None if further is None else further.move(moved, len(names)),
        names=names.take(pa.array(order)),
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        active=np.concatenate([readings.active, whole])[order],
    )


def _members_finding(before: Readings, after: Readings) -> tuple[Finding, ...]:
    added = np.setdiff1d(np.arange(after.n_series), after.read)
    if before.n_series == after.n_series or not len(added):
        return ()
    names = after.names.take(pa.array(added)).to_pylist()
    sentence = f"{len(added):,} members of groups have no readings of their own."
    return (Finding("no-own-reading", sentence, series=tuple(map(str, names[:1000]))),)
