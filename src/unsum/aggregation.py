"""The inverse verb: fine series in, readings out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow.compute as pc

from unsum.errors import ParameterError, require_count
from unsum.panel import Panel, cut_points
from unsum.readings import Readings
from unsum.recovery import Recovery


class Scheme(Protocol):
    """When a series is read: the edges between consecutive readings."""

    def cuts(self, name: object, n_periods: int) -> np.ndarray: ...


@dataclass(frozen=True)
class Periodic:
    """A reading every `every` periods, from a random first date per series, or a given one.

    What lies before the first and after the last date is uncovered, or with `ends` a reading.
    """

    every: int
    offset: int | None = None
    seed: int = 0
    ends: bool = False

    def __post_init__(self) -> None:
        require_count("every", self.every, 1)
        require_count("seed", self.seed, 0)
        if self.offset is not None and not 0 <= self.offset < self.every:
            raise ParameterError(
                f"offset must lie between 0 and {self.every - 1}; got {self.offset}."
            )

    def cuts(self, name: object, n_periods: int) -> np.ndarray:
        first = self.offset
        if first is None:
            first = int(_generator(self.seed, name).integers(self.every))
        return _with_ends(np.arange(first, n_periods + 1, self.every), n_periods, ends=self.ends)


@dataclass(frozen=True)
class AtRandom:
    """As many readings as one every `every` periods, at dates drawn uniformly per series."""

    every: int
    seed: int = 0
    ends: bool = False

    def __post_init__(self) -> None:
        require_count("every", self.every, 1)
        require_count("seed", self.seed, 0)

    def cuts(self, name: object, n_periods: int) -> np.ndarray:
        n_dates = min(max(2, round(n_periods / self.every)), n_periods + 1)
        drawn = _generator(self.seed, name).choice(n_periods + 1, n_dates, replace=False)
        return _with_ends(np.sort(drawn), n_periods, ends=self.ends)


@dataclass(frozen=True)
class Between:
    """The same cuts for every series."""

    edges: np.ndarray

    def cuts(self, name: object, n_periods: int) -> np.ndarray:  # noqa: ARG002
        return self.edges


def aggregate(
    values: Recovery | Panel | np.ndarray | Any, rule: Readings | Scheme | str | Sequence[Any]
) -> Readings:
    """Readings of fine values: over given readings' intervals, by a scheme, or by a calendar rule.

    Parameters
    ----------
    values
        A `Recovery`, a `Panel`, or an array (n_series, n_periods).
    rule
        `Readings`, whose intervals are taken; `Periodic` or `AtRandom`; a frequency such as
        `"MS"`; or a sequence of cuts.
    """
    if isinstance(values, Recovery):
        panel = values.panel()
    elif isinstance(values, Panel):
        panel = values
    else:
        panel = Panel.from_values(values)
        if isinstance(rule, Readings):  # the rows of an array are the series of the readings
            panel = Panel.from_values(values, rule.names, rule.calendar)
    if isinstance(rule, Readings):
        return _over_intervals(panel, rule)
    scheme: Any = rule
    if not hasattr(rule, "cuts"):
        scheme = Between(cut_points(panel.calendar, rule))
    cuts = [scheme.cuts(name, panel.n_periods) for name in panel.names.to_pylist()]
    sizes = np.array([max(0, len(edges) - 1) for edges in cuts])
    if not sizes.any():
        raise ParameterError(
            f"{rule} leaves no reading in {panel.n_periods} periods; read more often."
        )
    return Readings.from_arrays(
        np.repeat(np.arange(panel.n_series), sizes),
        *_intervals(cuts),
        _totals(panel, cuts),
        n_series=panel.n_series,
        n_periods=panel.n_periods,
        names=panel.names,
        calendar=panel.calendar,
    )


def _over_intervals(panel: Panel, readings: Readings) -> Readings:
    from unsum.kernels.totals import sum_readings

    if not np.array_equal(panel.calendar.edges, readings.calendar.edges):
        raise ParameterError("the values and the readings are not on the same periods.")
    values = panel.values
    if not panel.names.equals(readings.names):
        places = pc.index_in(readings.names.cast("string"), value_set=panel.names.cast("string"))
        if places.null_count:
            absent = readings.names.filter(places.is_null())[0].as_py()
            raise ParameterError(f"series {absent!r} of the readings is not among the values.")
        values = values[np.asarray(places)]
    totals = sum_readings(readings.indptr, readings.start, readings.stop, values)
    return readings.with_totals(totals)


def _intervals(cuts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.concatenate([edges[:-1] for edges in cuts])
    stops = np.concatenate([edges[1:] for edges in cuts])
    return starts, stops


def _totals(panel: Panel, cuts: list[np.ndarray]) -> np.ndarray:
    from unsum.kernels.totals import sum_readings

    sizes = [max(0, len(edges) - 1) for edges in cuts]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return np.asarray(sum_readings(indptr, *_intervals(cuts), panel.values))


def _generator(seed: int, name: object) -> np.random.Generator:
    """Random numbers that belong to a series' name, wherever it stands in the table."""
    digest = hashlib.sha256(str(name).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])


def _with_ends(cuts: np.ndarray, n_periods: int, *, ends: bool) -> np.ndarray:
    return np.unique(np.concatenate([[0], cuts, [n_periods]])) if ends else cuts
