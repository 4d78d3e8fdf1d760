"""A table larger than memory, cut into parts by the names of its series, on disk.

A part holds all rows of its series, and parts follow one another in the order of names. So what is
judged series by series can be judged part by part, and the readings of the parts, one after the
other, are those of the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.tables.rows import plain_column
from unsum.tables.source import Source

SAMPLED = 2_000  # names of a batch, when the table is divided
ROW = "\x00row"  # no table of people has it


class SpilledSource(Source):
    """A part of a table: an Arrow file that also has the number of every row."""

    def __init__(self, path: Path, label: str, columns: list[str], origin: str) -> None:
        super().__init__(label, columns)
        self.path = path
        self.origin = origin
        self._rows: np.ndarray | None = None

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(self.path)) as file, pa.ipc.open_stream(file) as reader:
            for batch in reader:
                yield batch.select(columns)

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        if self._rows is None:
            parts = [np.asarray(batch.column(0)) for batch in self._batches([ROW])]
            self._rows = np.concatenate([np.empty(0, np.int64), *parts])
        return np.asarray(self._rows[positions])

    @property
    def row_origin(self) -> str:
        return self.origin


def divide_names(source: Source, column: str, n_parts: int) -> list[Any]:
    """Names at which a table can be cut into parts of about as many rows."""
    samples = []
    for batch in source.batches([column]):
        names = _names(batch.column(0)).drop_null()
        step = max(1, len(names) // SAMPLED)
        samples.append(names.take(pa.array(np.arange(0, len(names), step))))
    if not samples:
        return []
    drawn = pa.concat_arrays(samples)
    drawn = drawn.take(pc.sort_indices(drawn))
    places = np.arange(1, n_parts) * len(drawn) // n_parts
    cuts = drawn.take(pa.array(places)).to_pylist() if len(drawn) else []
    return sorted(set(cuts))


def spill(
    source: Source, columns: list[str], series: str, cuts: list[Any], folder: Path
) -> list[SpilledSource]:
    """Write the parts of a table into a folder, in one pass."""
    origin = source.row_origin
    paths = [folder / f"part-{k:05}.arrow" for k in range(len(cuts) + 1)]
    writers: list[Any] = [None] * len(paths)
    position = 0
    edges = np.array(cuts, object)
    try:
        for batch in source.batches(columns):
            plain = [plain_column(batch.column(name)) for name in columns]
            numbers = source.row_numbers(np.arange(position, position + len(batch)))
            position += len(batch)
            table = pa.RecordBatch.from_arrays(
                [*plain, pa.array(numbers, pa.int64())], [*columns, ROW]
            )
            places = _places(_names(table.column(series)), edges)
            order = np.argsort(places, kind="stable")
            bounds = np.searchsorted(places[order], np.arange(len(paths) + 1))
            for k in np.flatnonzero(np.diff(bounds)).tolist():
                own = table.take(pa.array(order[bounds[k] : bounds[k + 1]]))
                if writers[k] is None:
                    file = pa.OSFile(str(paths[k]), "wb")
                    options = pa.ipc.IpcWriteOptions(compression="lz4")
                    writers[k] = (pa.ipc.new_stream(file, own.schema, options=options), file)
                writers[k][0].write_batch(own)
    finally:
        for each in writers:
            if each is not None:
                each[0].close()
                each[1].close()
    return [
        SpilledSource(path, source.label, columns, origin)
        for path, writer in zip(paths, writers, strict=True)
        if writer is not None
    ]


def _names(column: pa.Array) -> pa.Array:
    """Names as they are ordered in readings: whole numbers by size, everything else as text."""
    column = plain_column(column)
    if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
        column = column.cast(pa.string())
    return column


def _places(names: pa.Array, edges: np.ndarray) -> np.ndarray:
    """The part that each row belongs to; rows without a name go to the first."""
    encoded = pc.dictionary_encode(names)
    known = np.array(encoded.dictionary.to_pylist(), object)
    part = np.append(np.searchsorted(edges, known, side="right"), 0).astype(np.int64)
    return np.asarray(part[np.asarray(pc.fill_null(encoded.indices, len(known)))])
