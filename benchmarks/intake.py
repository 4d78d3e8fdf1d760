"""Time and peak memory of validating a large table of readings.

    python benchmarks/intake.py [--rows 10000000]

Makes a seeded table of bills as CSV and as Parquet, in order and shuffled, in a temporary folder,
and runs `unsum check` on each in a process of its own. Target: 10 million readings in less than
1.5 GB.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
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


def run(path: Path) -> tuple[float, float]:
    """Seconds and peak memory in GB of `unsum check` on a file."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "unsum", "check", str(path)], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"unsum check failed on {path.name}")
    return time.perf_counter() - begun, peak_bytes(usage) / 1e9


def peak_bytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    print(f"{rows:,} readings of {-(-rows // BILLS_PER_SERIES):,} series")
    print(f"{'table':<18} {'MB':>6} {'seconds':>8} {'peak GB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for shuffled in (False, True):
            table = make_table(rows, shuffled=shuffled)
            for kind in ("csv", "parquet"):
                path = Path(folder) / f"bills.{kind}"
                pv.write_csv(table, path) if kind == "csv" else pq.write_table(table, path)
                seconds, peak = run(path)
                name = f"{kind}, {'shuffled' if shuffled else 'in order'}"
                size = path.stat().st_size / 1e6
                print(f"{name:<18} {size:>6.0f} {seconds:>8.1f} {peak:>8.2f}")


if __name__ == "__main__":
    main()
