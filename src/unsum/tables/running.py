"""From file to file: read, recover, write, and account for every row."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unsum.checkpoint import Checkpoint, identify
from unsum.errors import ParameterError
from unsum.methods import make_method
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.recovery import Recovery
from unsum.tables.folders import write_folder
from unsum.tables.intake import Intake
from unsum.tables.jobs import Job, Outputs, Say, Watch
from unsum.tables.rows import Options
from unsum.tables.within import free_memory, take_in_within
from unsum.tables.write import whole_file, write_recovery, write_set_aside, write_table
from unsum.traits import FEWEST_TO_SHARE

if TYPE_CHECKING:
    from unsum.cluster import Cluster


@dataclass(frozen=True)
class Means:
    """What a run may use: threads, memory, a folder to survive in, a cluster."""

    threads: int | None = None
    memory: int | None = None  # bytes; half of what is free by default
    checkpoint: Path | None = None
    cluster: Cluster | None = None

    @property
    def bytes(self) -> int:
        return free_memory() // 2 if self.memory is None else self.memory


def run_recover(
    source: Any,
    outputs: Outputs,
    options: Options,
    *,
    method: str,
    settings: dict[str, Any],
    drop_bad: bool,
    watch: Watch,
    say: Say,
    means: Means | None = None,
    interval: float | None = None,
    groups: Path | None = None,
    group_totals: Path | None = None,
) -> Job:
    """Recover a table into another; the output appears whole and checked, or not at all."""
    from unsum.engine import announce_compilation
    from unsum.factorization.crew import Plan

    means = means or Means()
    sides = [Path(settings[name]) for name in ("indicators", "traits") if name in settings]
    sides += [path for path in (groups, group_totals) if path is not None]
    outputs.check(source, sides, interval, means.checkpoint)
    begun = time.perf_counter()
    with ExitStack() as stack:
        kept = None
        if means.checkpoint is not None:
            identity = identify(
                source, options, method=method, settings=settings, drop_bad=drop_bad,
                interval=interval, output=str(outputs.out.resolve()),
                sides=[[str(path), path.stat().st_mtime_ns] for path in sides if path.exists()],
            )  # fmt: skip
            kept = Checkpoint(means.checkpoint, identity)
            kept.tidy(outputs.out, outputs.aside, outputs.aside_groups)
        say(f"reading {source}")
        if kept is not None:
            intake = kept.take_in(source, options, means.bytes, say)
        else:
            room = _room(stack, outputs.out)
            intake = take_in_within(source, options, means.bytes, room, say)
        readings = intake.readings(drop_bad=drop_bad)
        loads = None
        if groups is not None and group_totals is not None:
            say(f"reading {group_totals}")
            loads = _take_in_groups(readings, groups, group_totals, options)
            readings = loads.readings(drop_bad=drop_bad)
        if outputs.profiles_only and len(readings.read) < FEWEST_TO_SHARE:
            raise ParameterError(
                f"what is learned from {len(readings.read)} series shows them; profiles are saved "
                f"alone from {FEWEST_TO_SHARE} series on."
            )
        read = time.perf_counter()
        recovery = None if kept is None else kept.load_fit(readings, means.threads)
        if recovery is None:
            announce_compilation(method, say)
            plan = Plan(keeper=kept) if means.cluster is None else means.cluster.plan(kept)
            with watch("fitting", _n_steps(method, settings)) as step:
                recovery = recover(
                    readings, method, threads=means.threads, progress=step, interval=interval,
                    plan=plan, **settings,
                )  # fmt: skip
            if kept is not None:
                kept.save_fit(recovery)
        seconds = {"reading": read - begun, "fitting": time.perf_counter() - read}
        job = _write(
            recovery, intake, outputs, seconds, watch, Path(str(source)).name, loads, kept, means
        )
        if kept is not None:
            kept.clear()
        return job


def _room(stack: ExitStack, out: Path) -> Path:
    """A folder beside the output for what does not fit into memory; it goes in the end."""
    folder = out.with_name(f".{out.name}.{os.getpid()}.work")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _n_steps(method: str, settings: dict[str, Any]) -> int:
    """How often a method will tell of progress, at most."""
    made = make_method(method, settings)
    return int(getattr(made, "max_iter", getattr(made, "steps", 1)))


def _take_in_groups(readings: Readings, groups: Path, totals: Path, options: Options) -> Intake:
    """The readings with totals of groups, read like the rest of the readings."""
    from unsum.tables.groups import take_in_groups

    return take_in_groups(
        readings, groups, totals, end=options.end, snap=options.snap, negatives=options.negatives,
        date_format=options.date_format, decimal=options.decimal,
    )  # fmt: skip


def run_apply(
    path: Path,
    source: Any,
    outputs: Outputs,
    *,
    drop_bad: bool,
    watch: Watch,
    say: Say,
    means: Means | None = None,
    interval: float | None = None,
    traits: str | None = None,
    **reading: Any,
) -> Job:
    """The same with a model that was saved; `reading` are options of how the file is read."""
    from unsum.engine import announce_compilation
    from unsum.model import Model
    from unsum.saving import load

    means = means or Means()
    outputs.check(source, [path, *([Path(traits)] if traits else [])], interval)
    begun = time.perf_counter()
    say(f"reading {path} and {source}")
    loaded = load(path)
    model = loaded if isinstance(loaded, Model) else loaded.model
    with ExitStack() as stack:
        options = Options.on(model.calendar, **reading)
        intake = take_in_within(source, options, means.bytes, _room(stack, outputs.out), say)
        readings = intake.readings(drop_bad=drop_bad)
        read = time.perf_counter()
        announce_compilation(model.method, say)
        recovery = model.apply(readings, interval=interval, traits=traits, threads=means.threads)
        seconds = {"reading": read - begun, "applying": time.perf_counter() - read}
        title = Path(str(source)).name
        return _write(recovery, intake, outputs, seconds, watch, title, None, None, means)


def _write(
    recovery: Recovery,
    intake: Intake,
    outputs: Outputs,
    seconds: dict[str, float],
    watch: Watch,
    title: str,
    groups: Intake | None,
    kept: Checkpoint | None,
    means: Means,
) -> Job:
    readings, begun = recovery.readings, time.perf_counter()
    set_aside = outputs.aside if readings.findings.rows_set_aside else None
    with ExitStack() as stack:
        step = stack.enter_context(watch("recovering and writing", readings.n_series))
        for each, path in ((intake, outputs.aside), (groups, outputs.aside_groups)):
            if each is not None and each.findings.rows_set_aside:
                # takes its name only after the main output has
                temporary = stack.enter_context(whole_file(path))
                write_set_aside(each.source, each.findings, temporary)
        if outputs.folder:
            work = None if kept is None else kept.beside(outputs.out)
            writers = None if means.cluster is None else means.cluster.write_parts
            checks = write_folder(
                recovery, outputs.out, work=work, progress=step, write_parts=writers
            )
        else:
            layout = "wide" if outputs.wide else "long"
            checks = write_recovery(recovery, outputs.out, layout=layout, progress=step)
    others = recovery.traits.others(readings.names) if recovery.traits is not None else []
    predicted = outputs.predicted if len(others) and recovery.doubtful is not None else None
    if predicted is not None:
        write_table(recovery.predict(backend="pyarrow"), predicted)
    if outputs.unbilled is not None:
        write_table(recovery.unbilled(backend="pyarrow"), outputs.unbilled)
    if outputs.save is not None:
        recovery.save(outputs.save, profiles_only=outputs.profiles_only)
    seconds = seconds | {"writing": time.perf_counter() - begun}
    if outputs.report is not None:
        from unsum.report import write_report

        begun = time.perf_counter()
        write_report(recovery, outputs.report, outputs.title or title)
        seconds["report"] = time.perf_counter() - begun
    return Job(
        recovery, readings.findings, outputs.out, set_aside, checks, seconds, outputs.unbilled,
        predicted, groups, outputs.report,
    )  # fmt: skip
