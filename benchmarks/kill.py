"""Runs that are killed at random moments, and runs whose writes fail, one after the other.

    python benchmarks/kill.py [--kills 200] [--seed 0]

A run reads a table in parts, fits 300 iterations, keeps its state after each of them, and writes a
folder of files. It is ended by SIGKILL at a random moment, of the run or of its writing, and
started again by the same command, up to three times, until it is left alone; then its files are
compared, byte by byte, with those of a run that nothing happened to. After each kill, the output
must be absent or whole.

Then every fsync and every rename of a run is failed in turn ("no space left", "permission
denied"), and the size of files is limited by the operating system (RLIMIT_FSIZE) to ever more
bytes: the older result must be there untouched, or the new one whole, and the message must be a
sentence.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from unsum.experiments.town import simulate_town

COMMAND = [
    "recover", "bills.parquet", "-o", "out", "--drop-bad", "--method", "nmf", "--rank", "4",
    "--max-iter", "300", "--tol", "0", "--memory", "2MB",
]  # fmt: skip
SMALL = "from unsum.tables import folders; folders.PART_VALUES = 16 * 425\n"
MAIN = "import sys; from unsum.cli import main; sys.argv = ['unsum', *sys.argv[1:]]; main()"
FAILING = """
import os
kind, turn, number = os.environ["FAIL_KIND"], *map(int, os.environ["FAIL_AT"].split())
real = getattr(os, kind)
def fail(*given, **more):
    global turn
    turn -= 1
    if turn == 0:
        raise OSError(number, os.strerror(number))
    return real(*given, **more)
setattr(os, kind, fail)
"""


def command(*more: str, extra: str = "") -> list[str]:
    return [sys.executable, "-c", SMALL + extra + MAIN, *COMMAND, *more]


def digest(folder: Path) -> str:
    """All files of a result, names and bytes; of the manifest, which tells of times, the name."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        content = b"" if path.name == "_manifest.json" else path.read_bytes()
        total.update(path.name.encode() + content)
    return total.hexdigest()


def phase(place: Path) -> str:
    run = place / "run"
    if (run / "fit.npz").exists():
        return "writing"
    if (run / "loop.npz").exists():
        return "fitting"
    if (run / "run.json").exists():
        return "reading"
    return "starting, or done"


def wait_for(process: subprocess.Popen, place: Path, rng: random.Random, lasts: float) -> bool:
    """Until a random moment of a run, or of its writing; whether it still runs then."""
    if rng.random() < 0.5:
        moment = rng.uniform(0.4, lasts)
    else:
        while process.poll() is None and phase(place) != "writing":
            time.sleep(0.001)
        moment = rng.uniform(0.0, 0.3)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    return process.poll() is None


def kill_campaign(place: Path, kills: int, seed: int) -> None:
    environment = os.environ | {"UNSUM_CHECKPOINT_SECONDS": "0"}
    subprocess.run(command(), cwd=place, check=True, capture_output=True)
    whole = digest(place / "out")
    shutil.rmtree(place / "out")
    begun = time.perf_counter()
    subprocess.run(
        command("--checkpoint", "run"), cwd=place, env=environment, check=True, capture_output=True
    )
    lasts = time.perf_counter() - begun
    shutil.rmtree(place / "out")
    rng = random.Random(seed)
    moments: collections.Counter = collections.Counter()
    done = wrong = partial = runs = 0
    while done < kills:
        for _ in range(rng.randint(1, 3)):
            process = subprocess.Popen(
                command("--checkpoint", "run"), cwd=place, env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if not wait_for(process, place, rng, lasts):
                break  # it was faster
            moments[phase(place)] += 1
            process.kill()
            process.wait()
            done += 1
            out = place / "out"
            if out.exists() and digest(out) != whole:
                partial += 1
        ended = subprocess.run(
            command("--checkpoint", "run"), cwd=place, env=environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        runs += 1
        if ended.returncode or not (place / "out").exists() or digest(place / "out") != whole:
            wrong += 1
            print("  not recovered:", ended.stderr[-300:])
        left = {path.name for path in place.iterdir()} - {"bills.parquet", "out"}
        left -= {"out.set-aside.csv"}
        if left:
            print("  left behind:", left)
            for name in left:
                shutil.rmtree(place / name, ignore_errors=True)
        shutil.rmtree(place / "out", ignore_errors=True)
    print(f"kills {done} ({dict(moments)}), runs {runs}: {runs - wrong} ended with the same bytes, "
          f"partial outputs seen {partial}")  # fmt: skip


def fail_campaign(place: Path) -> None:
    subprocess.run(command(), cwd=place, check=True, capture_output=True)
    whole = digest(place / "out")
    marker = place / "out" / "_manifest.json"
    for kind, number, name in (
        ("fsync", 28, "no space left"), ("replace", 13, "permission denied"),
    ):  # fmt: skip
        count = intact = replaced = told = 0
        while True:
            before = marker.stat().st_mtime_ns
            environment = os.environ | {
                "FAIL_KIND": kind, "FAIL_AT": f"{count + 1} {number}",
            }  # fmt: skip
            ended = subprocess.run(
                command("--checkpoint", "run", extra=FAILING), cwd=place, env=environment,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            shutil.rmtree(place / "run", ignore_errors=True)
            if ended.returncode == 0:
                break
            count += 1
            intact += digest(place / "out") == whole and marker.stat().st_mtime_ns == before
            replaced += digest(place / "out") == whole and marker.stat().st_mtime_ns != before
            told += "Traceback" not in ended.stderr and "unsum:" in ended.stderr
        print(f"{kind} failed ({name}) {count} times: older result untouched {intact}, the new one "
              f"whole in its place {replaced}, told in a sentence {told}")  # fmt: skip
    count = intact = told = 0
    for limit in [2**k for k in range(9, 30)]:
        before = marker.stat().st_mtime_ns
        ended = subprocess.run(
            command("--checkpoint", "run"), cwd=place, capture_output=True, text=True, check=False,
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit,) * 2),
        )  # fmt: skip
        shutil.rmtree(place / "run", ignore_errors=True)
        if ended.returncode == 0:
            break
        count += 1
        intact += digest(place / "out") == whole and marker.stat().st_mtime_ns == before
        fine = "Traceback" not in ended.stderr and "unsum:" in ended.stderr
        told += fine
        if not fine:
            print("  said:", ended.stderr[-400:])
    print(f"files limited to 2^9 ... 2^{9 + count} bytes, {count} runs failed: older result "
          f"untouched {intact}, told in a sentence {told}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pq.write_table(simulate_town(900).bills, place / "bills.parquet")
        kill_campaign(place, arguments.kills, arguments.seed)
        fail_campaign(place)


if __name__ == "__main__":
    main()
