"""Readings of any linear kind: weighted sums, tariff registers, chosen periods, several series.

What is of one series and one interval becomes an ordinary reading, also where several rows together
make one (the registers of a meter sum to its total); everything else becomes a measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from unsum.calendar import Calendar
from unsum.conflicts import find_conflict
from unsum.errors import ParameterError, ReadingsError, require_count
from unsum.findings import Finding, Findings
from unsum.measures import Measures
from unsum.pieces import Pieces
from unsum.projection import project
from unsum.readings import Readings
from unsum.tables.untangle import Conflict, untangle

LISTED = 6  # rows of a conflict that are named


class LinearReadings:
    """Totals `matrix @ values`, with values in order of series and then of periods.

    `recover` takes these in place of `Readings`. Readings that no nonnegative series can meet
    together are refused, with the fewest of them that cannot.

    Parameters
    ----------
    matrix
        Nonnegative weights (n_readings, n_series * n_periods): an array or a scipy sparse matrix.
        `values.ravel()` of an array (n_series, n_periods) is what it multiplies.
    total
        The totals, nonnegative.
    n_series, n_periods
        The size of the panel.
    names
        Of the series; numbers by default.
    calendar
        The periods; numbers by default.
    labels
        What each reading is called in messages.
    """

    def __init__(
        self,
        matrix: Any,
        total: Any,
        *,
        n_series: int,
        n_periods: int,
        names: Any = None,
        calendar: Calendar | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        from scipy.sparse import csr_array

        try:
            self.total = np.asarray(total, np.float64)
            self.matrix = csr_array(matrix, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"matrix and total must be arrays of numbers: {error}.") from None
        require_count("n_series", n_series, 1)
        require_count("n_periods", n_periods, 1)
        if self.total.ndim != 1:
            raise ParameterError("total must have one dimension, a total for each row.")
        self.n_series, self.n_periods = n_series, n_periods
        self.names, self.calendar = names, calendar or Calendar.numbered(n_periods)
        n = len(self.total)
        self.labels = [f"reading {r}" for r in range(n)] if labels is None else list(labels)
        self._check()
        self.matrix.sum_duplicates()
        self.matrix.eliminate_zeros()

    def _check(self) -> None:
        shape = (len(self.total), self.n_series * self.n_periods)
        if self.matrix.shape != shape:
            raise ParameterError(
                f"the matrix must have a row for each of {len(self.total)} totals and a column for "
                f"each of {self.n_series} x {self.n_periods} values; its shape is "
                f"{self.matrix.shape}."
            )
        if len(self.labels) != len(self.total) or self.calendar.n_periods != self.n_periods:
            raise ParameterError("labels and calendar must fit the totals and the periods.")
        for name, array in (("total", self.total), ("matrix", self.matrix.data)):
            if not (np.isfinite(array).all() and (array >= 0).all()):
                raise ParameterError(f"{name} must be finite and nonnegative.")
        if self.matrix.nnz and self.matrix.data.min() < 1e-12 * self.matrix.data.max():
            raise ParameterError("the weights of the matrix differ by more than 1e12.")

    @classmethod
    def from_registers(
        cls, registers: Mapping[str, Readings], windows: Mapping[str, Any]
    ) -> LinearReadings:
        """Readings of registers that count in windows of their own, such as peak and off-peak.

        Parameters
        ----------
        registers
            The readings of each register, all on the same calendar; a meter has the same name in
            each of them.
        windows
            For each register, which periods it counts in (n_periods booleans).
        """
        import pyarrow as pa
        from scipy.sparse import csr_array

        if set(registers) != set(windows) or not registers:
            raise ParameterError("registers and windows must have the same names, at least one.")
        calendar = next(iter(registers.values())).calendar
        for register, readings in registers.items():
            idle = (readings.active[:, 0] > 0) | (readings.active[:, 1] < readings.n_periods)
            if readings.further is not None or readings.estimated is not None or idle.any():
                raise ParameterError(
                    f"the readings of register {register!r} must be plain: without qualities, "
                    "active times, overlaps or groups."
                )
        try:
            meters = sorted({m for each in registers.values() for m in each.names.to_pylist()})
        except TypeError:
            raise ParameterError("meters must have text for names, or numbers, not both.") from None
        place = {name: n for n, name in enumerate(meters)}
        rows, columns, labels = [], [], []
        total: list[float] = []
        for register, readings in registers.items():
            readings = readings.on(calendar)
            counts = np.asarray(windows[register], np.bool_)
            if counts.shape != (calendar.n_periods,):
                raise ParameterError(
                    f"the window of {register!r} must tell of {calendar.n_periods} periods; it has "
                    f"shape {counts.shape}."
                )
            names = readings.names.to_pylist()
            for n, start, stop, amount in zip(
                readings.series_of_readings(), readings.start, readings.stop, readings.total,
                strict=True,
            ):  # fmt: skip
                periods = start + np.flatnonzero(counts[start:stop])
                rows.append(np.full(len(periods), len(total)))
                columns.append(place[names[n]] * calendar.n_periods + periods)
                total.append(amount)
                span = f"{calendar.text(int(start))} to {calendar.text(int(stop))}"
                labels.append(f"register {register!r} of {names[n]!r}, {span}")
        where = (np.concatenate(rows), np.concatenate(columns))
        shape = (len(total), len(meters) * calendar.n_periods)
        matrix = csr_array((np.ones(len(where[0])), where), shape=shape)
        return cls(
            matrix, total, n_series=len(meters), n_periods=calendar.n_periods,
            names=pa.array(meters), calendar=calendar, labels=labels,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.total)

    def __repr__(self) -> str:
        return (
            f"LinearReadings({len(self):,} readings of {self.n_series:,} series over "
            f"{self.n_periods:,} periods)"
        )

    def to_readings(self) -> Readings:
        """Ordinary readings where rows are or make such, and measures for the rest."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            names = pa.array(np.arange(self.n_series) if self.names is None else self.names)
        except (TypeError, pa.ArrowException) as error:
            raise ParameterError(f"names must be all text or all numbers: {error}.") from None
        if len(names) != self.n_series or len(names.unique()) != self.n_series:
            raise ParameterError(f"names must be {self.n_series} different names.")
        order = np.asarray(pc.sort_indices(names))
        pieces = Pieces.of(self.matrix, self.n_periods, np.argsort(order))
        self._refuse_empty(pieces)
        indptr, start, stop, total, rest = self._disjoint(pieces)
        readings = Readings(
            names=names.take(pa.array(order)), calendar=self.calendar, indptr=indptr, start=start,
            stop=stop, total=total,
            active=np.tile(np.array([0, self.n_periods], np.int32), (self.n_series, 1)),
            also=rest[:, :3].astype(np.int64) if len(rest) else None,
            findings=Findings(rows_read=len(self)),
        )  # fmt: skip
        measures = self._measures(pieces, rest)
        if len(measures):
            self._refuse_conflicts(readings, measures)
        return self._leave_out(readings, measures, np.unique(pieces.series))

    def _leave_out(self, readings: Readings, measures: Measures, known: np.ndarray) -> Readings:
        """Without the series that no reading tells anything about."""
        findings = readings.findings
        unknown = np.setdiff1d(np.arange(self.n_series), known)
        if len(unknown):
            import pyarrow as pa

            names = readings.names.take(pa.array(unknown)).to_pylist()
            sentence = f"{len(unknown):,} series that no reading tells anything about."
            finding = Finding("no-usable-reading", sentence, series=tuple(map(str, names)))
            findings = replace(findings, items=(*findings.items, finding))
            measures, readings = measures.take(known), readings.take(known)
        return replace(readings, further=measures if len(measures) else None, findings=findings)

    def _refuse_empty(self, pieces: Pieces) -> None:
        """Readings of nothing must be zero."""
        sizes = np.bincount(pieces.row, minlength=len(self))
        wrong = np.flatnonzero((sizes == 0) & (self.total > 0))
        if len(wrong):
            raise ParameterError(
                f"{self.labels[wrong[0]]} has a total of {self.total[wrong[0]]:g} but no weights."
            )

    def _disjoint(self, pieces: Pieces) -> tuple[np.ndarray, ...]:
        """Disjoint readings of all series, and the intervals that interleave with them."""
        series, start, stop, total, rows = pieces.intervals(self.total)
        found, counts, rest = [], np.zeros(self.n_series, np.int64), []
        for n in np.unique(series):
            own = np.flatnonzero(series == n)
            solved = untangle(start[own], stop[own], total[own])
            if isinstance(solved, Conflict):
                chosen = np.unique(np.concatenate([rows[own[i]] for i in solved.readings]))
                self._refuse(chosen, solved.amount)
            found.append((solved.start, solved.stop, solved.total))
            counts[n] = len(solved.start)
            rest += [(n, *each) for each in zip(*solved.rest, strict=True)]
        columns = [np.concatenate(each) for each in zip(*found, strict=True)] or [
            np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0),
        ]  # fmt: skip
        return np.concatenate([[0], np.cumsum(counts)]), *columns, np.array(rest).reshape(-1, 4)

    def _measures(self, pieces: Pieces, rest: np.ndarray) -> Measures:
        """The rows that are no intervals, and intervals that interleave."""
        single = np.bincount(pieces.row, minlength=len(self)) <= 1
        chosen = np.flatnonzero(~single[pieces.row])
        rows, measure = np.unique(pieces.row[chosen], return_inverse=True)
        owners, piece_set = np.unique(pieces.series[chosen], return_inverse=True)
        n = len(rows)
        measures = Measures(
            self.n_series, self.n_periods, np.arange(len(owners) + 1), owners, measure, piece_set,
            pieces.start[chosen], pieces.stop[chosen], pieces.weight[chosen], self.total[rows],
            tuple(self.labels[r] for r in rows), tuple(f"series {owner}" for owner in owners),
            np.zeros(n, np.bool_), np.ones(n, np.bool_),
        )  # fmt: skip
        if not len(rest):
            return measures
        more = Measures.of_intervals(
            rest[:, 0].astype(np.int64), rest[:, 1].astype(np.int32), rest[:, 2].astype(np.int32),
            rest[:, 3], tuple(f"interval {k}" for k in range(len(rest))), n_series=self.n_series,
            n_periods=self.n_periods,
        )  # fmt: skip
        return measures.join(more)

    def _refuse_conflicts(self, readings: Readings, measures: Measures) -> None:
        from unsum.kernels.totals import spread_evenly

        values = np.empty((self.n_series, self.n_periods))
        spread_evenly(*readings.arrays, values)
        usual = float(self.total.sum() / self.matrix.sum()) or 1.0
        values[np.diff(readings.indptr) == 0] = usual
        freedom = np.maximum(values, usual)
        if not project(readings, measures, values, freedom).met:
            rows, amount = find_conflict(self.matrix, self.total)
            if len(rows):
                self._refuse(rows, amount)

    def _refuse(self, rows: np.ndarray, amount: float) -> NoReturn:
        periods = self.matrix[rows].indices % self.n_periods
        first, last = int(periods.min()), int(periods.max()) + 1
        listed = ", ".join(f"{self.labels[r]} (total {self.total[r]:g})" for r in rows[:LISTED])
        more = f" and {len(rows) - LISTED} more" if len(rows) > LISTED else ""
        detail = (
            f"{self.calendar.text(first)} to {self.calendar.text(last)}: {listed}{more} miss each "
            f"other by {amount:g}"
        )
        finding = Finding(
            "conflicting-readings",
            f"{len(rows)} readings that no nonnegative series can meet together; correct one.",
            rows=rows, details=(detail,),
        )  # fmt: skip
        raise ReadingsError(Findings((finding,), rows_read=len(self)))
