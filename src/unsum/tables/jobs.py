"""The main job from file to file: read, recover, write, and account for every row."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unsum.errors import ParameterError
from unsum.findings import MAX_ROWS_IN_JSON, Findings
from unsum.methods import make_method
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.recovery import TOLERANCE, Recovery
from unsum.tables.intake import Intake, take_in
from unsum.tables.rows import Options
from unsum.tables.write import (
    check_destination,
    check_model_destination,
    check_page_destination,
    whole_file,
    write_recovery,
    write_set_aside,
    write_table,
)
from unsum.traits import FEWEST_TO_SHARE

Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What was done: rows in, rows out, checks, and the time each stage took."""

    recovery: Recovery
    findings: Findings
    out: Path
    set_aside: Path | None
    checks: dict[str, Any]
    seconds: dict[str, float]
    unbilled: Path | None = None
    predicted: Path | None = None
    groups: Intake | None = None
    report: Path | None = None

    @property
    def adjustments(self) -> Findings:
        """What was found beyond the rows: adjusted settings, totals that cannot be met."""
        return Findings(self.recovery.findings[len(self.findings) :])

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.findings.to_dict(),
            "adjustments": [finding.to_dict() for finding in self.adjustments],
            "provenance": self.recovery.provenance(),
            "why": self.recovery.why,
            "output": str(self.out),
            "set_aside": str(self.set_aside) if self.set_aside else None,
            "unbilled": str(self.unbilled) if self.unbilled else None,
            "predicted": str(self.predicted) if self.predicted else None,
            "report": str(self.report) if self.report else None,
            "checks": self.checks,
            **self._group_dict(),
            "seconds": {stage: round(taken, 3) for stage, taken in self.seconds.items()},
        }

    def facts(self) -> list[tuple[str, str]]:
        found = self.findings
        rows = f"{found.rows_read:,} read = {found.rows_used:,} used + "
        rows += f"{found.rows_set_aside:,} set aside"
        if self.set_aside:
            rows += f", in {self.set_aside}"
        readings = self.recovery.readings
        stages = ", ".join(f"{stage} {taken:.1f} s" for stage, taken in self.seconds.items())
        return [
            ("rows", f"{rows} ({found.row_origin})"),
            ("readings", repr(readings)),
            *self._groups(),
            (
                "method",
                f"{self.recovery.method} ({self.recovery.why}); {self.recovery.stop_reason}",
            ),
            *self._expectation(),
            *self._unbilled(),
            (
                "wrote",
                f"{self.out}: {self.checks['rows']:,} rows, read back and checked: nonnegative, "
                f"worst relative gap of a reading {self.checks['worst_relative_gap']:.1e}",
            ),
            *self._prediction(),
            *([("report", str(self.report))] if self.report else []),
            ("time", stages),
        ]

    def _group_dict(self) -> dict[str, Any]:
        if self.groups is None:
            return {}
        gaps = self.recovery.gaps(backend="pyarrow")
        return {
            "group_totals": self.groups.findings.to_dict()
            | {"gaps": gaps.slice(0, MAX_ROWS_IN_JSON).to_pylist(), "n_totals": len(gaps)}
        }

    def _groups(self) -> list[tuple[str, str]]:
        """How totals of groups were met, where there are some."""
        if self.groups is None:
            return []
        found, gaps = self.groups.findings, self.recovery.gaps(backend="pyarrow")
        text = f"{found.rows_read:,} totals read = {found.rows_used:,} used + "
        text += f"{found.rows_set_aside:,} set aside; "
        missed = sum(abs(gap) for gap in gaps["gap"].to_pylist())
        share = missed / (max(missed, sum(gaps["total"].to_pylist())) or 1.0)
        return [("groups", text + ("all met" if share <= TOLERANCE else f"missed by {share:.3%}"))]

    def _expectation(self) -> list[tuple[str, str]]:
        error = self.recovery.expected_error
        if error is None:
            return []
        text = f"an error of about {error:.1%} of a series' mean, over covered periods"
        if self.recovery.hides_a_rhythm:
            text += "; more if there is a rhythm that these dates hide"
        return [("expect", text)]

    def _prediction(self) -> list[tuple[str, str]]:
        """Series that have traits but no reading, and where they went."""
        traits = self.recovery.traits
        names = traits.others(self.recovery.readings.names) if traits is not None else []
        if not len(names):
            return []
        text = f"{len(names):,} series without readings"
        if self.predicted is None:
            return [("predicted", f"nothing: no population was learned that could tell of {text}")]
        return [("predicted", f"{self.predicted}: {text}")]

    def _unbilled(self) -> list[tuple[str, str]]:
        """The sum of what follows the last readings, where it was asked for."""
        asked = self.unbilled is not None or self.recovery.interval is not None
        if not asked or not self.recovery.tails:
            return []
        (row,) = self.recovery.unbilled(by="all", backend="pyarrow").to_pylist()
        text = f"{row['total']:,.6g} after the last reading of {self.recovery.tails:,} series"
        if "lower" in row:
            text += f", {row['lower']:,.6g} to {row['upper']:,.6g}"
            text += f" with probability {self.recovery.interval:.0%}"
        return [("unbilled", text)]


