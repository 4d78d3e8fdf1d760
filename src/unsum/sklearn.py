"""Recovery by the conventions of scikit-learn: an estimator, and folds over series.

A row of the table is a reading, so it is series that are left out for validation, never single
readings; and what is recovered has other rows than what was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

try:
    from sklearn.base import BaseEstimator, TransformerMixin  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
except ModuleNotFoundError as error:
    raise ImportError(
        f"unsum.sklearn needs scikit-learn ({error}); install it: pip install 'unsum[sklearn]'"
    ) from None

from unsum.draws import name_keys
from unsum.errors import ParameterError, require_choice, require_count
from unsum.experiments.errors import measure
from unsum.linear import LinearReadings
from unsum.methods import Method
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.recovery import Recovery
from unsum.selection.choosing import FOLDS
from unsum.selection.merging import merge_neighbours, sample_readings
from unsum.tables.frames import to_native
from unsum.tables.intake import take_in
from unsum.tables.panels import read_panel
from unsum.tables.rows import Options
from unsum.tables.source import open_source

OUTPUTS = ("long", "wide", "array")
FIXED = ("freq", "tz", "columns", "with_totals", "calendar")
READING = (*(item.name for item in fields(Options) if item.name not in FIXED), "drop_bad")


class Recoverer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn from a table of readings, and recover series at the fine step.

    Parameters
    ----------
    method
        A short name, or a method object; see `unsum.recover`.
    freq, tz, columns
        The step, the time zone and the names of columns of tables; see `unsum.read_readings`. They
        say nothing about a `Readings`, which has its own.
    interval
        Such as 0.9: long tables then have `lower` and `upper`.
    rank
        How many profiles, for the methods that have some.
    settings
        Other settings of the method, such as `{"max_iter": 50}`.
    reading
        Other options of `read_readings`, such as `{"end": "inclusive", "drop_bad": True}`.
    output
        What `transform` gives: `"long"`, a table with series, time, value, covered; `"wide"`, one
        with a row for each period and a column for each series; `"array"`, values (n_series,
        n_periods). Series are in the order of their sorted names, tables in the dataframe library
        of the readings. Wide tables and arrays are without intervals.
    threads
        How many threads work on values.

    Attributes
    ----------
    recovery_
        The `Recovery` of what was fitted.
    """

    def __init__(
        self,
        method: str | Method = "auto",
        *,
        freq: str = "D",
        tz: str | None = None,
        columns: Mapping[str, str] | None = None,
        interval: float | None = None,
        rank: int | None = None,
        settings: Mapping[str, Any] | None = None,
        reading: Mapping[str, Any] | None = None,
        output: str = "long",
        threads: int | None = None,
    ) -> None:
        self.method = method
        self.freq = freq
        self.tz = tz
        self.columns = columns
        self.interval = interval
        self.rank = rank
        self.settings = settings
        self.reading = reading
        self.output = output
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> Recoverer:  # noqa: ARG002
        """Learn from readings: a `Readings`, a file, or a table of any dataframe library."""
        require_choice("output", self.output, OUTPUTS)
        self.recovery_ = recover(
            self._read(X), self.method, interval=self.interval, threads=self.threads,
            **self._settings(),
        )  # fmt: skip
        return self

    def transform(self, X: Any) -> Any:
        """Recover readings with what was learned, within its dates; see `Model.apply`."""
        return self._give(self._apply(self._place(X), self.interval))

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Recover the readings that are learned from; the values are those of `recovery_`."""
        return self._give(self.fit(X, y).recovery_)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the error of what is recovered from readings, best of other series than fitted.

        Without the truth, the error of the splits of merged readings (`unsum.selection`). With it,
        the mean-normalised error over covered periods.

        Parameters
        ----------
        X
            Readings, as in `transform`.
        y
            The truth: a `Panel`, a wide or long table (as `read_panel` takes them), or an array
            (n_series, n_periods) on the calendar of `recovery_`, series by their sorted names.
        """
        readings = self._place(X)
        if y is None:
            return -self._judge_splits(readings)
        values = self._apply(readings).values
        return -measure(_match_truth(y, readings), values, readings.covered()).normalised_covered

    def _settings(self) -> dict[str, Any]:
        settings = dict(self.settings or {})
        if self.rank is not None:
            settings["rank"] = self.rank
        return settings

    def _options(self) -> dict[str, Any]:
        options = dict(self.reading or {})
        for name in options:
            require_choice("reading: a key", name, READING)
        return options | {"columns": self.columns}

    def _read(self, X: Any) -> Readings:
        if isinstance(X, LinearReadings):
            return X.to_readings()
        if isinstance(X, Readings):
            return X
        return Readings.from_frame(X, self.freq, tz=self.tz, **self._options())

    def _place(self, X: Any) -> Readings:
        """Readings on the calendar of those that were fitted."""
        check_is_fitted(self)
        calendar = self.recovery_.readings.calendar
        if isinstance(X, Readings | LinearReadings):
            return self._read(X).on(calendar)
        options = self._options()
        drop_bad = options.pop("drop_bad", False)
        for name in ("range_start", "range_end"):
            options.pop(name, None)
        return take_in(X, Options.on(calendar, **options)).readings(drop_bad=drop_bad)

    def _apply(self, readings: Readings, interval: float | None = None) -> Recovery:
        model = self.recovery_.model
        given = None if model.traits is None else model.traits.without_size()
        traits = None
        if given is not None:
            traits = self._settings().get("traits", getattr(self.method, "traits", None))
        return model.apply(readings, interval=interval, traits=traits, threads=self.threads)

    def _give(self, recovery: Recovery) -> Any:
        require_choice("output", self.output, OUTPUTS)
        if self.output == "array":
            return recovery.values
        if self.output == "wide":
            return to_native(_widen(recovery), recovery.readings.backend)
        return recovery.to_frame()

    def _judge_splits(self, readings: Readings) -> float:
        """How far apart from the truth merged readings are split, on average over folds."""
        own = readings.take(readings.read)
        sample = own.take(sample_readings(own, 0))
        folds = [merge_neighbours(sample, seed=fold) for fold in range(FOLDS)]
        return float(np.mean([fold.score(self._apply(fold.readings).values) for fold in folds]))


