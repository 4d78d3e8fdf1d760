"""The documentation runs, and the pages made from code are up to date."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.main import get_command

from unsum.cli import app
from unsum.experiments.town import simulate_town
from unsum.findings import CATALOGUE
from unsum.readings import Readings
from unsum.tables.write import write_table

ROOT = Path(__file__).parent.parent


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def pages_with_python():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in pages if blocks(page, "python")]


@pytest.mark.parametrize("page", pages_with_python(), ids=lambda page: page.name)
def test_python_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), namespace)


def test_command_examples_of_the_readme_run(tmp_path):
    town = simulate_town(30)
    readings = Readings.from_frame(town.bills, drop_bad=True)
    write_table(readings.to_arrow(), tmp_path / "bills.csv")
    days = np.arange(readings.n_periods)
    weather = {"time": readings.calendar.labels(), "temperature": 10 - 9 * np.cos(days / 58)}
    write_table(pa.table(weather), tmp_path / "weather.csv")
    commands = [
        line for block in blocks(ROOT / "README.md", "console") for line in block.splitlines()
    ]
    assert len(commands) >= 5
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "unsum"
        done = subprocess.run(
            [sys.executable, "-m", "unsum", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)


def test_every_command_and_option_is_documented():
    page = " ".join((ROOT / "docs" / "cli.md").read_text(encoding="utf-8").split())
    for name, command in get_command(app).commands.items():
        assert f"## `unsum {name}`" in page
        assert f"Example: unsum {name}" in page
        for parameter in command.params:
            for option in parameter.opts:
                assert option in page, (name, option)
            if getattr(parameter, "help", None):
                assert " ".join(parameter.help.split()) in page, (name, parameter.name)


def test_the_page_of_findings_is_up_to_date():
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs" / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert page == make.findings_page()
    assert all(f"`{code}`" in page for code in CATALOGUE)


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (page, target)
