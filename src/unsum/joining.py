"""Readings and further measures together: what is learned from both, and values that meet both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unsum.engine import map_blocks
from unsum.findings import MAX_DETAILS, Finding
from unsum.measures import Measures
from unsum.projection import Projected, project
from unsum.readings import Readings

if TYPE_CHECKING:
    from unsum.recovery import Recovery

FREEDOM = 0.05  # of the level of a series: what a value may move even where it is zero


def add_teachers(readings: Readings) -> Readings:
    """The series that have readings, and after them the groups whose totals are known.

    The load of a group has the shape that its members share, and is often known by the period.
    """
    import pyarrow as pa

    own = readings.take(readings.read)
    measures = readings.further
    if measures is None or not (teachers := measures.groups()):
        return own
    counts = np.array([len(start) for _, start, _, _ in teachers])
    names = [f"group {name}" for name, *_ in teachers]
    active = np.tile(np.array([0, own.n_periods], own.active.dtype), (len(teachers), 1))
    estimated = own.estimated
    if estimated is not None:
        estimated = np.concatenate([estimated, np.zeros(counts.sum(), np.bool_)])
    return replace(
        own,
        names=pa.array([*map(str, own.names.to_pylist()), *names]),
        indptr=np.concatenate([own.indptr, own.indptr[-1] + np.cumsum(counts)]),
        start=np.concatenate([own.start, *(start for _, start, _, _ in teachers)]),
        stop=np.concatenate([own.stop, *(stop for _, _, stop, _ in teachers)]),
        total=np.concatenate([own.total, *(total for *_, total in teachers)]),
        active=np.concatenate([own.active, active]),
        estimated=estimated,
        n_teachers=len(teachers),
    )


def join(recovery: Recovery) -> Projected:
    """All values of a recovery with further measures: nearest to the method's that meet them."""
    from unsum.kernels.totals import meet_totals

    readings, measures = recovery.readings, recovery.readings.further
    assert measures is not None
    known = readings.take(readings.read)
    values = np.empty((readings.n_series, readings.n_periods))
    for first, part, block in map_blocks(recovery.fill_own, known, recovery.threads):
        values[readings.read[first : first + part.n_series]] = block
    measures = measures.binding()
    _guess_others(readings, measures, values)
    level = values.mean(axis=1, keepdims=True)
    periods = np.arange(readings.n_periods)
    idle = (periods < readings.active[:, :1]) | (periods >= readings.active[:, 1:])
    binding = recovery.binding(readings)
    found = project(binding, measures, values, np.where(idle, 0.0, values + FREEDOM * level))
    meet_totals(*binding.arrays, readings.active, found.values)
    gaps = measures.total - measures.forward(found.values)
    return replace(found, gaps=gaps)


def _guess_others(readings: Readings, measures: Measures, values: np.ndarray) -> None:
    """Where series without readings begin: the usual shape, at the level that measures leave."""
    others = np.setdiff1d(np.arange(readings.n_series), readings.read)
    if not len(others):
        return
    known = values[readings.read]
    known = known[known.any(axis=1)]
    shape = np.ones(readings.n_periods)
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


def gaps_finding(readings: Readings, found: Projected) -> tuple[Finding, ...]:
    """Which totals could not be met together with the readings, and by how much they are missed."""
    measures = readings.further
    if measures is None or found.met:
        return ()
    measures = measures.binding()
    missed = np.flatnonzero(np.abs(found.gaps) > 1e-9 * measures.total)
    largest = missed[np.argsort(-np.abs(found.gaps[missed]), kind="stable")]
    share = float(np.abs(found.gaps).sum() / measures.total.sum())
    details = tuple(
        f"{measures.labels[i]}: total {measures.total[i]:g}, recovered "
        f"{measures.total[i] - found.gaps[i]:g}"
        for i in largest[:MAX_DETAILS]
    )
    sentence = (
        f"{len(missed):,} of {len(measures):,} totals beyond single series cannot be met together "
        f"with the readings; what is recovered misses {share:.2%} of them in sum."
    )
    return (Finding("total-gap", sentence, details=details),)
