"""Readings and further measures together: what is learned from both, and values that meet both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unsum.engine import map_blocks
from unsum.findings import MAX_DETAILS, Finding
from unsum.measures import Measures
from unsum.methods.nmf import levels
from unsum.projection import Projected, project
from unsum.readings import Readings
from unsum.traits import Traits, add_size

if TYPE_CHECKING:
    from unsum.intervals import Uncertainty
    from unsum.methods import Fit
    from unsum.recovery import Recovery

FREEDOM = 0.05  # of the level of a series: what a value may move even where it is zero


def choose_pupils(readings: Readings) -> tuple[np.ndarray, Readings]:
    """The series that can be learned from, by their places, and readings for all of them.

    Where a series has no reading but measures of its own, such as some days of each month, the
    whole interval is estimated from each, for the time of learning.
    """
    stand_ins = _stand_ins(readings)
    if not stand_ins:
        return readings.read, readings.take(readings.read)
    places = np.union1d(readings.read, np.array(sorted(stand_ins)))
    part = readings.take(places)
    series, start, stop, total = (
        [part.series_of_readings()], [part.start], [part.stop], [part.total],
    )  # fmt: skip
    soft = [np.zeros(part.n_readings, np.bool_) if part.estimated is None else part.estimated]
    for n, intervals in stand_ins.items():
        first, last, amounts = zip(*intervals, strict=True)
        series.append(np.full(len(first), np.searchsorted(places, n), np.int32))
        start.append(np.array(first, np.int32))
        stop.append(np.array(last, np.int32))
        total.append(np.array(amounts))
        soft.append(np.ones(len(first), np.bool_))
    owner = np.concatenate(series)
    order = np.lexsort((np.concatenate(start), owner))
    return places, replace(
        part,
        indptr=np.searchsorted(owner[order], np.arange(len(places) + 1)),
        start=np.concatenate(start)[order],
        stop=np.concatenate(stop)[order],
        total=np.concatenate(total)[order],
        estimated=np.concatenate(soft)[order],
    )


def _stand_ins(readings: Readings) -> dict[int, list[tuple[int, int, float]]]:
    """Disjoint intervals of series without readings, with totals in proportion."""
    measures = readings.further
    found: dict[int, list[tuple[int, int, float]]] = {}
    if measures is None or len(readings.read) == readings.n_series:
        return {}
    alone = list(measures.spans())
    for n, low, high, total in alone if alone or len(readings.read) else measures.shares():
        if readings.indptr[n] == readings.indptr[n + 1]:
            intervals = found.setdefault(n, [])
            if not intervals or low >= intervals[-1][1]:
                intervals.append((low, high, total))
    return found


def add_teachers(readings: Readings, pupils: Readings) -> Readings:
    """The pupils, and after them the groups whose totals are known.

    The load of a group has the shape that its members share, and is often known by the period.
    What stands in for readings counts as such here: there is nothing better to learn from.
    """
    import pyarrow as pa

    measures = readings.further
    if pupils.estimated is not None and readings.estimated is None:
        pupils = replace(pupils, estimated=None)
    if measures is None or not (teachers := measures.groups()):
        return pupils
    counts = np.array([len(start) for _, start, _, _ in teachers])
    names = [f"\x1fgroup {measures.set_names[place]}" for place, *_ in teachers]
    active = np.tile(np.array([0, pupils.n_periods], pupils.active.dtype), (len(teachers), 1))
    estimated = pupils.estimated
    if estimated is not None:
        estimated = np.concatenate([estimated, np.zeros(counts.sum(), np.bool_)])
    return replace(
        pupils,
        names=pa.array([*map(str, pupils.names.to_pylist()), *names]),
        indptr=np.concatenate([pupils.indptr, pupils.indptr[-1] + np.cumsum(counts)]),
        start=np.concatenate([pupils.start, *(start for _, start, _, _ in teachers)]),
        stop=np.concatenate([pupils.stop, *(stop for _, _, stop, _ in teachers)]),
        total=np.concatenate([pupils.total, *(total for *_, total in teachers)]),
        active=np.concatenate([pupils.active, active]),
        estimated=estimated,
        n_teachers=len(teachers),
    )


def teach_traits(
    traits: Traits | None, measures: Measures, places: np.ndarray, learning: Readings
) -> Traits:
    """The traits of pupils, with their size, and of teachers: those of members, by their levels.

    A group whose load is that of a few large members has the shape of large series, not of all.
    """
    pupils = learning[: len(places)]
    level = levels(pupils)
    sized = add_size(traits, pupils.names, level)
    rows = sized.rows(pupils.names)
    mixtures = np.zeros((learning.n_teachers, rows.shape[1]))
    for row, (place, *_) in zip(mixtures, measures.groups(), strict=True):
        members = measures.set_series[measures.set_ptr[place] : measures.set_ptr[place + 1]]
        own = np.flatnonzero(np.isin(places, members))
        if level[own].any():
            row[:] = level[own] @ rows[own] / level[own].sum()
    return sized.with_rows(learning.names[len(places) :].to_pylist(), mixtures)


def inform_fit(
    fit: Fit, pupils: Readings, measures: Measures, uncertainty: Uncertainty | None
) -> Fit:
    """The fit with what measures of the pupils tell, where the method can use it."""
    from unsum.methods.auto import AutoFit
    from unsum.methods.panel import PanelFit
    from unsum.population.uncertainty import Doubtful

    if not isinstance(fit, PanelFit | AutoFit):
        return fit
    doubtful = None if uncertainty is None else uncertainty.doubtful
    return fit.inform(pupils, measures, doubtful if isinstance(doubtful, Doubtful) else None)


def join(recovery: Recovery) -> Projected:
    """All values of a recovery with further measures: nearest to the method's that meet them."""
    from unsum.kernels.totals import meet_totals

    readings = recovery.readings
    places, pupils = choose_pupils(readings)
    values = np.empty((readings.n_series, readings.n_periods))
    for first, part, block in map_blocks(recovery.fill_own, pupils, recovery.threads):
        values[places[first : first + part.n_series]] = block
    measures = recovery.binding_further()
    _guess_others(places, measures, values)
    level = values.mean(axis=1, keepdims=True)
    periods = np.arange(readings.n_periods)
    idle = (periods < readings.active[:, :1]) | (periods >= readings.active[:, 1:])
    binding = recovery.binding(readings)
    freedom = np.where(idle, 0.0, values + FREEDOM * level)
    found = project(binding, measures, values, freedom)
    if not found.met and measures.own.any():  # what is left goes to the totals of groups
        again = project(binding, measures.keep(measures.own), found.values, freedom)
        found = replace(found, values=again.values)
    meet_totals(*binding.arrays, readings.active, found.values)
    gaps = measures.total - measures.forward(found.values)
    return replace(found, gaps=gaps)


