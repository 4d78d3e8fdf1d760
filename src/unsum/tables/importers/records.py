"""Files that are no tables, as sources: their records are numbered and can be shown again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from unsum.errors import TableError
from unsum.tables.importers.joined import Joined
from unsum.tables.source import Source

LINES_AT_ONCE = 1 << 16
LONGEST_LINE = 1 << 20  # characters


class LineSource(Source):
    """Some lines of a text file, known by their numbers; the first line is 1."""

    def __init__(self, path: Path, numbers: np.ndarray) -> None:
        super().__init__(path.name, ["line"], first_row=1)
        self.path = path
        self.numbers = numbers

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        return np.asarray(self.numbers[positions])

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        for lines in self._parts():
            yield pa.RecordBatch.from_arrays([pa.array(lines, pa.string())] * len(columns), columns)

    def _parts(self) -> Iterator[list[str]]:
        """The lines of these numbers, some at a time."""
        wanted = iter(self.numbers.tolist())
        number = next(wanted, None)
        part: list[str] = []
        for at, line in enumerate(read_lines(self.path), start=1):
            if at == number:
                part.append(line)
                number = next(wanted, None)
            if len(part) == LINES_AT_ONCE:
                yield part
                part = []
        yield part

    @property
    def row_origin(self) -> str:
        return "lines of the file, the first is 1"


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, without their ends; what is not text is refused."""
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            for line in iter(lambda: file.readline(LONGEST_LINE), ""):
                if "\0" in line or len(line) == LONGEST_LINE:
                    raise TableError(f"{path} is not text in lines; give it as it was delivered.")
                yield line.rstrip("\n")
    except UnicodeError as error:
        raise TableError(f"{path} is not UTF-8 text, or not text at all ({error}).") from error
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from error


def join_records(sources: Sequence[Source], sizes: Sequence[int]) -> Source:
    """The one source, or several as one."""
    return sources[0] if len(sources) == 1 else Joined(sources, sizes)
