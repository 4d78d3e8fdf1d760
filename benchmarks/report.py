"""How long the report of a large panel takes, and how large it is.

    python benchmarks/report.py [--series 1000,10000,100000]

Customers with 13 bills over 365 days, recovered by `auto` with intervals; the page is written to a
temporary file, medians of several rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from apply import make_bills

import unsum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", default="1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| series | periods | seconds | MB |\n|---|---|---|---|")
    for n_series in map(int, arguments.series.split(",")):
        recovery = unsum.recover(make_bills(n_series, seed=1), interval=0.9)
        times = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "page.html"
            for _ in range(arguments.rounds):
                begun = time.perf_counter()
                recovery.report(path)
                times.append(time.perf_counter() - begun)
            size = path.stat().st_size / 1e6
        seconds = statistics.median(times)
        print(f"| {n_series:,} | {recovery.readings.n_periods} | {seconds:.1f} | {size:.1f} |")


if __name__ == "__main__":
    main()
