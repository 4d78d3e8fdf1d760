"""What becomes of a cluster's work when workers die, join, or the scheduler is lost.

    python benchmarks/faults.py [--times 20] [--case "state goes to files"]

Real processes on this machine. Each case is repeated, and its result compared, bit by bit, with
that of threads in one process: a worker killed (SIGKILL) while chunks are made, while they are
advanced, while state goes to files, while files are written; two workers at once; a worker added in
the middle; the scheduler killed, and the run taken up again from its checkpoint on another
cluster.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from dask.distributed import Client

import unsum
from unsum.checkpoint import Checkpoint
from unsum.cluster import CUT, Cluster, join_cluster
from unsum.errors import UnsumError
from unsum.experiments.town import simulate_town
from unsum.tables import folders

SETTINGS = {"rank": 4, "max_iter": 2 * CUT + 2, "tol": 0.0}


def same(one: unsum.Recovery, other: unsum.Recovery) -> bool:
    return all(
        np.array_equal(a, b)
        for a, b in (
            (one.profiles, other.profiles), (one.weights, other.weights),
            (one.history["objective"], other.history["objective"]),
        )
    )  # fmt: skip


class Trials:
    """A cluster with two workers, readings, and what the fit should give."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.readings = unsum.Readings.from_frame(simulate_town(2000).bills, drop_bad=True)
        self.whole = unsum.recover(self.readings, "nmf", **SETTINGS)
        folders.PART_VALUES = 256 * 425
        self.whole.write(folder / "whole")
        self.start()

    def start(self) -> None:
        self.joined = join_cluster("local:2", self.folder / "shared")
        self.cluster = self.joined.__enter__()
        self.client = self.cluster.client
        self.pids = list(self.client.run(os.getpid).values())

    def kill(self, count: int) -> None:
        alive = [pid for pid in self.pids if Path(f"/proc/{pid}").exists()]
        if len(alive) < count:  # one was started again meanwhile
            alive = list(self.client.run(os.getpid).values())
        for pid in self.rng.sample(alive, count):
            os.kill(pid, signal.SIGKILL)

    def fit(self, turn: int, strike: object) -> bool:
        """A fit during which something happens after so many iterations; 0 is before the first."""
        done = iter(range(1000))

        def watch(_: int) -> None:
            if next(done) == turn:
                strike()

        if turn < 0:
            threading.Timer(self.rng.uniform(0.0, 0.3), strike).start()
        found = unsum.recover(
            self.readings, "nmf", plan=self.cluster.plan(), progress=watch, **SETTINGS
        )
        return same(self.whole, found)

    def write(self) -> bool:
        threading.Timer(self.rng.uniform(0.1, 0.8), lambda: self.kill(1)).start()
        out = self.folder / "out"
        self.whole.write(out, client=self.client)
        names = [
            sorted(path.name for path in each.iterdir()) for each in (self.folder / "whole", out)
        ]
        return names[0] == names[1] and all(
            (self.folder / "whole" / name).read_bytes() == (out / name).read_bytes()
            for name in names[0]
            if name.endswith(".parquet")
        )

    def add(self) -> bool:
        grown = self.fit(5, lambda: self.client.cluster.scale(3))
        self.client.cluster.scale(2)
        return grown

    def close(self) -> None:
        with contextlib.suppress(Exception):  # of Dask, about workers that were lost
            self.joined.__exit__(None, None, None)

    def settle(self) -> None:
        """Until two workers are there again; one killed at its own start is not started again."""
        try:
            self.client.wait_for_workers(2, timeout=30)
            self.pids = list(self.client.run(os.getpid).values())
        except Exception:  # another cluster for the next trial
            self.close()
            self.start()
        time.sleep(0.2)


def lose_scheduler(trials: Trials, number: int) -> bool:
    """A cluster of processes of its own, whose scheduler is killed; then on with the other one."""
    port = 20_000 + os.getpid() % 20_000 + number
    address = f"tcp://127.0.0.1:{port}"
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port),
         "--no-dashboard"],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
         "--no-nanny", "--no-dashboard"],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    kept = Checkpoint(trials.folder / f"run-{number}", {}, pause=0.0)
    told = False
    try:
        client = Client(address, timeout=30)
        client.wait_for_workers(1, timeout=60)
        cluster = Cluster(client, trials.folder / f"lost-{number}")
        turn, done = trials.rng.randint(1, 15), iter(range(1000))

        def strike(_: int) -> None:
            if next(done) == turn:
                scheduler.kill()

        try:
            unsum.recover(
                trials.readings, "nmf", plan=cluster.plan(kept), progress=strike, **SETTINGS
            )
        except UnsumError as error:
            told = "the cluster was lost" in str(error)
    finally:
        worker.kill()
        scheduler.kill()
        worker.wait()
        scheduler.wait()
    found = unsum.recover(trials.readings, "nmf", plan=trials.cluster.plan(kept), **SETTINGS)
    return told and same(trials.whole, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", default="", help="only cases whose name has this")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        os.chdir(folder)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        trials = Trials(Path(folder), arguments.seed)
        cases = {
            "a worker killed while chunks are made": lambda _: trials.fit(
                -1, lambda: trials.kill(1)
            ),
            "a worker killed while chunks are advanced": lambda _: trials.fit(
                trials.rng.randint(1, CUT - 3), lambda: trials.kill(1)
            ),
            "a worker killed while state goes to files": lambda _: trials.fit(
                CUT - 2, lambda: trials.kill(1)
            ),
            "a worker killed while files are written": lambda _: trials.write(),
            "both workers killed at once": lambda _: trials.fit(
                trials.rng.randint(1, 2 * CUT), lambda: trials.kill(2)
            ),
            "a worker added in the middle": lambda _: trials.add(),
            "the scheduler killed, and on from the checkpoint": lambda n: lose_scheduler(trials, n),
        }
        print("| case | times | same bits | failed |\n|---|---|---|---|")
        for name, case in cases.items():
            if arguments.case not in name:
                continue
            outcome: collections.Counter = collections.Counter()
            for number in range(arguments.times):
                try:
                    outcome["same" if case(number) else "other"] += 1
                except Exception as error:  # a campaign counts, whatever happens
                    outcome[f"{type(error).__name__}: {error}"[:120]] += 1
                trials.settle()
            others = {kind: count for kind, count in outcome.items() if kind != "same"}
            print(f"| {name} | {arguments.times} | {outcome['same']} | {others or 'none'} |",
                  flush=True)  # fmt: skip
        trials.close()


if __name__ == "__main__":
    main()
