"""Results to files: whole and checked, or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from unsum.errors import ParameterError, TableError, require_choice
from unsum.findings import Findings
from unsum.readings import Readings
from unsum.recovery import Recovery, check_values
from unsum.tables.source import Source

if TYPE_CHECKING:
    from unsum.intervals import Bounds

MAX_WIDE = 10_000

Progress = Callable[[int], None]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`; the file takes its place, flushed, when all went well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TableError(f"{path} cannot be written: {reason}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_table(table: pa.Table, path: Path, source: object = None) -> None:
    """A table as CSV or Parquet, by the extension; never over the file it came from."""
    kind = check_destination(path, source)
    with whole_file(path) as temporary:
        if kind == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, temporary, compression="zstd")
        else:
            import pyarrow.csv as pv

            pv.write_csv(_spell_times(table), temporary)


def write_recovery(
    recovery: Recovery,
    path: Path,
    *,
    layout: str = "long",
    provenance: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the recovered series, read them back, check every reading, and only then show them.

    Returns the checks: rows written, worst relative gap of a reading, sum of all values.
    """
    require_choice("layout", layout, ("long", "wide"))
    kind = check_destination(path)
    metadata = {"unsum": json.dumps(provenance or recovery.provenance())}
    with whole_file(path) as temporary:
        tables = _wide_tables(recovery) if layout == "wide" else _long_tables(recovery)
        rows, total = _write_stream(tables, temporary, kind, metadata, progress)
        worst = _read_back(recovery, temporary, kind, layout)
    return {
        "rows": rows,
        "sum": total if np.isfinite(total) else None,
        "worst_relative_gap": worst,
        "verified": True,
    }


def long_table(part: Readings, values: np.ndarray, bounds: Bounds | None = None) -> pa.Table:
    """Series, time, value, covered (and lower, upper) for a part of the readings."""
    n_series, n_periods = values.shape
    times = part.calendar.labels()
    columns = {
        "series": part.names.take(pa.array(np.repeat(np.arange(n_series), n_periods))),
        "time": times.take(pa.array(np.tile(np.arange(n_periods), n_series))),
        "value": pa.array(values.ravel()),
        "covered": pa.array(part.covered().ravel()),
    }
    if bounds is not None:
        columns |= {
            "lower": pa.array(bounds.lower.ravel()),
            "upper": pa.array(bounds.upper.ravel()),
        }
    return pa.table(columns)


def _long_tables(recovery: Recovery) -> Iterator[tuple[int, float, pa.Table]]:
    for block in recovery.blocks():
        table = long_table(block.part, block.values, block.bounds)
        yield block.part.n_series, _sum(block.values), table


def _wide_tables(recovery: Recovery) -> Iterator[tuple[int, float, pa.Table]]:
    if recovery.interval is not None:
        raise ParameterError("a wide table has no place for intervals; write a long one.")
    names = [str(name) for name in recovery.readings.names.to_pylist()]
    if len(names) > MAX_WIDE:
        raise ParameterError(
            f"a wide table of {len(names):,} series would have as many columns (at most "
            f"{MAX_WIDE:,}); write a long one."
        )
    if "time" in names:
        raise ParameterError("a series is called 'time'; write a long table.")
    columns = dict(zip(names, recovery.values, strict=True))
    table = pa.table({"time": recovery.readings.calendar.labels(), **columns})
    yield len(names), _sum(recovery.values), table


