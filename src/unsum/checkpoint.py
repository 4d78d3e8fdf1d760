"""Runs that survive their process: what was done so far, in a folder.

A folder belongs to one run: the same data, settings and version. It holds the judged readings where
they are on disk anyway, the state of an iterative fit, the fit, and the files written so far. Each
appears whole or not at all, so that a run can end at any moment and be taken up again.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from unsum import __version__
from unsum.errors import ParameterError, TableError
from unsum.factorization.crew import flatten, unflatten
from unsum.findings import Findings
from unsum.readings import Readings
from unsum.recovery import Recovery
from unsum.saving import load_tree, save_tree
from unsum.tables.intake import Intake
from unsum.tables.rows import Options
from unsum.tables.source import Source, open_source
from unsum.tables.store import open_store
from unsum.tables.within import take_in_within
from unsum.tables.write import whole_file

SECONDS = 20.0  # between two times that the state of a fit is kept


class Checkpoint:
    """The folder of a run."""

    def __init__(
        self, folder: Path, identity: dict[str, Any], *, pause: float | None = None
    ) -> None:
        given = os.environ.get("UNSUM_CHECKPOINT_SECONDS", SECONDS)
        self.folder, self.pause = folder, float(given) if pause is None else pause
        self.saved = time.monotonic()
        text = json.dumps(identity | {"unsum": __version__}, default=str, indent=1)
        identity = json.loads(text)
        self.key = hashlib.sha256(text.encode()).hexdigest()[:12]
        path = folder / "run.json"
        if path.exists():
            _require_same(json.loads(path.read_text(encoding="utf-8")), identity, folder)
            return
        begun = {each.name for each in folder.iterdir()} if folder.exists() else set()
        if any(not name.startswith(".run.json") for name in begun):  # that is one being made
            raise ParameterError(
                f"{folder} holds something else than a checkpoint; name a new or empty folder."
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TableError(f"{folder} cannot be made: {error.strerror}.") from error
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def beside(self, out: Path) -> Path:
        """Where the files of an output are made before it takes its name."""
        return out.with_name(f".{out.name}.{self.key}.part")

    def tidy(self, *outputs: Path) -> None:
        """Remove what this run left half written when it was ended."""
        for out in outputs:
            _remove_halves(out)

    @property
    def work(self) -> Path:
        """Where files larger than memory are put."""
        return self.folder / "work"

    def take_in(self, source: Any, options: Options, memory: int, say: Any) -> Intake:
        """Judge a table, or take up what was judged before."""
        done = self.folder / "findings.npz"
        store = self.work / "readings"
        if done.exists():
            findings: Findings = load_tree(done)
            return Intake(findings, open_source(source), open_store(store, findings))
        shutil.rmtree(self.work, ignore_errors=True)
        intake = take_in_within(source, options, memory, self.work, say)
        if (store / "store.json").exists():  # small tables are read again
            save_tree(intake.findings, done)
        return intake

    def load_fit(self, readings: Readings, threads: int | None) -> Recovery | None:
        """The recovery of readings, where its fit ended before."""
        path = self.folder / "fit.npz"
        if not path.exists():
            return None
        recovery: Recovery = load_tree(path)
        return replace(recovery, readings=readings, threads=threads)

    def save_fit(self, recovery: Recovery) -> None:
        save_tree(replace(recovery, readings=recovery.readings[:0]), self.folder / "fit.npz")
        (self.folder / "loop.npz").unlink(missing_ok=True)

    def load(self) -> dict[str, Any] | None:
        """The state of a fit, where it was kept."""
        path = self.folder / "loop.npz"
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                flat = {name: file[name] for name in file.files}
        except (OSError, ValueError) as error:
            raise TableError(f"{path} cannot be read: {error}; delete {self.folder}.") from error
        return flat | {"crew": unflatten(flat)}

    def save(self, make: Callable[[], dict[str, Any]]) -> None:
        """Keep the state of a fit, when some time has passed since the last time."""
        if time.monotonic() - self.saved < self.pause:
            return
        state = make()
        state |= flatten(state.pop("crew"))
        with whole_file(self.folder / "loop.npz") as temporary, temporary.open("wb") as file:
            np.savez(file, **state)
        self.saved = time.monotonic()

    def clear(self) -> None:
        """The run is done; nothing of it is needed any more. What says whose it is goes last."""
        shutil.rmtree(self.work, ignore_errors=True)
        for name in ("findings.npz", "fit.npz", "loop.npz", "run.json"):
            _remove_halves(self.folder / name)
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it, which is not ours to remove
            self.folder.rmdir()


def _remove_halves(path: Path) -> None:
    """Files that were on their way to this name when a process was ended."""
    for half in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        if half.is_file():
            half.unlink(missing_ok=True)


def identify(source: Any, options: Options, **settings: Any) -> dict[str, Any]:
    """What makes a run what it is: the table as it is now, and everything it was told."""
    told = {name: value for name, value in asdict(options).items() if name != "calendar"}
    return {"input": _describe(open_source(source)), "options": told, **settings}


def _describe(source: Source) -> Any:
    from unsum.tables.dataset import DatasetSource

    if isinstance(source, DatasetSource):
        found = source.dataset.filesystem.get_file_info(source.dataset.files)
        return [[each.path, each.size, each.mtime_ns] for each in found]
    path = getattr(source, "path", None)
    return _stamp(path) if path is not None else source.label


def _stamp(path: Path) -> list[Any]:
    found = path.stat()
    return [str(path.resolve()), found.st_size, found.st_mtime_ns]


def _require_same(then: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    differ = [name for name in sorted(then | now) if then.get(name) != now.get(name)]
    if differ:
        first = differ[0]
        was, is_ = then.get(first), now.get(first)
        if isinstance(was, dict) and isinstance(is_, dict):
            inner = next(key for key in sorted(was | is_) if was.get(key) != is_.get(key))
            first, was, is_ = inner, was.get(inner), is_.get(inner)
        raise ParameterError(
            f"{folder} is the checkpoint of another run: its {first} was {was!r}, and now is "
            f"{is_!r}. Use another folder, or delete this one."
        )
