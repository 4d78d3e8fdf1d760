"""Time and peak memory of the commands on large files.

    python benchmarks/files.py [--check 10000000] [--recover 1000000]

Makes seeded tables of bills in a temporary folder and runs `unsum check` and `unsum recover` on
them, each in a process of its own. Target: 10 million readings validated in less than 1.5 GB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

BILLS_PER_SERIES = 13


def make_table(n_rows: int, *, shuffled: bool) -> pa.Table:
    rng = np.random.default_rng(0)
    n_series = -(-n_rows // BILLS_PER_SERIES)
    lengths = rng.integers(27, 36, (n_series, BILLS_PER_SERIES))
    ends = rng.integers(0, 30, (n_series, 1)) + np.cumsum(lengths, axis=1)
    epoch = np.datetime64("2023-01-01").astype(np.int64)
    order = np.arange(n_rows)
    if shuffled:
        rng.shuffle(order)
    names = pa.array([f"meter-{number:08d}" for number in range(n_series)])
    starts = (ends - lengths).ravel()[order] + epoch
    return pa.table(
        {
            "series": names.take(pa.array(order // BILLS_PER_SERIES)),
            "start": pa.array(starts.astype(np.int32)).cast(pa.date32()),
            "end": pa.array((ends.ravel()[order] + epoch).astype(np.int32)).cast(pa.date32()),
            "total": pa.array(rng.gamma(4.0, 80.0, n_rows).round(2)),
        }
    )


def make_file(n_rows: int, path: Path, *, shuffled: bool) -> None:
    table = make_table(n_rows, shuffled=shuffled)
    if path.suffix == ".csv":
        pv.write_csv(table, path)
    else:
        pq.write_table(table, path)


def in_another_process(n_rows: int, path: Path, *, shuffled: bool) -> None:
    """Make a file without growing this process, whose peak its children would inherit."""
    maker = get_context("spawn").Process(
        target=make_file, args=(n_rows, path), kwargs={"shuffled": shuffled}
    )
    maker.start()
    maker.join()
    if maker.exitcode:
        raise SystemExit("the table could not be made")


def run(*arguments: str | Path) -> tuple[float, float]:
    """Seconds and peak memory in GB of a command."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "unsum", *map(str, arguments)], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"unsum {arguments[0]} failed")
    unit = 1 if sys.platform == "darwin" else 1024
    return time.perf_counter() - begun, usage.ru_maxrss * unit / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", type=int, default=10_000_000, help="readings to check")
    parser.add_argument("--recover", type=int, default=1_000_000, help="readings to recover")
    sizes = parser.parse_args()
    print("| command | readings | table | MB | seconds | peak GB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        run("demo", "--out", Path(folder) / "demo")  # compiles the kernels
        for command in ("check", "recover"):
            n_rows = getattr(sizes, command)
            for shuffled in (False, True):
                for kind in (".csv", ".parquet"):
                    path = Path(folder) / f"bills{kind}"
                    in_another_process(n_rows, path, shuffled=shuffled)
                    more = ["-o", Path(folder) / "out.parquet"] if command == "recover" else []
                    seconds, peak = run(command, path, *more)
                    name = f"{kind[1:]}, {'shuffled' if shuffled else 'in order'}"
                    size = path.stat().st_size / 1e6
                    print(
                        f"| {command} | {n_rows:,} | {name} | {size:.0f} | {seconds:.1f} | "
                        f"{peak:.2f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
