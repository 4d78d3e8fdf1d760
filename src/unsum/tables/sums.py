"""Recovered series added up: over calendar steps, and over series, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from unsum.engine import block_size
from unsum.errors import ParameterError, TableError
from unsum.intervals import Asking, certain_sums
from unsum.panel import sum_between
from unsum.population.uncertainty import Asked
from unsum.readings import Readings
from unsum.recovery import Recovery

MAX_SLOTS = 20_000  # sums of groups that are handled at once


def sum_series(recovery: Recovery, cuts: np.ndarray) -> pa.Table:
    """Totals of every series between cuts: series, start, end, total, covered, lower, upper."""
    tables = []
    for first, part in _parts(recovery.readings):
        values = recovery.values_of(first, part)
        sums = sum_between(values, cuts)
        columns = {"total": sums, "covered": sum_between(part.covered(), cuts) / np.diff(cuts)}
        bounds = recovery.bound(first, part, cuts, sums)
        if bounds is not None:
            columns |= {"lower": bounds.lower, "upper": bounds.upper}
        tables.append(_table("series", part.names, part, cuts, columns))
    return pa.concat_tables(tables)


def sum_groups(recovery: Recovery, cuts: np.ndarray, by: Any) -> pa.Table:
    """Totals over groups of series: group, start, end, total, covered, lower, upper."""
    readings = recovery.readings
    names, groups = group_series(readings, by)
    shape = (len(names), len(cuts) - 1)
    sums, covered = np.zeros(shape), np.zeros(shape)
    for first, part in _parts(readings):
        own = groups[first : first + part.n_series]
        np.add.at(sums, own, sum_between(recovery.values_of(first, part), cuts))
        np.add.at(covered, own, sum_between(part.covered(), cuts))
    sizes = np.bincount(groups, minlength=len(names))
    columns = {"total": sums, "covered": covered / sizes[:, None] / np.diff(cuts)}
    if recovery.interval is not None and recovery.uncertainty is not None:
        lower, upper = np.empty(shape), np.empty(shape)
        step = max(1, MAX_SLOTS // len(names))
        for low in range(0, shape[1], step):
            some = slice(low, low + step)
            bounds = recovery.uncertainty.bound_groups(
                _ask_between(readings, groups, cuts[low : low + step + 1]), sums[:, some].ravel(),
                recovery.interval,
            )  # fmt: skip
            lower[:, some] = bounds.lower.reshape(len(names), -1)
            upper[:, some] = bounds.upper.reshape(len(names), -1)
        columns |= {"lower": lower, "upper": upper}
    return _table("group", names, readings, cuts, columns)


def _ask_between(readings: Readings, groups: np.ndarray, cuts: np.ndarray) -> Iterator[Asking]:
    count = len(cuts) - 1
    for first, part in _parts(readings):
        group = groups[first : first + part.n_series]
        slot = (group[:, None] * count + np.arange(count)).ravel()
        least, most = certain_sums(part, cuts)
        asked = Asked.between(cuts, part.n_series)
        yield Asking(first, part, asked, slot, least.ravel(), most.ravel())


def sum_tails(recovery: Recovery, *, together: bool) -> pa.Table:
    """What follows the last reading of every series, or of all in sum.

    A table with series, start, end, total, lower, upper of the series that have such a tail.
    """
    readings = recovery.readings
    last = readings.ends()
    end = np.minimum(readings.active[:, 1], readings.n_periods)
    tails = np.flatnonzero(last < end)
    totals = np.empty(readings.n_series)
    lower, upper = np.empty(readings.n_series), np.empty(readings.n_series)
    asking, sure = [], recovery.uncertainty if recovery.interval is not None else None
    for first, part in _parts(readings):
        own = slice(first, first + part.n_series)
        after = np.arange(part.n_periods) >= last[own, None]
        totals[own] = np.sum(np.where(after, recovery.values_of(first, part), 0.0), axis=1)
        asked = _ask_tails(first, part, last[own], end[own])
        if sure is not None and not together:
            bounds = sure.bound_outside(asked, totals[own], cast(float, recovery.interval))
            lower[own], upper[own] = bounds.lower, bounds.upper
        asking.append(asked)
    columns = {"total": np.array([totals[tails].sum()]) if together else totals[tails]}
    if sure is not None and together:
        bounds = sure.bound_groups(asking, columns["total"], cast(float, recovery.interval))
        columns |= {"lower": bounds.lower, "upper": bounds.upper}
    elif sure is not None:
        columns |= {"lower": lower[tails], "upper": upper[tails]}
    label = readings.calendar.label_edges
    if together:
        empty = not len(tails)
        first_end = int(last[tails].min()) if not empty else readings.n_periods
        names, start, stop = (
            pa.array(["all"]),
            label(np.array([first_end])),
            label(np.array([readings.n_periods])),
        )
        return pa.table({"group": names, "start": start, "end": stop, **columns})
    names = readings.names.take(pa.array(tails))
    return pa.table(
        {"series": names, "start": label(last[tails]), "end": label(end[tails]), **columns}
    )


def tell_sources(recovery: Recovery) -> pa.Table:
    """What the dates of each series show, and its shares: its own, the panel's, and open."""
    if recovery.uncertainty is None:
        raise ParameterError(
            f"this recovery by {recovery.method!r} has no model to tell sources by; recover with "
            "method 'auto', or with 'panel' and an interval."
        )
    shares = [recovery.uncertainty.sources(*each) for each in _parts(recovery.readings)]
    own, panel, left = np.concatenate(shares).T
    readings = recovery.readings
    heads, lengths = readings.indptr[:-1], readings.stop - readings.start
    return pa.table(
        {
            "series": readings.names,
            "readings": np.diff(readings.indptr),
            "covered": np.add.reduceat(lengths, heads) / readings.n_periods,
            "longest": np.maximum.reduceat(lengths, heads),
            "hides": np.gcd.reduceat(lengths, heads),
            "own": own,
            "panel": panel,
            "open": left,
        }
    )


