"""Where rows come from: a CSV file, a Parquet file, or any dataframe, as batches of Arrow columns.

A source can be read more than once and numbers its rows as people find them: a CSV file as a
spreadsheet shows it (the header is row 1), other tables by position from 0. Nothing here knows
what a reading is.
"""

from __future__ import annotations

import csv
import re
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa

from unsum.errors import TableError

BLOCK_BYTES = 1 << 23
BATCH_ROWS = 1 << 17
BYTES_OF_ROW = 24  # of a CSV file, at least: a short name, two dates, a number
HEADER_BYTES = 1 << 20  # a wide table may have thousands of columns
PATIENCE = 10.0  # seconds that pyarrow's threads have to end a reading
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
        """The named columns of all rows, each column once."""
        for name in columns:
            if self.columns.count(name) > 1:
                raise TableError(
                    f"{self.label} has {self.columns.count(name)} columns called {name!r}; rename "
                    "all but one."
                )
        return self._batches(list(dict.fromkeys(columns)))

    def texts(self) -> Iterator[pa.Table]:
        """All rows with all columns as text, whatever they hold."""
        for batch in self._batches(self.columns):
            yield pa.table([_as_text(column) for column in batch.columns], self.columns)

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        """Row numbers of the rows delivered at these positions, malformed ones counted."""
        skipped = np.sort(np.fromiter(self.skipped, np.int64, len(self.skipped)))
        before = np.searchsorted(
            skipped - self.first_row - np.arange(len(skipped)), positions, side="right"
        )
        return positions + before + self.first_row

    def count_rows(self) -> int:
        """How many rows there are, or about how many where they are not counted."""
        return 0

    def refuse_malformed(self) -> None:
        """Refuse, once it has been read, a table with rows that do not fit its header."""
        broken = {row: text for row, text in self.skipped.items() if text.strip()}
        if broken:
            row, text = min(broken.items())
            raise TableError(
                f"row {row} of {self.label} has more or fewer fields than the header: "
                f"{text[:80]!r}."
            )

    @property
    def row_origin(self) -> str:
        return "the header is row 1" if self.first_row == 2 else "rows count from 0"


class FrameSource(Source):
    """A dataframe of any library; only the columns that are asked for are converted."""

    def __init__(self, frame: Any, label: str = "the table") -> None:
        import narwhals as nw

        if isinstance(frame, pa.RecordBatch | dict):
            with _convertible(label):
                frame = pa.table(frame)
        with _convertible(label):
            try:
                self.frame: Any = nw.from_native(frame)
            except TypeError:
                if not hasattr(frame, "__arrow_c_stream__"):
                    raise TableError(
                        f"a {type(frame).__name__} is not a table; give a path, or a dataframe of "
                        "pandas, polars, pyarrow or duckdb."
                    ) from None
                self.frame = nw.from_native(pa.table(frame))
            columns = list(self.frame.collect_schema().names())
        super().__init__(label, columns, backend=str(self.frame.implementation))

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import narwhals as nw

        with _convertible(self.label):
            chosen = self.frame.select(columns)
            if isinstance(chosen, nw.LazyFrame):
                chosen = chosen.collect("pyarrow")
            table = chosen.to_arrow().select(columns)  # without the index of pandas
        yield from table.to_batches(max_chunksize=BATCH_ROWS)


