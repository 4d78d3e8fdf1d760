"""Where rows come from: a CSV file, a Parquet file, or any dataframe, as batches of Arrow columns.

A source can be read more than once and numbers its rows as people find them: a CSV file as an
editor or spreadsheet shows it (the header is row 1), other tables by position from 0.
Nothing here knows what a reading is.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unsum.errors import TableError

BLOCK_BYTES = 1 << 23
BATCH_ROWS = 1 << 17
_DELIMITERS = (",", ";", "\t", "|")


@dataclass
class Source:
    """A table that arrives in batches. `skipped` fills up while a CSV file is read."""

    label: str
    columns: list[str]
    first_row: int = 0
    backend: str | None = None  # the dataframe library it came from
    skipped: dict[int, str] = field(default_factory=dict)  # malformed row -> its text

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        """Row numbers of the rows delivered at these positions, malformed ones counted."""
        skipped = np.sort(np.fromiter(self.skipped, np.int64, len(self.skipped)))
        before = np.searchsorted(
            skipped - self.first_row - np.arange(len(skipped)), positions, side="right"
        )
        return positions + before + self.first_row

    @property
    def row_origin(self) -> str:
        return "the header is row 1" if self.first_row == 2 else "rows count from 0"


class FrameSource(Source):
    """A dataframe of any library, held as an Arrow table."""

    def __init__(self, frame: Any, label: str = "the table") -> None:
        self.table, backend = to_arrow(frame)
        super().__init__(label, self.table.column_names, backend=backend)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(columns).to_batches(max_chunksize=BATCH_ROWS)


class ParquetSource(Source):
    """A Parquet file, read a row group at a time."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with _readable(path):
            self.schema = pq.read_schema(path)
        super().__init__(path.name, [name for name in self.schema.names if name])

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with _readable(self.path), pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=columns)


class CsvSource(Source):
    """A CSV file, plain or compressed; every column arrives as text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _readable(path):
            start = _beginning(path)
        self.delimiter = max(_DELIMITERS, key=start.splitlines()[0].count)
        names = next(csv.reader(StringIO(start, newline=""), delimiter=self.delimiter))
        super().__init__(path.name, names, first_row=2)

    def _open(self, columns: list[str]) -> Any:
        import pyarrow.csv as pv

        def skip(row: Any) -> str:
            self.skipped[row.number] = row.text
            return "skip"

        return pv.open_csv(
            self.path,
            read_options=pv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            parse_options=pv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            convert_options=pv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=False,
                check_utf8=True,
            ),
        )

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.skipped.clear()
        with _readable(self.path):
            yield from self._open(columns)


def open_source(source: Any) -> Source:
    """A source for a path or a dataframe."""
    if isinstance(source, Source):
        return source
    if not isinstance(source, str | Path):
        return FrameSource(source)
    path = Path(source)
    if path.is_dir():
        raise TableError(f"{path} is a folder; give one CSV or Parquet file.")
    if not path.exists():
        raise TableError(f"{path} does not exist; check the name and the folder.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return ParquetSource(path)
    return CsvSource(path)


def to_arrow(frame: Any) -> tuple[pa.Table, str | None]:
    """Any dataframe as an Arrow table, and the name of its library."""
    import narwhals as nw

    if isinstance(frame, pa.RecordBatch | dict):
        return pa.table(frame), "pyarrow"
    try:
        native = nw.from_native(frame)
    except TypeError:
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame), "pyarrow"
        raise TableError(
            f"a {type(frame).__name__} is not a table; give a path, or a dataframe of pandas, "
            "polars, pyarrow or duckdb."
        ) from None
    backend = str(native.implementation)
    if isinstance(native, nw.LazyFrame):
        return native.collect("pyarrow").to_native(), backend
    if any(not isinstance(name, str) for name in native.columns):
        raise TableError("the names of the columns must be text; rename them first.")
    return native.to_arrow().select(native.columns), backend  # without the index of pandas


class _readable:  # noqa: N801
    """Turns what goes wrong while reading a file into a sentence about that file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: Any, _: Any) -> None:
        if kind is None or not issubclass(kind, pa.ArrowException | OSError | UnicodeError):
            return
        reason = str(error).splitlines()[0] if str(error) else kind.__name__
        hint = "it may be damaged, or of another kind than its name says"
        if "UTF8" in reason or issubclass(kind, UnicodeError):
            hint = "it is not UTF-8 text; save it as UTF-8"
        elif "Empty CSV" in reason:
            hint = "it needs a header line and rows below it"
        raise TableError(f"{self.path} cannot be read: {hint} ({reason.rstrip('.')}).") from error


def _beginning(path: Path) -> str:
    """Enough text for the longest header; a table may have thousands of columns."""
    with pa.input_stream(str(path)) as stream:
        start = stream.read(1 << 20)
    if not start.strip():
        raise TableError(f"{path} is empty; it needs a header line and rows below it.")
    return str(start, "utf-8-sig", errors="replace")
