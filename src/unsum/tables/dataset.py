"""A folder of Parquet files, or an address in another file system, as one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from unsum.errors import TableError
from unsum.tables.source import BATCH_ROWS, Source


class DatasetSource(Source):
    """All rows of many files, file by file in the order of their names; rows count from 0."""

    def __init__(self, address: str) -> None:
        with _reachable(address):
            self.dataset = open_dataset(address)
            files = self.dataset.files
        if not files:
            raise TableError(f"{address} holds no Parquet file.")
        super().__init__(address.rstrip("/").rsplit("/", 1)[-1], list(self.dataset.schema.names))
        self.address = address

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with _reachable(self.address):
            scanner = self.dataset.scanner(
                columns=columns, batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1,
                use_threads=False,
            )  # fmt: skip
            yield from scanner.to_batches()

    def count_rows(self) -> int:
        with _reachable(self.address):
            return int(self.dataset.count_rows())


def open_dataset(address: str) -> Any:
    """A dataset of Parquet files: a local folder, or any address that pyarrow or fsspec knows."""
    import pyarrow.dataset as ds
    import pyarrow.fs as pafs

    if "://" not in address:
        files = sorted(str(path) for path in Path(address).rglob("*") if _is_table(path))
        return (
            ds.dataset(files, format="parquet") if files else ds.dataset(address, format="parquet")
        )
    try:
        system, path = pafs.FileSystem.from_uri(address)
    except pa.ArrowInvalid:  # not one of Arrow's own
        try:
            import fsspec
        except ModuleNotFoundError:
            raise TableError(
                f"{address}: this kind of address needs fsspec; install it: pip install fsspec"
            ) from None
        other, path = fsspec.core.url_to_fs(address)
        system = pafs.PyFileSystem(pafs.FSSpecHandler(other))
    return ds.dataset(path, format="parquet", filesystem=system)


def _is_table(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq") and path.name[0] not in "._"


@contextmanager
def _reachable(address: str) -> Iterator[None]:
    """Turns what goes wrong while reading into a sentence about the address."""
    try:
        yield
    except TableError:
        raise
    except Exception as error:  # file systems fail in many ways
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise TableError(
            f"{address} cannot be read as Parquet files of one kind: {reason}."
        ) from error
