"""What the local page works on: files that were given, and the work done on them.

Everything lies in one temporary folder under names of our own; it goes when the server does.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from unsum.errors import ParameterError, ReadingsError, TableError, UnsumError
from unsum.tables.intake import Intake, take_in
from unsum.tables.jobs import Job, Outputs
from unsum.tables.rows import Options
from unsum.tables.running import run_recover
from unsum.tables.source import Source, open_source

KINDS = {".csv": ".csv", ".txt": ".csv", ".tsv": ".csv", ".parquet": ".parquet", ".pq": ".parquet"}
ROLES = ("series", "start", "end", "total", "quality")
MOST_FILES = 8  # kept at once; the oldest goes first
PREVIEW = 5  # rows
TEXTS = ("freq", "tz", "end", "overlaps", "negatives", "decimal", "date_format")


@dataclass
class Work:
    """A recovery that is waiting, running, done, or failed."""

    state: str = "waiting"
    stage: str = ""
    done: int = 0
    total: int = 0
    error: str = ""
    job: Job | None = None
    folder: Path = field(default_factory=Path)

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            name: getattr(self, name) for name in ("state", "stage", "done", "total", "error")
        }
        if self.job is not None:
            ours = f"{self.folder}/"
            told["facts"] = [
                (label, text.replace(ours, ""))
                for label, text in self.job.facts()
                if label not in ("report", "time")
            ]
            told["set_aside"] = self.job.set_aside is not None
            told["output"] = self.job.out.name
        return told


@dataclass
class Upload:
    """A file that was given, under a name of our own."""

    path: Path
    label: str  # what the user calls it; only ever shown
    work: Work | None = None


class Desk:
    """All uploads of a server, and the one worker that serves them in turn."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uploads: dict[str, Upload] = {}
        self._lock = Lock()
        self._waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._serve, daemon=True).start()  # it ends with the server, whatever it does

    def _serve(self) -> None:
        while True:
            self._waiting.get()()

    @contextmanager
    def receive(self, label: str) -> Iterator[tuple[str, Path]]:
        """A place for a new file; it is kept when it arrives whole."""
        kind = KINDS.get(Path(label).suffix.lower())
        if kind is None:
            raise ParameterError(f"{label[-80:]!r} must be a CSV or Parquet file, by its name.")
        token = secrets.token_urlsafe(16)
        folder = self.folder / token
        folder.mkdir()
        path = folder / f"readings{kind}"
        try:
            yield token, path
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        with self._lock:
            self.uploads[token] = Upload(path, label[-80:])
            idle = [key for key, each in self.uploads.items() if not _busy(each)]
            for key in idle[: max(0, len(self.uploads) - MOST_FILES)]:
                self._drop(key)

    def forget(self, token: str) -> None:
        with self._lock:
            if token in self.uploads and not _busy(self.uploads[token]):
                self._drop(token)

    def _drop(self, token: str) -> None:
        upload = self.uploads.pop(token)
        shutil.rmtree(upload.path.parent, ignore_errors=True)

    def look(self, token: str) -> dict[str, Any]:
        """Columns, a guess at what they hold, and the first rows of a file."""
        upload = self._upload(token)
        source = open_source(upload.path)
        first = next(source.texts(), None)
        columns = [] if first is None else [c.to_pylist() for c in first.slice(0, PREVIEW).columns]
        return {
            "label": upload.label,
            "columns": source.columns,
            "guess": guess_columns(source),
            "rows": [[cell or "" for cell in row] for row in zip(*columns, strict=True)],
        }

    def check(self, token: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What is wrong with a file, read as asked."""
        intake = self._take_in(token, asked)
        usable = None if intake.usable is None else intake.usable.describe()
        return {**intake.findings.to_dict(), "usable": usable}

    def _take_in(self, token: str, asked: Mapping[str, Any]) -> Intake:
        return take_in(self._upload(token).path, make_options(asked))

    def start(self, token: str, asked: Mapping[str, Any]) -> None:
        """Put a recovery in the queue."""
        options = make_options(asked)
        upload = self._upload(token)
        if _busy(upload):
            raise ParameterError("this file is being recovered; wait for it to end.")
        kind = ".parquet" if asked.get("output") == "parquet" else ".csv"
        folder = upload.path.parent / "out"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        outputs = Outputs(
            folder / f"recovered{kind}", report=folder / "report.html", title=upload.label
        )
        try:
            interval = float(asked["interval"]) if asked.get("interval") else None
        except (TypeError, ValueError):
            raise ParameterError(
                f"the interval must be a number; got {asked['interval']!r}."
            ) from None
        method = str(asked.get("method") or "auto")
        upload.work = Work(folder=folder)
        run = partial(
            _run, upload.work, upload, outputs, options, method=method, interval=interval,
            drop_bad=bool(asked.get("drop_bad")),
        )  # fmt: skip
        self._waiting.put(run)

    def work(self, token: str) -> Work:
        work = self._upload(token).work
        if work is None:
            raise ParameterError("nothing was asked of this file yet.")
        return work

    def _upload(self, token: str) -> Upload:
        upload = self.uploads.get(token)
        if upload is None:
            raise TableError("this file is no longer here; give it again.")
        return upload


def _busy(upload: Upload) -> bool:
    return upload.work is not None and upload.work.state in ("waiting", "running")


def _run(work: Work, upload: Upload, outputs: Outputs, options: Options, **settings: Any) -> None:
    @contextmanager
    def watch(what: str, total: int) -> Iterator[Callable[[int], None]]:
        work.stage, work.done, work.total = what, 0, total

        def step(n: int) -> None:
            work.done += n

        yield step

    def say(sentence: str) -> None:
        work.stage, work.done, work.total = sentence.replace(str(upload.path), upload.label), 0, 0

    work.state = "running"
    try:
        work.job = run_recover(
            upload.path, outputs, options, settings={}, watch=watch, say=say,
            **settings,
        )  # fmt: skip
        work.state = "done"
    except UnsumError as error:
        work.error, work.state = tell(error, upload), "failed"
    except Exception as error:  # a bug: the page says so, the server goes on
        work.error, work.state = f"unsum met a bug ({type(error).__name__}: {error}).", "failed"


def tell(error: UnsumError, upload: Upload | None = None) -> str:
    """An error as the page shows it, without names of ours."""
    text = str(error)
    if isinstance(error, ReadingsError):
        text += " Set bad rows aside, or correct them."
    return text if upload is None else text.replace(str(upload.path), upload.label)


def make_options(asked: Mapping[str, Any]) -> Options:
    """How a file is to be read, from what the form says; blanks are as usual."""
    given = {name: str(asked[name]) for name in TEXTS if asked.get(name)}
    columns = asked.get("columns")
    if not isinstance(columns, dict):
        raise ParameterError("columns must say which column holds what.")
    named = {role: str(columns[role]) for role in ROLES if columns.get(role)}
    return Options(columns=named, true_up=bool(asked.get("true_up")), **given)  # type: ignore[arg-type]


def guess_columns(source: Source) -> dict[str, str]:
    """The first column of a usual name, for each role."""
    from unsum.tables.importers.columns import guess_column

    found: dict[str, str] = {}
    for role in ROLES:
        with suppress(TableError):  # several would do: the user says which
            name = guess_column(source, role, set(found.values()))
            if name is not None:
                found[role] = name
    return found