class SeriesKFold:
    """Folds over series: the readings of a series are all in one fold.

    Which fold a series is in depends on its name, the other names and the seed, not on the order
    of rows.

    Parameters
    ----------
    n_splits
        How many folds.
    column
        The column with the names of series.
    seed
        Another seed, other folds.
    """

    def __init__(self, n_splits: int = 5, *, column: str = "series", seed: int = 0) -> None:
        require_count("n_splits", n_splits, 2)
        require_count("seed", seed, 0)
        self.n_splits = n_splits
        self.column = column
        self.seed = seed

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None  # noqa: ARG002
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
        """The rows to learn from and the rows to be judged by, fold by fold."""
        encoded = _encode(X, self.column)
        n_series = len(encoded.dictionary)
        if n_series < self.n_splits:
            raise ParameterError(
                f"{self.n_splits} folds need as many series; there are {n_series}."
            )
        order = np.argsort(name_keys(encoded.dictionary, self.seed), kind="stable")
        fold_of = np.empty(n_series, np.int64)
        fold_of[order] = np.arange(n_series) % self.n_splits
        folds = fold_of[np.asarray(encoded.indices)]
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def groups_of(X: Any, column: str = "series") -> np.ndarray:
    """The series of each row as a number: `groups` for `GroupKFold` and its like."""
    return np.asarray(_encode(X, column).indices, np.int64)


def _encode(X: Any, column: str) -> Any:
    source = open_source(X)
    if column not in source.columns:
        raise ParameterError(
            f"{source.label} has no column {column!r}; its columns are "
            f"{', '.join(map(repr, source.columns))}. Say which one holds the series: column=..."
        )
    batches = [batch.column(0).cast(pa.string()) for batch in source.batches([column])]
    names = pa.chunked_array(batches, pa.string()).combine_chunks()
    return pc.fill_null(names, "").dictionary_encode()


def _match_truth(truth: Any, readings: Readings) -> np.ndarray:
    """The true values of series with readings, matched by names and by the calendar."""
    shape = (readings.n_series, readings.n_periods)
    if isinstance(truth, np.ndarray):
        if truth.shape != shape:
            raise ParameterError(
                f"the truth must have a row for each series and a column for each period, {shape}; "
                f"got {truth.shape}."
            )
        return np.asarray(truth, np.float64)
    calendar = readings.calendar
    if not isinstance(truth, Panel):
        truth = read_panel(truth, calendar.frequency.text, tz=calendar.tz)
    rows = pc.index_in(readings.names.cast(pa.string()), value_set=truth.names.cast(pa.string()))
    if rows.null_count:
        absent = readings.names.filter(rows.is_null())[0].as_py()
        raise ParameterError(
            f"the truth has no series {absent!r} ({rows.null_count:,} are missing)."
        )
    edges, exact = truth.calendar.locate(calendar.edges)
    if not exact.all() or (np.diff(edges) != 1).any():
        raise ParameterError(
            f"the truth must have the periods from {calendar.text(0)} to "
            f"{calendar.text(calendar.n_periods)} by {calendar.frequency.text!r}; it goes from "
            f"{truth.calendar.text(0)} to {truth.calendar.text(truth.n_periods)} by "
            f"{truth.calendar.frequency.text!r}."
        )
    return np.asarray(truth.values[np.asarray(rows), edges[0] : edges[-1]])


def _widen(recovery: Recovery) -> pa.Table:
    names = [str(name) for name in recovery.readings.names.to_pylist()]
    if "time" in names:
        raise ParameterError("a series is called 'time'; take the output 'long' or 'array'.")
    columns = dict(zip(names, recovery.values, strict=True))
    return pa.table({"time": recovery.readings.calendar.labels(), **columns})
