"""Results too large for one file: a folder of Parquet files with a manifest.

Each file is written under another name, read back, checked, and recorded; the folder takes its name
when all are there. What is recorded is not written again, so that a run can go on where another
ended.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from unsum import __version__
from unsum.engine import CHUNK, block_size, count_threads, one_blas_thread
from unsum.errors import TableError
from unsum.findings import Findings
from unsum.readings import Readings
from unsum.recovery import Recovery, check_values
from unsum.tables.write import Progress, long_table, whole_file

PART_VALUES = 1 << 23
MANIFEST = "_manifest.json"  # names that begin so are no tables to readers of folders

Writers = Callable[[Recovery, list[tuple[int, int]], Path], Iterable[dict[str, Any]]]


def part_bounds(readings: Readings) -> list[tuple[int, int]]:
    """The series of each file: whole chunks, about eight million values."""
    size = CHUNK * max(1, PART_VALUES // (CHUNK * readings.n_periods))
    return [(low, min(low + size, readings.n_series)) for low in range(0, readings.n_series, size)]


def write_folder(
    recovery: Recovery,
    folder: Path,
    *,
    work: Path | None = None,
    progress: Progress | None = None,
    write_parts: Writers | None = None,
) -> dict[str, Any]:
    """Write the recovered series; returns the checks, as `write_recovery` does.

    `work` is the folder in which files are made; by default one that no other run uses.
    `write_parts` writes them; by default threads of this process do.
    """
    kept = work is not None
    work = work or folder.with_name(f".{folder.name}.{os.getpid()}.part")
    bounds = part_bounds(recovery.readings)
    try:
        work.mkdir(parents=True, exist_ok=True)
        records = []
        for record in (write_parts or write_in_threads)(recovery, bounds, work):
            records.append(record)
            if progress is not None:
                progress(record["n_series"])
        manifest = make_manifest(recovery, records)
        with whole_file(work / MANIFEST) as temporary:
            temporary.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        _keep_only(work, _names(manifest))
        if recovery.readings.further is not None:
            recovery.check_further(recovery.binding_further().forward(recovery.values, 0))
        _show(work, folder)
    except OSError as error:
        raise TableError(f"{folder} cannot be written: {error.strerror or error}.") from error
    finally:
        if not kept:
            shutil.rmtree(work, ignore_errors=True)
    return {
        "rows": manifest["rows"],
        "sum": manifest["sum"],
        "worst_relative_gap": max(record["worst_relative_gap"] for record in records),
        "verified": True,
        "files": len(records),
    }


def write_in_threads(
    recovery: Recovery, bounds: list[tuple[int, int]], work: Path
) -> Iterator[dict[str, Any]]:
    """Records of all parts in their order, a few of them in the making at a time."""
    workers = count_threads(recovery.threads)
    if recovery.readings.further is not None:
        _ = recovery.values  # solved once, for all
    waiting = iter(bounds)
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        ahead = [pool.submit(write_part, recovery, own, work) for own in islice(waiting, workers)]
        while ahead:
            yield ahead.pop(0).result()
            ahead += [pool.submit(write_part, recovery, own, work) for own in islice(waiting, 1)]


def write_part(recovery: Recovery, own: tuple[int, int], work: Path) -> dict[str, Any]:
    """One file: written, read back, checked, recorded; or its record, where it is there already."""
    first, last = own
    name = f"part-{first:010}.parquet"
    record_path = work / _record_name(name)
    known = _read_record(record_path, work / name)
    if known is not None:
        return known
    readings, size = recovery.readings, block_size(recovery.readings.n_periods)
    total = met = binding = 0.0
    with whole_file(work / name) as temporary:
        writer: Any = None
        try:
            for low in range(first, last, size):
                part = readings[low : min(low + size, last)]
                block = recovery.make(low, part)
                table = long_table(part, block.values, block.bounds)
                if writer is None:
                    repeated = ["series", "time", "covered"]
                    writer = pq.ParquetWriter(
                        temporary, table.schema, compression="zstd", use_dictionary=repeated
                    )
                writer.write_table(table)
                total += float(block.values.sum())
                firm = recovery.binding(part)
                met += float(np.sum(block.values, where=firm.covered()))
                binding += float(firm.total.sum())
        finally:
            if writer is not None:
                writer.close()
        worst = _check_back(recovery, own, temporary)
        digest = _digest(temporary)
        n_bytes = temporary.stat().st_size
    record = {
        "file": name, "n_series": last - first, "rows": (last - first) * readings.n_periods,
        "sum": total, "sum_where_binding": met, "sum_of_binding_readings": binding,
        "worst_relative_gap": worst, "bytes": n_bytes, "sha256": digest,
    }  # fmt: skip
    with whole_file(record_path) as temporary:
        temporary.write_text(json.dumps(record), encoding="utf-8")
    return record


def make_manifest(recovery: Recovery, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Files, and the books: what came in is what went out and what was set aside."""
    found = recovery.readings.findings
    summed = ("rows", "sum", "sum_where_binding", "sum_of_binding_readings")
    return {
        "unsum": __version__,
        **{name: sum(record[name] for record in records) for name in summed},
        "input": account(recovery.readings, found),
        "provenance": recovery.provenance(),
        "files": records,
    }