def _sum(values: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(values.sum())


def _write_stream(
    tables: Iterator[tuple[int, float, pa.Table]],
    path: Path,
    kind: str,
    metadata: dict[str, str],
    progress: Progress | None,
) -> tuple[int, float]:
    writer: Any = None
    rows, total = 0, 0.0
    try:
        for n_series, amount, table in tables:
            if kind == "csv":
                table = _spell_times(table)
            if writer is None:
                writer = _open_writer(table.schema, path, kind, metadata)
            writer.write_table(table)
            rows += len(table)
            total += amount
            if progress is not None:
                progress(n_series)
    finally:
        if writer is not None:
            writer.close()
    return rows, total


def _open_writer(schema: pa.Schema, path: Path, kind: str, metadata: dict[str, str]) -> Any:
    if kind == "parquet":
        import pyarrow.parquet as pq

        repeated = [name for name in schema.names if name in ("series", "time", "covered")]
        return pq.ParquetWriter(
            path, schema.with_metadata(metadata), compression="zstd", use_dictionary=repeated
        )
    import pyarrow.csv as pv

    return pv.CSVWriter(path, schema)


def _spell_times(table: pa.Table) -> pa.Table:
    """Timestamps as ISO 8601 text with their offset, which CSV has no type for."""
    from unsum.calendar import Calendar, Frequency

    for i, item in enumerate(table.schema):
        if pa.types.is_timestamp(item.type):
            encoded = table.column(i).combine_chunks().dictionary_encode()
            edges = np.asarray(encoded.dictionary.cast(pa.int64()))
            texts = Calendar(Frequency.parse("min"), item.type.tz, edges).texts(slice(None))
            spelt = pa.array(texts).take(encoded.indices)
            table = table.set_column(i, item.name, spelt)
    return table


def _read_back(recovery: Recovery, path: Path, kind: str, layout: str) -> float:
    """The worst relative gap of any reading, from the file as it was written."""
    readings = recovery.binding(recovery.readings)
    worst = 0.0
    found: np.ndarray | float = 0.0  # the totals beyond single series
    for first, values in _read_values(readings, path, kind, layout):
        part = readings[first : first + len(values)]
        worst = max(worst, check_values(part, values))
        if recovery.readings.further is not None:
            found = found + recovery.binding_further().forward(values, first)
    if recovery.readings.further is not None:
        recovery.check_further(np.asarray(found))
    return worst


def _read_values(
    readings: Readings, path: Path, kind: str, layout: str
) -> Iterator[tuple[int, np.ndarray]]:
    """The values of some series, and the place of the first of them, again and again."""
    if layout == "wide":
        names = [str(name) for name in readings.names.to_pylist()]
        table = pa.Table.from_batches(_batches(path, kind, names))
        yield 0, np.stack([np.asarray(table[name], np.float64) for name in names])
        return
    first = 0
    pending: list[np.ndarray] = []
    n_pending, n_periods = 0, readings.n_periods
    for batch in _batches(path, kind, ["value"]):
        pending.append(np.asarray(batch.column(0), np.float64))
        n_pending += len(batch)
        whole = n_pending // n_periods
        if whole:
            joined = np.concatenate(pending)
            yield first, joined[: whole * n_periods].reshape(whole, n_periods)
            first += whole
            pending = [joined[whole * n_periods :]]
            n_pending = len(pending[0])
    if first != readings.n_series or n_pending:
        raise TableError(f"{path.name} came back with missing rows; the disk may be faulty.")


def _batches(path: Path, kind: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=1 << 20, columns=columns)
        return
    import pyarrow.csv as pv

    yield from pv.open_csv(
        path,
        convert_options=pv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns, pa.float64())
        ),
        parse_options=pv.ParseOptions(newlines_in_values=True),
    )


def write_set_aside(source: Source, findings: Findings, path: Path) -> None:
    """The rows that were not used, as they stood in the table, each with its reason (CSV)."""
    import pyarrow.csv as pv

    reasons = dict(
        zip(findings.set_aside_rows.tolist(), findings.set_aside_reasons.tolist(), strict=True)
    )
    mark = "unsum_" if {"row", "reason", "sentence"} & set(source.columns) else ""
    tables = []
    position = 0
    for table in source.texts():
        rows = source.row_numbers(np.arange(position, position + len(table)))
        position += len(table)
        chosen = np.flatnonzero(np.isin(rows, findings.set_aside_rows))
        tables.append(
            table.take(pa.array(chosen)).add_column(0, f"{mark}row", pa.array(rows[chosen]))
        )
    if source.skipped:
        rows = np.array(sorted(source.skipped))
        blank = [pa.nulls(len(rows), pa.string()) for _ in source.columns[1:]]
        texts = pa.array([source.skipped[int(row)] for row in rows])
        tables.append(pa.table([pa.array(rows), texts, *blank], tables[0].column_names))
    table = pa.concat_tables(tables).sort_by(f"{mark}row")
    found = [findings.items[reasons[row]] for row in table[f"{mark}row"].to_pylist()]
    table = table.append_column(f"{mark}reason", pa.array([finding.code for finding in found]))
    sentences = pa.array([finding.sentence for finding in found])
    pv.write_csv(table.append_column(f"{mark}sentence", sentences), path)


def check_model_destination(path: Path) -> None:
    """Refuse early a name that a saved recovery cannot have."""
    if path.suffix != ".unsum":
        raise ParameterError(f"{path.name} must end in .unsum, as saved recoveries do.")
    _check_folder(path)


def check_page_destination(path: Path) -> None:
    """Refuse early a name that a browser would not take for a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"{path.name} must end in .html, so that a browser opens it.")
    _check_folder(path)


def check_destination(path: Path, source: object = None) -> str:
    """The kind of file that a path asks for, refused early when it cannot be written."""
    kinds = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}
    if path.suffix.lower() not in kinds:
        raise ParameterError(
            f"{path.name} must end in .csv or .parquet, so that its kind is known."
        )
    if isinstance(source, Path) and path.exists() and source.exists() and path.samefile(source):
        raise ParameterError(f"{path} is the input; write to another file.")
    _check_folder(path)
    return kinds[path.suffix.lower()]


def _check_folder(path: Path) -> None:
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise TableError(f"the folder {path.parent} does not exist; make it first.")