def _ask_tails(first: int, part: Readings, last: np.ndarray, end: np.ndarray) -> Asking:
    """The tail of every series, of no length where there is none, all in one slot."""
    places = np.arange(part.n_series + 1)
    slot, nothing = np.zeros(part.n_series, np.int64), np.zeros(part.n_series)
    most = np.where(last < end, np.inf, 0.0)
    return Asking(first, part, Asked(places, last, np.maximum(last, end)), slot, nothing, most)


def group_series(readings: Readings, by: Any) -> tuple[pa.Array, np.ndarray]:
    """The names of the groups, and the number of each series' group."""
    if isinstance(by, str):
        if by != "all":
            raise ParameterError(f"by must be 'all', or the group of each series; got {by!r}.")
        return pa.array(["all"]), np.zeros(readings.n_series, np.int64)
    if isinstance(by, Mapping):
        lookup = {str(name): group for name, group in by.items()}
        absent = [name for name in readings.names.to_pylist() if str(name) not in lookup]
        if absent:
            raise ParameterError(
                f"series {absent[0]!r} has no group ({len(absent):,} have none); name one for "
                "every series."
            )
        by = [lookup[str(name)] for name in readings.names.to_pylist()]
    try:
        labels = pa.array(list(by))
    except (TypeError, pa.ArrowException):
        raise ParameterError(
            f"by must be 'all', or the group of each series; got a {type(by).__name__}."
        ) from None
    if len(labels) != readings.n_series or labels.null_count:
        raise ParameterError(
            f"by must give a group to each of the {readings.n_series:,} series; got {len(labels):,}"
            f" of which {labels.null_count:,} are missing."
        )
    encoded = labels.dictionary_encode()
    return encoded.dictionary, np.asarray(encoded.indices, np.int64)


def read_groups(path: Path) -> dict[str, str]:
    """The group of each series, from a table with columns series and group."""
    from unsum.tables.source import open_source

    source = open_source(path)
    for column in ("series", "group"):
        if column not in source.columns:
            raise TableError(
                f"{path} has no column {column!r} (it has {', '.join(source.columns)}); a table of "
                "groups has the columns series and group."
            )
    groups: dict[str, str] = {}
    for table in source.texts():
        for name, group in zip(
            table["series"].to_pylist(), table["group"].to_pylist(), strict=True
        ):
            if groups.setdefault(name, group) != group:
                raise TableError(f"{path} has series {name!r} in two groups; choose one.")
    source.refuse_malformed()
    return groups


def _parts(readings: Readings) -> Iterator[tuple[int, Readings]]:
    first = 0
    for part in readings.parts(block_size(readings.n_periods)):
        yield first, part
        first += part.n_series


def _table(
    label: str,
    names: pa.Array,
    readings: Readings,
    cuts: np.ndarray,
    columns: dict[str, np.ndarray],
) -> pa.Table:
    n, count = len(names), len(cuts) - 1
    every = pa.array(np.tile(np.arange(count), n))
    return pa.table(
        {
            label: names.take(pa.array(np.repeat(np.arange(n), count))),
            "start": readings.calendar.label_edges(cuts[:-1]).take(every),
            "end": readings.calendar.label_edges(cuts[1:]).take(every),
            **{name: pa.array(values.ravel()) for name, values in columns.items()},
        }
    )