def _guess_others(places: np.ndarray, measures: Measures, values: np.ndarray) -> None:
    """Where other series begin: with the usual shape, at the level that measures leave."""
    others = np.setdiff1d(np.arange(len(values)), places)
    if not len(others):
        return
    known = values[places]
    known = known[known.any(axis=1)]
    shape = np.ones(values.shape[1])
    if len(known):
        shape = np.mean(known / known.mean(axis=1, keepdims=True), axis=0)
    values[others] = 0.0
    left = np.maximum(measures.total - measures.forward(values), 0.0)
    unit = np.zeros(values.shape)
    unit[others] = shape
    about = measures.about()[others]
    room = about @ measures.forward(unit)
    level = np.divide(about @ left, room, out=np.zeros(len(others)), where=room > 0)
    values[others] = level[:, None] * shape


def gaps_finding(measures: Measures, found: Projected) -> tuple[Finding, ...]:
    """Which totals could not be met together with the readings, and by how much they are missed."""
    missed = np.flatnonzero(np.abs(found.gaps) > 1e-9 * measures.total)
    if found.met or not len(missed):
        return ()
    largest = missed[np.argsort(-np.abs(found.gaps[missed]), kind="stable")]
    size = max(float(measures.total.sum()), float(np.abs(found.gaps).sum()))
    share = float(np.abs(found.gaps).sum()) / size
    details = tuple(
        f"{measures.labels[i]}: total {measures.total[i]:g}, recovered "
        f"{measures.total[i] - found.gaps[i]:g}"
        for i in largest[:MAX_DETAILS]
    )
    cannot = "cannot be met together with the readings"
    sentence = (
        f"{len(missed):,} of {len(measures):,} totals beyond single series "
        f"{cannot if found.proven else 'were not met, though perhaps they could be'}; what is "
        f"recovered misses {share:.3g} of their sum."
    )
    return (Finding("total-gap", sentence, details=details),)