def account(readings: Readings, found: Findings) -> dict[str, Any]:
    """Rows and totals read = in readings + set aside + counted once though they stand twice."""
    used = float(readings.total.sum())
    return {
        "rows_read": found.rows_read,
        "rows_used": found.rows_used,
        "rows_set_aside": found.rows_set_aside,
        "n_readings": readings.n_readings,
        "sum_read": found.total_read,
        "sum_of_readings": used,
        "sum_set_aside": found.total_set_aside,
        "sum_repeated": None
        if found.total_read is None or found.total_set_aside is None
        else found.total_read - found.total_set_aside - used,
    }


def _names(manifest: dict[str, Any]) -> set[str]:
    return {MANIFEST, *(record["file"] for record in manifest["files"])}


def _keep_only(work: Path, names: set[str]) -> None:
    """Records go, and what killed processes left half written."""
    for path in work.iterdir():
        if path.name not in names:
            path.unlink(missing_ok=True)


def _record_name(name: str) -> str:
    return f".{name}.json"


def _read_record(path: Path, file: Path) -> dict[str, Any] | None:
    """What is known of a file that is there, whole and as it was recorded."""
    if not (path.exists() and file.exists()):
        return None
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    same = record.get("bytes") == file.stat().st_size and record.get("sha256") == _digest(file)
    return record if same else None


def _check_back(recovery: Recovery, own: tuple[int, int], path: Path) -> float:
    """The worst relative gap of any reading, from the file as it was written."""
    first, last = own
    n_periods, worst = recovery.readings.n_periods, 0.0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            column = file.read_row_group(group, columns=["value"]).column(0)
            values = np.asarray(column, np.float64).reshape(-1, n_periods)
            part = recovery.readings[first : first + len(values)]
            worst = max(worst, check_values(recovery.binding(part), values))
            first += len(values)
    if first != last:
        raise TableError(f"{path.name} came back with missing rows; the disk may be faulty.")
    return worst


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _show(work: Path, folder: Path) -> None:
    """Give the folder its name; an older result of that name is there until then."""
    _flush(work)
    if folder.exists():
        _exchange(work, folder)
        shutil.rmtree(work, ignore_errors=True)
    else:
        work.rename(folder)
    _flush(folder.parent)


def _exchange(one: Path, other: Path) -> None:
    """Two folders take each other's names, at once where the system can do that."""
    if sys.platform == "linux":
        here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(libc, "renameat2"):
            names = (os.fsencode(one), os.fsencode(other))
            if libc.renameat2(here, names[0], here, names[1], swap) == 0:
                return
    aside = one.with_name(f"{one.name}.old")
    other.rename(aside)
    one.rename(other)
    aside.rename(one)


def _flush(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _is_ours(folder: Path) -> bool:
    """Whether a folder holds a result and nothing else but halves of killed processes."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        known = _names(manifest)
        return "unsum" in manifest and all(
            path.name in known or (path.name.startswith(".") and path.suffix == ".part")
            for path in folder.iterdir()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def check_folder_destination(folder: Path) -> None:
    """Refuse early what is not an older result of ours, or cannot be written."""
    if folder.is_file():
        raise TableError(f"{folder} is a file; name a folder, or a file that ends in .parquet.")
    if not folder.parent.is_dir():
        raise TableError(f"the folder {folder.parent} does not exist; make it first.")
    if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder):
        raise TableError(
            f"{folder} holds something else than a result of unsum; name a new folder."
        )
