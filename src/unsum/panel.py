"""Fine series: values at every period, with names and a calendar; and what sums of them need."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum.calendar import Calendar, TimeZone, moment_of
from unsum.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Panel:
    """Values (n_series, n_periods) of named series on a calendar.

    `covered` says, for recovered values, which of them some reading covers.
    """

    names: pa.Array
    calendar: Calendar
    values: np.ndarray
    covered: np.ndarray | None = None

    @classmethod
    def from_values(cls, values: Any, names: Any = None, calendar: Calendar | None = None) -> Panel:
        """A panel from an array; series and periods are numbered where not named."""
        import pyarrow as pa

        try:
            array = np.ascontiguousarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(
                f"values must be an array of numbers; got a {type(values).__name__}. Tables are "
                "read with read_panel."
            ) from None
        if array.ndim != 2 or not array.size:
            raise ParameterError(
                f"values must be an array (n_series, n_periods); got shape {array.shape}."
            )
        if not np.isfinite(array).all() or array.min() < 0:
            raise ParameterError("values must be finite and nonnegative.")
        labels = pa.array(np.arange(len(array))) if names is None else pa.array(names)
        grid = calendar or Calendar.numbered(array.shape[1])
        if len(labels) != len(array) or grid.n_periods != array.shape[1]:
            raise ParameterError(
                f"{array.shape} values do not fit {len(labels)} names and {grid.n_periods} periods."
            )
        return cls(labels, grid, array)

    @property
    def n_series(self) -> int:
        return len(self.values)

    @property
    def n_periods(self) -> int:
        return self.calendar.n_periods

    def totals(self, rule: str | Sequence[Any] | np.ndarray) -> pa.Table:
        """Totals by a calendar rule or between cuts: series, start, end, total.

        Where coverage is known, `covered` is the share of periods that readings cover.
        """
        return self.totals_between(cut_points(self.calendar, rule))

    def totals_between(self, cuts: np.ndarray) -> pa.Table:
        """Totals between edges of the calendar, given by their places."""
        import pyarrow as pa

        n_intervals = len(cuts) - 1
        every = np.tile(np.arange(n_intervals), self.n_series)
        table = pa.table(
            {
                "series": self.names.take(
                    pa.array(np.repeat(np.arange(self.n_series), n_intervals))
                ),
                "start": self.calendar.label_edges(cuts[:-1]).take(pa.array(every)),
                "end": self.calendar.label_edges(cuts[1:]).take(pa.array(every)),
                "total": pa.array(sum_between(self.values, cuts).ravel()),
            }
        )
        if self.covered is not None:
            share = sum_between(self.covered, cuts) / np.diff(cuts)
            table = table.append_column("covered", pa.array(share.ravel()))
        return table


def sum_between(values: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Sums over the periods between consecutive cuts, along the last axis."""
    return np.stack(
        [values[..., low:high].sum(axis=-1) for low, high in itertools.pairwise(cuts)],
        axis=-1,
    )


def cut_points(calendar: Calendar, rule: str | Sequence[Any] | np.ndarray) -> np.ndarray:
    """Edges of a calendar from a frequency, or from dates or period numbers."""
    if isinstance(rule, str):
        return calendar.cuts(rule)
    if not isinstance(rule, Iterable):
        raise ParameterError(f"a rule is a step such as 'MS', or a list of cuts; got {rule!r}.")
    cuts = np.unique(np.array([_edge(calendar, cut) for cut in rule], np.int64))
    if len(cuts) < 2 or cuts[0] < 0 or cuts[-1] > calendar.n_periods:
        raise ParameterError(
            f"cuts must be at least two edges between {calendar.text(0)} and "
            f"{calendar.text(calendar.n_periods)}."
        )
    return cuts


def _edge(calendar: Calendar, cut: Any) -> int:
    moment = moment_of(cut)
    if calendar.frequency.numbered:
        return moment - int(calendar.edges[0])
    if isinstance(cut, int | np.integer):
        raise ParameterError(f"the cut {cut} must be a date: these periods have dates.")
    if calendar.tz is not None:
        moment = int(TimeZone(calendar.tz, moment, moment).to_utc(np.array([moment]))[0][0])
    edge, exact = calendar.locate(np.array([moment]))
    if not exact[0]:
        raise ParameterError(f"the cut {cut} is not between two periods of the calendar.")
    return int(edge[0])
