"""What is known about series: tariff, kind, floor area, anything with one value per series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.errors import ParameterError, TableError

FEWEST_TO_SHARE = 5  # series, before what they share says little about any one of them
MOST = 50  # columns, after every kind has become one


@dataclass(frozen=True, eq=False)
class Traits:
    """Columns of numbers (n_series, n_traits), with the names of series and of columns.

    Every column has mean 0 and variance 1; kinds (text) are columns of their own.
    """

    series: pa.Array
    columns: tuple[str, ...]
    values: np.ndarray
    centre: np.ndarray  # what was taken off each column, and what it was divided by
    spread: np.ndarray
    kinds: dict[str, tuple[str, ...]]  # of the columns that have kinds
    rare: tuple[str, ...]  # kinds of fewer series than may be shared
    sized: bool = False  # whether the last column is the logarithm of the level of a series

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

    def with_rows(self, names: Sequence[str], values: np.ndarray) -> Traits:
        """The same with more series."""
        series = pa.concat_arrays([self.series, pa.array(names, pa.string())])
        return replace(self, series=series, values=np.concatenate([self.values, values]))

    def without_size(self) -> Traits | None:
        """What was given by the user."""
        if not self.sized:
            return self
        if len(self.columns) == 1:
            return None
        return replace(
            self, columns=self.columns[:-1], values=self.values[:, :-1], centre=self.centre[:-1],
            spread=self.spread[:-1], sized=False,
        )  # fmt: skip

    def only_size(self) -> Traits:
        """The size alone."""
        return replace(
            self, columns=self.columns[-1:], values=self.values[:, -1:], centre=self.centre[-1:],
            spread=self.spread[-1:], kinds={}, rare=(),
        )  # fmt: skip

    def others(self, names: Any) -> pa.Array:
        """The series that have traits but are not among the names."""
        known = pc.is_in(self.series, value_set=names.cast(pa.string()))
        return self.series.filter(pc.invert(known))

    def forget(self) -> Traits:
        """The columns, without any series."""
        return replace(self, series=self.series[:0], values=self.values[:0])

    def read(self, source: Any) -> Traits:
        """The same columns for the series of another file or dataframe."""
        table, series, label = _read(source)
        columns = []
        for name in self.columns:
            if name in table.column_names:
                columns.append(_numbers(name, table[name], label))
                continue
            trait, _, kind = name.partition("=")
            if trait not in table.column_names:
                raise TableError(
                    f"{label} has no column {trait!r}, which the model was learned with (it has "
                    f"{', '.join(table.column_names[:8])})."
                )
            cells = _cells(trait, table[trait], label)
            strange = sorted(set(cells) - set(self.kinds[trait]))
            if strange:
                raise TableError(
                    f"{label} has {strange[0]!r} for {trait!r}; the model was learned with "
                    f"{', '.join(map(repr, self.kinds[trait]))}."
                )
            columns.append(np.array(cells) == kind)
        values = (np.column_stack(columns) - self.centre) / self.spread
        return replace(self, series=series, values=values)


def add_size(
    traits: Traits | None, names: pa.Array, levels: np.ndarray, like: Traits | None = None
) -> Traits:
    """Traits with the size of series as one more, by their levels, in units of others or their own.

    Series of different sizes are often of different kinds.
    """
    known = levels > 0
    logs = np.log(np.where(known, levels, 1.0))
    centre, spread = logs[known].mean() if known.any() else 0.0, logs[known].std()
    if like is not None:
        centre, spread = like.centre[-1], like.spread[-1]
    spread = spread if spread > 0 else 1.0
    size = np.where(known, (logs - centre) / spread, 0.0)[:, None]
    series = names.cast(pa.string())
    if traits is None:
        return Traits(
            series, ("size",), size, np.array([centre]), np.array([spread]), {}, (), sized=True
        )
    places = np.asarray(pc.fill_null(pc.index_in(traits.series, value_set=series), -1))
    column = np.where(places[:, None] >= 0, size[places], 0.0)
    return replace(
        traits, columns=(*traits.columns, "size"), values=np.hstack([traits.values, column]),
        centre=np.append(traits.centre, centre), spread=np.append(traits.spread, spread),
        sized=True,
    )  # fmt: skip


def make_traits(source: Any) -> Traits:
    """Traits from a file or dataframe with a column `series` and columns of numbers or kinds."""
    if isinstance(source, Traits):
        return source
    table, series, label = _read(source)
    columns: dict[str, np.ndarray] = {}
    kinds: dict[str, tuple[str, ...]] = {}
    rare: list[str] = []
    for name in table.column_names:
        if name != "series":
            found = _columns(name, table[name], label)
            columns |= found
            if any("=" in key for key in found if key != name):
                counts = Counter(_cells(name, table[name], label))
                kinds[name] = tuple(sorted(counts))
                rare += [f"{name}={k}" for k, n in counts.items() if n < FEWEST_TO_SHARE]
    if not columns:
        raise TableError(f"{label} has no column beside 'series' that tells series apart.")
    if len(columns) > MOST:
        raise TableError(
            f"{label} makes {len(columns)} columns of traits, more than {MOST}; join rare "
            "kinds together."
        )
    values = np.column_stack(list(columns.values()))
    centre, spread = values.mean(axis=0), values.std(axis=0)
    scaled = (values - centre) / spread
    return Traits(series, tuple(columns), scaled, centre, spread, kinds, tuple(rare))


def _read(source: Any) -> tuple[pa.Table, pa.Array, str]:
    """The cells as text, the names of the series, and what to call the table."""
    from unsum.tables.source import open_source

    opened = open_source(Path(source) if isinstance(source, str) else source)
    if "series" not in opened.columns:
        raise TableError(
            f"{opened.label} has no column 'series' (it has {', '.join(opened.columns[:8])}); a "
            "table of traits has one row for each series."
        )
    tables = list(opened.texts())
    opened.refuse_malformed()
    if not sum(map(len, tables)):
        raise TableError(f"{opened.label} has no rows; a table of traits has one for each series.")
    if len(set(opened.columns)) < len(opened.columns):
        raise TableError(f"{opened.label} has two columns of the same name; rename one.")
    table = pa.concat_tables(tables)
    series = _texts(table["series"])
    if series.null_count or pc.count_distinct(series).as_py() < len(series):
        raise TableError(f"{opened.label} must have one row, with a name, for each series.")
    return table, series, opened.label


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """Cells as text without spaces around them; empty ones are missing."""
    texts = pc.utf8_trim_whitespace(column.combine_chunks().cast(pa.string()))
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _cells(name: str, column: pa.ChunkedArray, label: str) -> list[str]:
    texts = _texts(column)
    if texts.null_count:
        row = int(np.flatnonzero(np.asarray(texts.is_null()))[0])
        raise TableError(f"{label} has no {name!r} for its series number {row + 1}; fill it in.")
    cells: list[str] = texts.to_pylist()
    return cells


def _columns(name: str, column: pa.ChunkedArray, label: str) -> dict[str, np.ndarray]:
    """A column of numbers, or one for every kind but the first, if they vary."""
    cells = _cells(name, column, label)
    if any(_number(cell) is not None for cell in cells):
        made = {name: _numbers(name, column, label)}
    else:
        made = {f"{name}={kind}": np.array(cells) == kind for kind in sorted(set(cells))[1:]}
    return {key: each.astype(float) for key, each in made.items() if each.std() > 0}


def _numbers(name: str, column: pa.ChunkedArray, label: str) -> np.ndarray:
    cells = _cells(name, column, label)
    numbers = [_number(cell) for cell in cells]
    if None in numbers:
        raise TableError(
            f"{label} has {cells[numbers.index(None)]!r} among the numbers of {name!r}; write "
            "numbers with a point, or kinds that are no numbers."
        )
    found = np.array(numbers, float)
    if not np.isfinite(found).all():
        raise TableError(f"{label} has a number in {name!r} that is not finite; correct it.")
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
