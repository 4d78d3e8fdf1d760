"""What a person sees in the terminal: findings, facts, tables of errors, progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unsum.findings import Findings
from unsum.readings import describe_dates

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


class Screen:
    """Results on standard output, progress on standard error; `quiet` leaves only results."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.out = Console(highlight=False, soft_wrap=True, emoji=False)
        self.err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

    def print_json(self, content: dict[str, Any]) -> None:
        print(json.dumps(content, ensure_ascii=False))  # noqa: T201

    def say(self, sentence: str) -> None:
        """A remark while work goes on; on standard error, when someone is looking."""
        if not self.quiet and self.err.is_terminal:
            self.err.print(f"[dim]{escape(sentence)}[/dim]")

    @contextmanager
    def watch(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar, silent unless standard error is a terminal."""
        with Progress(
            TextColumn(what),
            BarColumn(),
            TextColumn("{task.completed:,} of {task.total:,}"),
            TimeRemainingColumn(),
            console=self.err,
            transient=True,
            disable=self.quiet or not self.err.is_terminal,
        ) as progress:
            task = progress.add_task(what, total=total)
            yield lambda n: progress.advance(task, n)

    def findings(
        self, findings: Findings, *, everything: bool = False, dropped: bool = False
    ) -> None:
        """The findings; details too when `everything` is asked for.

        `dropped` says that the rows with errors were set aside.
        """
        for finding in findings:
            colour = _COLOURS[finding.severity]
            label = "dropped" if dropped and finding.severity == "error" else finding.severity
            rows = f" ({finding.rows_text()})" if len(finding.rows) else ""
            self.out.print(
                f"[{colour}]{label:<8}[/{colour}] [bold]{finding.code}[/bold]: "
                f"{escape(finding.sentence)}{rows}"
            )
            if everything:
                for detail in finding.details:
                    self.out.print(f"           {escape(detail)}")
                self.out.print(f"           [dim]recover {escape(finding.action)}[/dim]")

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        width = max(len(label) for label, _ in facts)
        for label, text in facts:
            self.out.print(f"[bold]{label:<{width}}[/bold]  {escape(text)}")

    def check_summary(self, intake: Any, sources: dict[str, float] | None = None) -> None:
        findings = intake.findings
        facts = [
            (
                "rows",
                f"{findings.rows_read:,} read = {findings.rows_used:,} used + "
                f"{findings.rows_set_aside:,} set aside ({findings.row_origin})",
            )
        ]
        if intake.usable is not None:
            facts.append(("usable", repr(intake.usable)))
            facts.append(("dates", describe_dates(intake.usable)))
        if sources is not None:
            told = {"own": "its own readings", "panel": "the panel", "open": "open"}
            shares = (f"{share:.0%} {told[name]}" for name, share in sources.items())
            facts.append(("sources", f"{', '.join(shares)}, for the series in the middle"))
        verdict = "nothing stops recover"
        if findings.errors:
            verdict = "recover stops here"
            if intake.usable is not None:
                verdict += "; --drop-bad sets the bad rows aside"
        self.facts([*facts, ("verdict", verdict)])

    def errors(self, results: Sequence[Any], months: dict[str, float] | None = None) -> None:
        """Both errors of every method, over all periods and over covered ones."""
        table = Table(title="relative error (0 is perfect)", title_justify="left")
        table.add_column("method")
        for heading in ("normalised", "paper's", "normalised*", "paper's*"):
            table.add_column(heading, justify="right")
        if months:
            table.add_column("months", justify="right")
        for result in results:
            errors = result.errors
            row = [
                f"{error:.4f}"
                for error in (
                    errors.normalised,
                    errors.paper,
                    errors.normalised_covered,
                    errors.paper_covered,
                )
            ]
            if months:
                row.append(f"{months[result.method]:.4f}")
            table.add_row(result.method, *row)
        self.out.print(table)
        note = "normalised: every series divided by its mean; *: over covered periods only"
        if months:
            note += "; months: calendar months, normalised"
        self.out.print(f"[dim]{note}[/dim]")
