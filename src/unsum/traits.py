"""What is known about series: tariff, kind, floor area, anything with one value per series."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.errors import ParameterError, TableError

MOST = 50  # columns, after every kind has become one


@dataclass(frozen=True, eq=False)
class Traits:
    """Columns of numbers (n_series, n_traits), with the names of series and of columns.

    Every column has mean 0 and variance 1; kinds (text) are columns of their own.
    """

    series: pa.Array
    columns: tuple[str, ...]
    values: np.ndarray

    def __repr__(self) -> str:
        return f"Traits({', '.join(self.columns)})"

    def rows(self, names: Any) -> np.ndarray:
        """The traits of named series."""
        places = pc.index_in(names.cast(pa.string()), value_set=self.series)
        if places.null_count:
            absent = names.filter(places.is_null())[0].as_py()
            raise ParameterError(
                f"series {absent!r} has no row in the table of traits "
                f"({places.null_count:,} have none); add one for every series."
            )
        return np.asarray(self.values[np.asarray(places)])

    def others(self, names: Any) -> pa.Array:
        """The series that have traits but are not among the names."""
        known = pc.is_in(self.series, value_set=names.cast(pa.string()))
        return self.series.filter(pc.invert(known))


def make_traits(source: Any) -> Traits:
    """Traits from a file or dataframe with a column `series` and columns of numbers or kinds."""
    from unsum.tables.source import open_source

    if isinstance(source, Traits):
        return source
    opened = open_source(Path(source) if isinstance(source, str) else source)
    if "series" not in opened.columns:
        raise TableError(
            f"{opened.label} has no column 'series' (it has {', '.join(opened.columns[:8])}); a "
            "table of traits has one row for each series."
        )
    table = pa.concat_tables(list(opened.texts()))
    series = table["series"].combine_chunks().cast(pa.string())
    if series.null_count or pc.count_distinct(series).as_py() < len(series):
        raise TableError(f"{opened.label} must have one row, with a name, for each series.")
    columns: dict[str, np.ndarray] = {}
    for name in opened.columns:
        if name != "series":
            columns |= _columns(name, table[name].combine_chunks(), opened.label)
    if not columns:
        raise TableError(f"{opened.label} has no column beside 'series' that tells series apart.")
    if len(columns) > MOST:
        raise TableError(
            f"{opened.label} makes {len(columns)} columns of traits, more than {MOST}; join rare "
            "kinds together."
        )
    return Traits(series, tuple(columns), np.column_stack(list(columns.values())))


def _columns(name: str, texts: pa.Array, label: str) -> dict[str, np.ndarray]:
    """A column of numbers, or one for every kind but the first, if they vary."""
    texts = texts.cast(pa.string())
    missing = pc.or_kleene(texts.is_null(), pc.equal(texts, ""))
    if pc.any(missing).as_py():
        row = int(np.flatnonzero(np.asarray(missing.fill_null(True)))[0])
        raise TableError(f"{label} has no {name!r} for its series number {row + 1}; fill it in.")
    try:
        numbers = np.asarray(texts.cast(pa.float64()))
        made = {name: numbers} if np.isfinite(numbers).all() else {}
    except pa.ArrowInvalid:
        kinds = sorted(set(texts.to_pylist()))
        values = np.array(texts.to_pylist())
        made = {f"{name}={kind}": (values == kind).astype(float) for kind in kinds[1:]}
    spread = {key: column.std() for key, column in made.items()}
    return {
        key: (column - column.mean()) / spread[key]
        for key, column in made.items()
        if spread[key] > 0
    }
