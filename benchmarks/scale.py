"""Time and memory from ten thousand to ten million series, on tables larger than memory.

    python benchmarks/scale.py [--series 10000,100000,1000000] [--fit-only 10000000]
    python benchmarks/scale.py --series 1500000 --reads 52 --plain --memory 400000000 \
        --limit 2000000000

Writes a folder of Parquet files with 13 bills of every customer over 365 days, rows in random
order, and runs `unsum recover` on it in a process of its own, whose memory is limited by the
operating system (RLIMIT_DATA, the sum of its own allocations). Peak memory is that of /proc: all
resident pages, files mapped into memory included, and the part that is not of files. With
--fit-only the table is judged and the fit made, but no values.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_PERIODS, ROWS = 365, 2_000_000
# The limit counts addresses, not pages: allocators that reserve more than they use would hit it.
FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
FIT_ONLY = """
import sys, time, json
from pathlib import Path
from unsum.recovering import recover
from unsum.tables.rows import Options
from unsum.tables.within import take_in_within
source, work, memory, method = sys.argv[1:5]
begun = time.perf_counter()
readings = take_in_within(source, Options(), int(memory), Path(work)).readings(drop_bad=False)
read = time.perf_counter()
recovery = recover(readings, method, **json.loads(sys.argv[5]))
seconds = {"reading": read - begun, "fitting": time.perf_counter() - read}
print(json.dumps({"seconds": seconds, "checks": {"rows": 0}}))
"""


def write_bills(n_series: int, n_reads: int, folder: Path, *, plain: bool, seed: int = 0) -> int:
    """Bills in files of two million rows; series are scattered over all files. Returns bytes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    first = np.datetime64("2023-01-01")
    n_rows = n_series * n_reads
    usual = N_PERIODS // (n_reads + 1) + 1
    lengths = rng.integers(usual - 3, usual + 2, (n_series, n_reads)).astype(np.int16)
    shift = rng.integers(0, 2, (n_series, 1))
    stop = np.minimum(shift + np.cumsum(lengths, axis=1), N_PERIODS).astype(np.int16)
    start = np.concatenate([stop[:, :1] - lengths[:, :1], stop[:, :-1]], axis=1).astype(np.int16)
    level = rng.lognormal(0, 1, n_series)
    order = rng.permutation(n_rows)
    for k, low in enumerate(range(0, n_rows, ROWS)):
        rows = order[low : low + ROWS]
        who, bill = np.divmod(rows, n_reads)
        a, z = start[who, bill], stop[who, bill]
        season = 1 + 0.5 * np.cos(2 * np.pi * (a + z) / 2 / N_PERIODS)
        total = level[who] * season * (z - a) * rng.gamma(20, 1 / 20, len(rows))
        names = np.char.add("C", np.char.zfill(who.astype("U8"), 8))
        table = {"series": names, "start": first + a, "end": first + z, "total": total.round(3)}
        how = {"compression": "none", "use_dictionary": False} if plain else {"compression": "zstd"}
        pq.write_table(pa.table(table), folder / f"{k:04}.parquet", **how)
    return sum(path.stat().st_size for path in folder.iterdir())


def run(command: list[str], limit: int) -> dict:
    """Run a command under a limit; what it printed, its time and its peaks of memory in MB."""

    def restrict() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=restrict, env=os.environ | FRUGAL
    )
    peaks = {"resident": 0, "own": 0}

    def watch() -> None:
        while process.poll() is None:
            try:
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            except OSError:
                return
            found = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
            peaks["resident"] = max(peaks["resident"], int(found.get("VmHWM", 0)) // 1000)
            peaks["own"] = max(peaks["own"], int(found.get("RssAnon", 0)) // 1000)
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    printed, _ = process.communicate()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:6])} ... ended with {process.returncode}")
    return json.loads(printed) | {"wall": time.perf_counter() - begun, "peaks": peaks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", default="10000,100000,1000000")
    parser.add_argument("--fit-only", default="")
    parser.add_argument("--reads", type=int, default=13, help="of each series")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--settings", default="{}")
    parser.add_argument("--plain", action="store_true", help="files without any compression")
    parser.add_argument("--memory", type=int, default=1_500_000_000, help="given to --memory")
    parser.add_argument("--limit", type=int, default=4_000_000_000, help="set for the process")
    arguments = parser.parse_args()
    print("| series | table, MB | reading, s | fitting, s | writing, s | wall, s | rows written | "
          "peak, MB | own, MB |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    walls = []
    sizes = [(int(n), False) for n in arguments.series.split(",") if n]
    sizes += [(int(n), True) for n in arguments.fit_only.split(",") if n]
    for n_series, fit_only in sizes:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
            folder = Path(place)
            size = write_bills(n_series, arguments.reads, folder / "bills", plain=arguments.plain)
            size /= 1e6
            settings = json.loads(arguments.settings)
            if fit_only:
                command = [
                    sys.executable, "-c", FIT_ONLY, str(folder / "bills"), str(folder / "work"),
                    str(arguments.memory), arguments.method, arguments.settings,
                ]  # fmt: skip
            else:
                options = [f"--{name}={value}" for name, value in settings.items()]
                command = [
                    sys.executable, "-m", "unsum", "recover", str(folder / "bills"), "-o",
                    str(folder / "daily"), "--method", arguments.method, "--json", "--memory",
                    str(arguments.memory), *options,
                ]  # fmt: skip
            done = run(command, arguments.limit)
            seconds = done["seconds"]
            print(
                f"| {n_series:,}{' (fit only)' if fit_only else ''} | {size:,.0f} | "
                + " | ".join(f"{seconds.get(k, 0):.1f}" for k in ("reading", "fitting", "writing"))
                + f" | {done['wall']:.1f} | {done['checks']['rows']:,} | "
                f"{done['peaks']['resident']:,} | {done['peaks']['own']:,} |",
                flush=True,
            )
            if not fit_only:
                walls.append((n_series, done["wall"]))
            shutil.rmtree(folder)
            folder.mkdir()
    for (a, s), (b, t) in itertools.pairwise(walls):
        print(f"from {a:,} to {b:,} series: time grows with exponent "
              f"{math.log(t / s) / math.log(b / a):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
