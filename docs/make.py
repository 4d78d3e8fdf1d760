"""Makes the pages and pictures of the documentation that come from the code.

    python docs/make.py

Writes docs/cli.md, docs/findings.md, docs/unsum.png, the pictures of the examples, and what the
blocks of the tour and the how-to pages print. A test fails when the pages are stale.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

HERE = Path(__file__).parent
PAGES_THAT_PRINT = (HERE / "tour.md", *sorted((HERE / "howto").glob("*.md")))
BLOCK = re.compile(
    r"^```(python|console|text title=\"Output\")\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
PICTURES = (
    "registers",
    "feeder",
    "new_customer",
    "corrected_bill",
    "ideas",
    "month_end",
    "plots",
    "weather",
)
FINDINGS_HEAD = """# Findings

Made by `python docs/make.py` from `unsum.findings`.

`unsum check`, `unsum recover` and the library share one validator. A finding names its rows as you
would look them up: a CSV file as a spreadsheet numbers it (the header is row 1), other
tables by position from 0. Rows read are always rows used plus rows set aside; those set aside are
written to a file with their reasons.

| finding | severity | recover |
|---|---|---|
"""


def cli_page() -> str:
    """The help of every command, as it is printed."""
    os.environ["TERMINAL_WIDTH"] = os.environ["COLUMNS"] = "100"
    from typer.testing import CliRunner

    from unsum.cli import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    parts = ["# The command line", "", "Made by `python docs/make.py` from the commands.", ""]
    parts += [
        "Exit codes: 0 done, 1 the input cannot be used, 2 an option cannot be used, 70 a bug,",
        "130 interrupted.",
    ]
    for name in [None, *names]:
        arguments = ["--help"] if name is None else [name, "--help"]
        shown = CliRunner().invoke(app, arguments, prog_name="unsum", terminal_width=100)
        help_text = "\n".join(line.rstrip() for line in shown.output.strip().splitlines())
        parts += ["", f"## `unsum{' ' + name if name else ''}`", "", "```text", help_text, "```"]
    return "\n".join(parts) + "\n"


def findings_page() -> str:
    """Every finding, how serious it is, and what `recover` does about it."""
    from unsum.findings import CATALOGUE

    rows = [f"| `{code}` | {grade} | {action} |" for code, (grade, action) in CATALOGUE.items()]
    return FINDINGS_HEAD + "\n".join(rows) + "\n"


def draw_picture(path: Path) -> None:
    """Two customers of the simulated town: what the bills say, and what is recovered."""
    from unsum.experiments.picture import draw_customers
    from unsum.experiments.town import FIRST_DAY, N_DAYS, simulate_town
    from unsum.readings import Readings
    from unsum.recovering import recover

    town = simulate_town()
    readings = Readings.from_frame(
        town.bills,
        range_start=FIRST_DAY,
        range_end=FIRST_DAY + timedelta(days=N_DAYS),
        drop_bad=True,
    )
    draw_customers(town.truth, recover(readings), ["C0233", "C0018"], path)


def draw_examples(folder: Path) -> None:
    """The pictures that the scripts in examples/ draw."""
    for name in PICTURES:
        script = HERE.parent / "examples" / f"{name}.py"
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([sys.executable, str(script)], cwd=place, check=True)
            for picture in Path(place).glob("*.png"):
                shutil.copy(picture, folder)


def run_page(page: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Run the blocks of a page in this folder, in order; its blocks of output, and what is printed.

    `python` blocks share their names. `console` blocks are commands of unsum, run in this process;
    `check` may end with exit code 1, which says that it found errors.
    """
    names: dict[str, object] = {}
    printed = ""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        kind, text = block.groups()
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(text, str(page), "exec"), names)
            printed = stream.getvalue()
        elif kind == "console":
            commands = text.replace("\\\n", " ").splitlines()  # a backslash continues a line
            printed = "".join(run_command(command) for command in commands)
        else:
            yield block, printed


def run_command(command: str) -> str:
    """What a command prints; anything but success is an error."""
    os.environ["TERMINAL_WIDTH"] = os.environ["COLUMNS"] = "100"
    from typer.testing import CliRunner

    from unsum.cli import app

    program, *arguments = shlex.split(command)
    if program != "unsum":
        raise ValueError(f"{command!r} is not a command of unsum; put it into a bash block.")
    done = CliRunner().invoke(app, arguments, prog_name="unsum")
    if done.exit_code > (arguments[0] == "check"):
        raise RuntimeError(f"{command}: {done.output}") from done.exception
    return done.output


def refresh_outputs(page: Path) -> None:
    """Write into a page what its blocks print."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        found = list(run_page(page))
    for block, printed in reversed(found):
        begin, end = block.span(2)
        text = text[:begin] + printed + text[end:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    (HERE / "cli.md").write_text(cli_page(), encoding="utf-8")
    (HERE / "findings.md").write_text(findings_page(), encoding="utf-8")
    draw_picture(HERE / "unsum.png")
    draw_examples(HERE)
    for page in PAGES_THAT_PRINT:
        refresh_outputs(page)