class ParquetSource(Source):
    """A Parquet file, read a row group at a time."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with _readable(path):
            columns = list(pq.read_schema(path).names)
        super().__init__(path.name, columns)

    def count_rows(self) -> int:
        import pyarrow.parquet as pq

        with _readable(self.path):
            return int(pq.read_metadata(self.path).num_rows)

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with _readable(self.path), pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=columns)


class CsvSource(Source):
    """A CSV file, plain or compressed; every column arrives as text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _readable(path):
            start = _beginning(path)
            unquoted = re.sub(r'"[^"]*"', "", start.splitlines()[0])
            self.delimiter = max(_DELIMITERS, key=unquoted.count)
            names = next(csv.reader(StringIO(start, newline=""), delimiter=self.delimiter))
        super().__init__(path.name, names, first_row=2)

    def count_rows(self) -> int:
        return self.path.stat().st_size // BYTES_OF_ROW

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with _readable(self.path):
            yield from self._read(columns, dict.fromkeys(columns, pa.string()))

    def texts(self) -> Iterator[pa.Table]:
        with _readable(self.path):
            for batch in self._read([], dict.fromkeys(self.columns, pa.binary())):
                yield pa.table([_as_text(column) for column in batch.columns], self.columns)

    def _read(self, columns: list[str], types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """Batches as they come; ends when no thread of pyarrow holds anything of ours.

        A thread may hold the reader, and with it our handler of malformed rows, for a moment longer
        than we do. If Python ended in that moment the whole process would be aborted.
        """
        import pyarrow.csv as pv

        released = Event()
        held: list[Any] = [self._options(columns, types, released)]
        end = weakref.finalize(self, _let_go, held, released)  # at the latest when Python ends
        try:
            with _no_noise():
                held.append(pv.open_csv(self.path, **held.pop()))
            while True:
                with _no_noise():
                    try:
                        batch = held[0].read_next_batch()
                    except StopIteration:
                        return
                yield batch
        finally:
            end()

    def _options(
        self, columns: list[str], types: dict[str, pa.DataType], released: Event
    ) -> dict[str, Any]:
        import pyarrow.csv as pv

        def skip(row: Any) -> str:
            self.skipped[row.number] = row.text
            return "skip"

        weakref.finalize(skip, released.set).atexit = False
        self.skipped.clear()
        return {
            "read_options": pv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            "parse_options": pv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            "convert_options": pv.ConvertOptions(
                include_columns=columns,
                column_types=types,
                strings_can_be_null=False,
                check_utf8=pa.binary() not in types.values(),
            ),
        }


def _let_go(held: list[Any], released: Event) -> None:
    held.clear()
    released.wait(PATIENCE)


def open_source(source: Any) -> Source:
    """A source for a path or a dataframe."""
    if isinstance(source, Source):
        return source
    if not isinstance(source, str | Path):
        return FrameSource(source)
    if "://" in str(source):
        from unsum.tables.dataset import DatasetSource

        return DatasetSource(str(source))
    path = Path(source)
    if path.is_dir():
        from unsum.tables.dataset import DatasetSource

        return DatasetSource(str(path))
    if not path.exists():
        raise TableError(f"{path} does not exist; check the name and the folder.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return ParquetSource(path)
    return CsvSource(path)


def cell_text(column: pa.Array, i: int) -> str:
    """One cell as text, whatever it holds."""
    try:
        return str(column[i].as_py())
    except (OverflowError, ValueError, UnicodeError):
        return f"a {column.type} out of range"


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return pa.array([str(value, "utf-8", "replace") for value in column.to_pylist()])
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        return pa.array([cell_text(column, i) for i in range(len(column))])


@contextmanager
def _convertible(label: str) -> Iterator[None]:
    """Dataframe libraries fail in many ways; each becomes a sentence about the table."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise TableError(f"{label} cannot be converted: {reason}.") from error


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns what goes wrong while reading a file into a sentence about that file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, csv.Error, StopIteration) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        hint = "it may be damaged, or of another kind than its name says"
        if "UTF8" in reason or "Expected" in reason or isinstance(error, UnicodeError):
            hint = "it is not UTF-8 text; save it as UTF-8"
        elif "straddling" in reason or "field larger" in reason:
            hint = "a quote is opened and never closed"
        raise TableError(f"{path} cannot be read: {hint} ({reason}).") from error


@contextmanager
def _no_noise() -> Iterator[None]:
    """While pyarrow runs: it prints a traceback when a bad row cannot be handed to us as text."""
    usual = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = usual


def _beginning(path: Path) -> str:
    """Enough text for the header; refuses files that are not text."""
    with pa.input_stream(str(path)) as stream:
        start = stream.read(HEADER_BYTES)
    kinds = {
        b"PK\x03\x04": "an Excel or zip file; save it as CSV",
        b"\x1f\x8b": "compressed; give it the ending .csv.gz",
        b"PAR1": "a Parquet file; give it the ending .parquet",
        b"\xff\xfe": "UTF-16 text; save it as UTF-8",
        b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    }
    for magic, what in kinds.items():
        if start.startswith(magic):
            raise TableError(f"{path} is {what}.")
    if b"\0" in start:
        raise TableError(f"{path} is not text; give a CSV or Parquet file.")
    text = str(start, "utf-8-sig", errors="replace")
    if not text.strip():
        raise TableError(f"{path} is empty; it needs a header line and rows below it.")
    if not text.splitlines()[0].strip():
        raise TableError(f"{path} begins with a blank line; its first line must be the header.")
    return text
