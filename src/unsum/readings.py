"""The readings: totals of many series over intervals of periods, as arrays by series.

Series are in canonical order (sorted by name), the readings of a series in order of time and
disjoint. Tables become readings in `unsum.tables.intake`; here they are only held and sliced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum.calendar import Calendar
from unsum.errors import ParameterError
from unsum.findings import Findings

if TYPE_CHECKING:
    import pyarrow as pa

    from unsum.measures import Measures

AT_ONCE = 1 << 16  # names that become Python objects


@dataclass(frozen=True, eq=False)
class Readings:
    """Totals over `[start, stop)` of periods; series n owns `indptr[n]` to `indptr[n + 1]`.

    Series without readings of their own occur only where `further` measures tell about them. Parts
    of the readings have no further measures.
    """

    names: pa.Array
    calendar: Calendar
    indptr: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    total: np.ndarray
    active: np.ndarray  # (n_series, 2): outside these periods a series is zero
    estimated: np.ndarray | None = None  # which readings are marked as estimated
    findings: Findings = field(default_factory=Findings)
    backend: str | None = None  # the dataframe library the readings came from
    further: Measures | None = None  # totals of groups, and others that are not of one interval
    also: np.ndarray | None = None  # (n, 3) series, start, stop: readings among the further ones
    bounded: np.ndarray | None = None  # (n_series, 2): whether active times were given at all
    n_teachers: int = 0  # of the last series: groups from whose totals the others are learned

    def __post_init__(self) -> None:
        for name in ("indptr", "start", "stop", "total", "active", "estimated"):
            array = getattr(self, name)
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        freq: str = "D",
        *,
        tz: str | None = None,
        end: str = "exclusive",
        snap: str = "error",
        overlaps: str = "error",
        negatives: str = "aside",
        true_up: bool = False,
        range_start: str | date | int | None = None,
        range_end: str | date | int | None = None,
        columns: Mapping[str, str] | None = None,
        date_format: str | None = None,
        decimal: str = ".",
        drop_bad: bool = False,
    ) -> Readings:
        """Readings from any dataframe (pandas, polars, pyarrow, duckdb); see `read_readings`."""
        from unsum.tables.intake import take_in
        from unsum.tables.rows import Options

        options = Options(
            freq, tz, end, snap, overlaps, range_start, range_end, columns, date_format, decimal,
            negatives, true_up,
        )  # fmt: skip
        return take_in(frame, options).readings(drop_bad=drop_bad)

    @classmethod
    def from_arrays(
        cls,
        series: Any,
        start: Any,
        stop: Any,
        total: Any,
        *,
        n_series: int,
        n_periods: int,
        names: Any = None,
        calendar: Calendar | None = None,
        drop_bad: bool = False,
    ) -> Readings:
        """Readings from integers: series 0 to n_series - 1, periods 0 to n_periods."""
        from unsum.tables.intake import take_in_arrays

        intake = take_in_arrays(series, start, stop, total, n_series, n_periods, names, calendar)
        return intake.readings(drop_bad=drop_bad)

    @property
    def n_series(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_periods(self) -> int:
        return self.calendar.n_periods

    @property
    def n_readings(self) -> int:
        return len(self.total)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`indptr, start, stop, total`: what every kernel begins with."""
        return self.indptr, self.start, self.stop, self.total

    def __len__(self) -> int:
        return self.n_readings

    def __repr__(self) -> str:
        span = f"{self.calendar.text(0)} to {self.calendar.text(self.n_periods)}"
        return (
            f"Readings({self.n_readings:,} readings of {self.n_series:,} series over "
            f"{self.n_periods:,} periods, freq={self.calendar.frequency.text!r}, {span})"
        )

    def _repr_html_(self) -> str:
        from unsum.notebook import show_readings

        return show_readings(self)

    def __getitem__(self, which: slice) -> Readings:
        """A range of series, sharing memory: `readings[100:200]`."""
        if not isinstance(which, slice):
            raise ParameterError(
                f"readings are sliced by series, as in readings[0:10]; got {which!r}."
            )
        first, last, step = which.indices(self.n_series)
        if step != 1:
            raise ParameterError("readings are sliced without a step.")
        last = max(first, last)
        low, high = int(self.indptr[first]), int(self.indptr[last])
        return replace(
            self,
            names=self.names[first:last],
            indptr=self.indptr[first : last + 1] - low,
            start=self.start[low:high],
            stop=self.stop[low:high],
            total=self.total[low:high],
            active=self.active[first:last],
            estimated=None if self.estimated is None else self.estimated[low:high],
            findings=Findings(),
            further=None,
            also=self._also_of(np.arange(first, last)),
            bounded=None if self.bounded is None else self.bounded[first:last],
            n_teachers=max(0, last - max(first, self.n_series - self.n_teachers)),
        )

    def take(self, series: np.ndarray) -> Readings:
        """Some series, by their places in increasing order."""
        import pyarrow as pa

        if len(series) == self.n_series:  # all of them, without a copy
            return self[:]
        sizes = np.diff(self.indptr)[series]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        which = np.arange(indptr[-1]) + np.repeat(self.indptr[series] - indptr[:-1], sizes)
        return replace(
            self,
            names=self.names.take(pa.array(series)),
            indptr=indptr,
            start=self.start[which],
            stop=self.stop[which],
            total=self.total[which],
            active=self.active[series],
            estimated=None if self.estimated is None else self.estimated[which],
            findings=Findings(),
            further=None,
            also=self._also_of(series),
            bounded=None if self.bounded is None else self.bounded[series],
            n_teachers=int(np.sum(series >= self.n_series - self.n_teachers)),
        )

    def _also_of(self, series: np.ndarray) -> np.ndarray | None:
        """Further readings of some series, by their new places."""
        if self.also is None:
            return None
        kept = self.also[np.isin(self.also[:, 0], series)].copy()
        kept[:, 0] = np.searchsorted(series, kept[:, 0])
        return kept

    def parts(self, size: int) -> Iterator[Readings]:
        """Consecutive slices of at most `size` series."""
        for first in range(0, self.n_series, size):
            yield self[first : first + size]

    def keep(self, kept: np.ndarray) -> Readings:
        """The same series with some of their readings, by a mask; some may be left without any."""
        before = np.concatenate([[0], np.cumsum(kept)])
        return replace(
            self,
            indptr=before[self.indptr],
            start=self.start[kept],
            stop=self.stop[kept],
            total=self.total[kept],
            estimated=None if self.estimated is None else self.estimated[kept],
            findings=Findings(),
            further=None,
        )

    def complete(self) -> np.ndarray:
        """Which series have a reading for every period, none of them estimated."""
        complete = np.diff(self.indptr) == self.n_periods
        if self.estimated is not None:
            complete &= ~np.logical_or.reduceat(self.estimated, self.indptr[:-1])
        return np.asarray(complete)

    def binding(self) -> Readings:
        """The readings that are not estimated."""
        if self.estimated is None or not self.estimated.any():
            return self
        return replace(self.keep(~self.estimated), estimated=None)

    def on(self, calendar: Calendar) -> Readings:
        """The same readings on a longer calendar of the same step."""
        own = self.calendar
        offset, exact = calendar.locate(own.edges[:1])
        first, end = int(offset[0]), int(offset[0]) + own.n_periods
        same = own.frequency.numbered == calendar.frequency.numbered and own.tz == calendar.tz
        if not (same and exact[0] and np.array_equal(calendar.edges[first : end + 1], own.edges)):
            raise ParameterError(
                f"these readings are by {own.frequency.text!r} from {own.text(0)} to "
                f"{own.text(own.n_periods)}, the calendar by {calendar.frequency.text!r} from "
                f"{calendar.text(0)} to {calendar.text(calendar.n_periods)}; read them with the "
                "same freq and tz, within its dates."
            )
        given = np.zeros(self.active.shape, np.bool_) if self.bounded is None else self.bounded
        active = np.where(given, self.active + first, [0, calendar.n_periods])
        return replace(
            self,
            calendar=calendar,
            start=self.start + np.int32(first),
            stop=self.stop + np.int32(first),
            active=active.astype(self.active.dtype),
            also=None if self.also is None else self.also + np.array([0, first, first]),
            further=None if self.further is None else self.further.on(first, calendar.n_periods),
        )

    def series_of_readings(self) -> np.ndarray:
        """The series that each reading belongs to."""
        return np.repeat(np.arange(self.n_series, dtype=np.int32), np.diff(self.indptr))

    def covered(self) -> np.ndarray:
        """Which periods some reading covers, as booleans (n_series, n_periods)."""
        from unsum.kernels.totals import mark_covered

        covered = np.zeros((self.n_series, self.n_periods), dtype=np.bool_)
        mark_covered(self.indptr, self.start, self.stop, covered)
        for n, start, stop in self.also if self.also is not None else ():
            covered[n, start:stop] = True
        return covered

    def with_totals(self, total: np.ndarray) -> Readings:
        """The same intervals with other totals."""
        return replace(self, total=np.array(total, np.float64), findings=Findings())

    def with_groups(
        self, groups: Any, totals: Any, *, drop_bad: bool = False, **options: Any
    ) -> Readings:
        """The same readings with totals of groups of series.

        Parameters
        ----------
        groups
            Which series belong to which group: a file or dataframe with columns `series` and
            `group`, one row for each pair, or a mapping from groups to series. Groups may be nested
            or overlap. Members without readings of their own are recovered too.
        totals
            A file or dataframe with columns `group`, `start`, `end` and `total`.
        drop_bad
            Set bad rows of the totals aside instead of raising.
        options
            How the totals are read: `end`, `snap`, `negatives`, `columns`, `date_format` and
            `decimal`, as in `read_readings`.
        """
        from unsum.tables.groups import take_in_groups

        return take_in_groups(self, groups, totals, **options).readings(drop_bad=drop_bad)

    def ends(self) -> np.ndarray:
        """Where the last reading of each series ends; the end of the range where there is none."""
        ends = np.full(self.n_series, self.n_periods, self.stop.dtype)
        ends[self.read] = self.stop[self.indptr[1:][self.read] - 1]
        if self.also is not None:
            np.maximum.at(ends, self.also[:, 0], self.also[:, 2])
        return ends

    @property
    def read(self) -> np.ndarray:
        """The places of the series that have readings of their own."""
        return np.flatnonzero(np.diff(self.indptr))

    def to_arrow(self) -> pa.Table:
        """The canonical table: series, start, end, total (and quality where it is known).

        Readings that interleave with others are in it; totals of groups and registers are not.
        """
        import pyarrow as pa

        columns = [self.series_of_readings(), self.start, self.stop, self.total]
        estimated = self.estimated
        if self.further is not None and len(places := self.further.intervals()):
            more = self.further
            rows, owner = (
                more.measure[places],
                more.set_series[more.set_ptr[more.piece_set[places]]],
            )
            others = [owner, more.start[places], more.stop[places], more.total[rows]]
            columns = [np.concatenate(each) for each in zip(columns, others, strict=True)]
            soft = np.zeros(self.n_readings, np.bool_) if estimated is None else estimated
            soft = np.concatenate([soft, more.estimated[rows]])
            order = np.lexsort((columns[2], columns[1], columns[0]))
            columns = [each[order] for each in columns]
            estimated = soft[order] if soft.any() or estimated is not None else None
        series, start, stop, total = columns
        table = {
            "series": self.names.take(pa.array(series)),
            "start": self.calendar.label_edges(start),
            "end": self.calendar.label_edges(stop),
            "total": pa.array(total),
        }
        if estimated is not None:
            quality = pa.array(["actual", "estimated"])
            table["quality"] = quality.take(pa.array(estimated.astype(np.int8)))
        return pa.table(table)

    def to_frame(self, backend: str | None = None) -> Any:
        """The canonical table in the library the readings came from, or in `backend`."""
        from unsum.tables.frames import to_native

        return to_native(self.to_arrow(), backend or self.backend)

    def describe(self) -> dict[str, Any]:
        """The counts that every summary begins with."""
        return {
            "n_series": self.n_series,
            "n_readings": self.n_readings,
            "n_periods": self.n_periods,
            "freq": self.calendar.frequency.text,
            "tz": self.calendar.tz,
            "first": self.calendar.text(0),
            "end": self.calendar.text(self.n_periods),
        }

    def fingerprint(self) -> str:
        """A SHA-256 of names, calendar and arrays: the same readings, the same fingerprint."""
        import hashlib

        digest = hashlib.sha256()
        for low in range(0, self.n_series, AT_ONCE):
            for name in self.names.slice(low, AT_ONCE).to_pylist():
                digest.update(repr(name).encode() + b"\n")
        digest.update(f"{self.calendar.frequency.text} {self.calendar.tz}".encode())
        for array in (self.calendar.edges, *self.arrays, self.active):
            digest.update(np.ascontiguousarray(array).data)  # without a copy of what is on disk
        if self.estimated is not None:
            digest.update(np.ascontiguousarray(self.estimated).data)
        if self.further is not None:
            self.further.digest(digest)
        return digest.hexdigest()


def describe_dates(readings: Readings) -> str:
    """How fine the readings are, in words."""
    lengths = readings.stop - readings.start
    covered = float(lengths.sum()) / (readings.n_series * readings.n_periods)
    single = float(np.mean(lengths == 1))
    text = (
        f"readings span {lengths.min()} to {lengths.max()} periods, {np.median(lengths):g} in the "
        f"median; {covered:.0%} of all periods are covered"
    )
    return text + (f", {single:.0%} of the readings are single periods" if single else "")
