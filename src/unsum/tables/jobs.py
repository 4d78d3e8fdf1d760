"""Jobs from file to file: what they write, and what they tell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unsum.errors import ParameterError
from unsum.findings import MAX_ROWS_IN_JSON, Findings
from unsum.recovery import TOLERANCE, Recovery
from unsum.tables.folders import check_folder_destination
from unsum.tables.intake import Intake
from unsum.tables.write import check_destination, check_model_destination, check_page_destination

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
    def folder(self) -> bool:
        """Whether the result is a folder of files: its name has no ending."""
        return not self.out.suffix

    @property
    def aside(self) -> Path:
        return self.out.with_name(f"{self.out.stem}.set-aside.csv")

    @property
    def aside_groups(self) -> Path:
        return self.out.with_name(f"{self.out.stem}.group-totals.set-aside.csv")

    @property
    def predicted(self) -> Path:
        return self.out.with_name(f"{self.out.stem}.predicted{self.out.suffix or '.parquet'}")

    def check(
        self,
        source: Any,
        others: list[Path],
        interval: float | None,
        checkpoint: Path | None = None,
    ) -> None:
        """Refuse early what cannot be written, or would be written over an input."""
        if not self.out.name:
            raise ParameterError(
                f"{self.out} is a folder that is there; name a new one, or a file."
            )
        places = [] if self.folder else [self.out]
        places += [self.aside, self.aside_groups, self.predicted]
        places += [self.unbilled] if self.unbilled is not None else []
        for path in places:
            check_destination(path, source)
        if self.folder:
            check_folder_destination(self.out)
            if self.wide:
                raise ParameterError("a folder of files holds long tables; name a file for a wide.")
            places.append(self.out)
        if self.save is not None:
            check_model_destination(self.save)
            places.append(self.save)
        elif self.profiles_only:
            raise ParameterError("--profiles-only goes with --save.")
        if self.report is not None:
            check_page_destination(self.report)
            places.append(self.report)
        check_apart(places, others)
        if isinstance(source, Path) and source.is_dir():
            _check_outside(places, source, "the folder of the input")
        if checkpoint is not None:
            _check_outside(places, checkpoint, "the checkpoint")
        if self.wide and interval is not None:
            raise ParameterError("a wide table has no place for intervals; write a long one.")


def _check_outside(outputs: list[Path], folder: Path, what: str) -> None:
    """No output in a folder that is read, or that goes in the end; nor that folder in an output."""
    folder = folder.resolve()
    for path in (each.resolve() for each in outputs):
        if path == folder or folder in path.parents or path in folder.parents:
            raise ParameterError(f"{path.name} and {what}, {folder.name}, must lie apart.")


def check_apart(outputs: list[Path], inputs: list[Path]) -> None:
    """No output over another, nor over what is read."""
    names = [path.resolve() for path in outputs]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ParameterError(f"{outputs[i]} is named for two outputs; choose another name.")
        if name in [path.resolve() for path in inputs]:
            raise ParameterError(f"{outputs[i]} is an input; write to another file.")
