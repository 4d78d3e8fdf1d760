"""Several sources as one: tables with the same columns, or records of several files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from unsum.tables.source import Source


class Joined(Source):
    """Sources one after the other; rows are counted through all of them.

    A column of file names is delivered with the rest, so that rows set aside can be found.
    """

    def __init__(self, sources: Sequence[Source], sizes: Sequence[int] | None = None) -> None:
        self.sources = list(sources)
        first, *others = self.sources
        shared = [name for name in first.columns if all(name in each.columns for each in others)]
        self.file_column = "unsum_file" if "file" in shared else "file"
        label = f"{first.label} and {len(others):,} more"
        super().__init__(label, [*shared, self.file_column], first.first_row, first.backend)
        self.sizes = list(sizes) if sizes is not None else [0] * len(self.sources)

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        wanted = [name for name in columns if name != self.file_column]
        self.skipped.clear()
        for place, source in enumerate(self.sources):
            self.sizes[place] = 0
            for batch in source.batches(wanted):
                self.sizes[place] += len(batch)
                yield self._mark(batch, source, columns)
            shift = self._shifts()[place]
            self.skipped |= {row + shift: text for row, text in source.skipped.items()}

    def texts(self) -> Iterator[pa.Table]:
        for source in self.sources:
            for table in source.texts():
                files = pa.array([source.label] * len(table), pa.string())
                yield table.select(self.columns[:-1]).append_column(self.file_column, files)

    def _mark(self, batch: pa.RecordBatch, source: Source, columns: list[str]) -> pa.RecordBatch:
        files = pa.array([source.label] * len(batch), pa.string())
        parts = [files if name == self.file_column else batch.column(name) for name in columns]
        return pa.RecordBatch.from_arrays(parts, columns)

    def _shifts(self) -> list[int]:
        """What is added to the rows of each source: the rows of those before it."""
        shifts = [0]
        for source, size in zip(self.sources, self.sizes, strict=True):
            last = max(source.skipped, default=source.first_row - 1)
            if size:
                last = max(last, int(source.row_numbers(np.array([size - 1]))[0]))
            shifts.append(shifts[-1] + last - source.first_row + 1)
        return shifts

    def _places(self, positions: np.ndarray) -> np.ndarray:
        return np.searchsorted(np.cumsum(self.sizes), positions, side="right")

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        numbers = np.zeros(len(positions), np.int64)
        places = np.minimum(self._places(positions), len(self.sources) - 1)
        before = np.concatenate([[0], np.cumsum(self.sizes)])
        for place, shift in enumerate(self._shifts()[:-1]):
            inside = places == place
            own = self.sources[place].row_numbers(positions[inside] - before[place])
            numbers[inside] = own + shift
        return numbers

    def where(self, position: int) -> str:
        """A row as it is found in its own file."""
        place = int(self._places(np.array([position]))[0])
        own = position - sum(self.sizes[:place])
        row = self.sources[place].row_numbers(np.array([own]))[0]
        return f"row {row} of {self.sources[place].label}"

    @property
    def row_origin(self) -> str:
        shifts = self._shifts()[1:-1]
        begins = [
            f"{source.label} from {shift + source.first_row}"
            for source, shift in zip(self.sources[1:], shifts, strict=True)
        ]
        more = f" and {len(begins) - 3:,} more files" if len(begins) > 3 else ""
        return f"rows are counted through all files: {', '.join(begins[:3])}{more}"


def find_row(source: Source, position: int) -> str:
    """'row 12', with its file where there are several."""
    if isinstance(source, Joined):
        return source.where(position)
    return f"row {source.row_numbers(np.array([position]))[0]}"