def _n_steps(method: str, settings: dict[str, Any]) -> int:
    """How often a method will tell of progress, at most."""
    made = make_method(method, settings)
    return int(getattr(made, "max_iter", getattr(made, "steps", 1)))


@dataclass(frozen=True)
class Outputs:
    """The files that a job writes."""

    out: Path
    wide: bool = False
    unbilled: Path | None = None
    save: Path | None = None
    profiles_only: bool = False
    report: Path | None = None
    title: str | None = None  # of the report, if not the name of the readings

    @property
    def aside(self) -> Path:
        return self.out.with_name(f"{self.out.stem}.set-aside.csv")

    @property
    def aside_groups(self) -> Path:
        return self.out.with_name(f"{self.out.stem}.group-totals.set-aside.csv")

    @property
    def predicted(self) -> Path:
        return self.out.with_name(f"{self.out.stem}.predicted{self.out.suffix}")

    def check(self, source: Any, others: list[Path], interval: float | None) -> None:
        """Refuse early what cannot be written, or would be written over an input."""
        places = [self.out, self.aside, self.aside_groups, self.predicted]
        places += [self.unbilled] if self.unbilled is not None else []
        for path in places:
            check_destination(path, source)
        if self.save is not None:
            check_model_destination(self.save)
            places.append(self.save)
        elif self.profiles_only:
            raise ParameterError("--profiles-only goes with --save.")
        if self.report is not None:
            check_page_destination(self.report)
            places.append(self.report)
        _check_apart(places, others)
        if self.wide and interval is not None:
            raise ParameterError("a wide table has no place for intervals; write a long one.")


def run_recover(
    source: Any,
    outputs: Outputs,
    options: Options,
    *,
    method: str,
    settings: dict[str, Any],
    drop_bad: bool,
    threads: int | None,
    watch: Watch,
    say: Say,
    interval: float | None = None,
    groups: Path | None = None,
    group_totals: Path | None = None,
) -> Job:
    """Recover a file into another; the output appears whole and checked, or not at all."""
    from unsum.engine import announce_compilation

    sides = [Path(settings[name]) for name in ("indicators", "traits") if name in settings]
    sides += [path for path in (groups, group_totals) if path is not None]
    outputs.check(source, sides, interval)
    begun = time.perf_counter()
    say(f"reading {source}")
    intake = take_in(source, options)
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
    announce_compilation(method, say)
    with watch("fitting", _n_steps(method, settings)) as step:
        recovery = recover(
            readings, method, threads=threads, progress=step, interval=interval, **settings
        )
    seconds = {"reading": read - begun, "fitting": time.perf_counter() - read}
    return _write(recovery, intake, outputs, seconds, watch, Path(source).name, loads)


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
    threads: int | None,
    watch: Watch,
    say: Say,
    interval: float | None = None,
    traits: str | None = None,
    **reading: Any,
) -> Job:
    """The same with a model that was saved; `reading` are options of how the file is read."""
    from unsum.engine import announce_compilation
    from unsum.model import Model
    from unsum.saving import load

    outputs.check(source, [path, *([Path(traits)] if traits else [])], interval)
    begun = time.perf_counter()
    say(f"reading {path} and {source}")
    loaded = load(path)
    model = loaded if isinstance(loaded, Model) else loaded.model
    intake = take_in(source, Options.on(model.calendar, **reading))
    readings = intake.readings(drop_bad=drop_bad)
    read = time.perf_counter()
    announce_compilation(model.method, say)
    recovery = model.apply(readings, interval=interval, traits=traits, threads=threads)
    seconds = {"reading": read - begun, "applying": time.perf_counter() - read}
    return _write(recovery, intake, outputs, seconds, watch, Path(source).name)


def _write(
    recovery: Recovery,
    intake: Intake,
    outputs: Outputs,
    seconds: dict[str, float],
    watch: Watch,
    title: str,
    groups: Intake | None = None,
) -> Job:
    readings, begun = recovery.readings, time.perf_counter()
    layout = "wide" if outputs.wide else "long"
    set_aside = outputs.aside if readings.findings.rows_set_aside else None
    with ExitStack() as stack:
        step = stack.enter_context(watch("recovering and writing", readings.n_series))
        for each, path in ((intake, outputs.aside), (groups, outputs.aside_groups)):
            if each is not None and each.findings.rows_set_aside:
                # takes its name only after the main output has
                temporary = stack.enter_context(whole_file(path))
                write_set_aside(each.source, each.findings, temporary)
        checks = write_recovery(recovery, outputs.out, layout=layout, progress=step)
    others = recovery.traits.others(readings.names) if recovery.traits is not None else []
    predicted = outputs.predicted if len(others) and recovery.population is not None else None
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


def _check_apart(outputs: list[Path], inputs: list[Path]) -> None:
    """No output over another, nor over what is read."""
    names = [path.resolve() for path in outputs]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ParameterError(f"{outputs[i]} is named for two outputs; choose another name.")
        if name in [path.resolve() for path in inputs]:
            raise ParameterError(f"{outputs[i]} is an input; write to another file.")
