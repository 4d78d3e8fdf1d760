"""The documentation runs, and the pages made from code are up to date."""

import importlib.util
import inspect
import math
import os
import re
import runpy
import shlex
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest
from typer.main import get_command

import unsum
from unsum.cli import app
from unsum.experiments.town import simulate_town
from unsum.findings import CATALOGUE
from unsum.readings import Readings
from unsum.tables.write import write_table

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def load_make():
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs" / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    return make


make = load_make()


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def pages_with_python():
    pages = [page for page in PAGES if page not in make.PAGES_THAT_PRINT]
    return [page for page in [ROOT / "README.md", *pages] if blocks(page, "python")]


@pytest.mark.parametrize("page", pages_with_python(), ids=name_of)
def test_python_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", make.PAGES_THAT_PRINT, ids=name_of)
def test_pages_that_print_run_and_print_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks(page, "python") or page.name == "index.md"
    for block, printed in make.run_page(page):
        shown = block.group(2)
        assert NUMBER.sub("0", shown).split() == NUMBER.sub("0", printed).split(), printed
        for one, other in zip_longest(NUMBER.findall(shown), NUMBER.findall(printed)):
            values = (float(number.replace(",", "")) for number in (one, other))
            assert math.isclose(*values, rel_tol=0.02, abs_tol=0.02), printed


def test_command_examples_of_the_readme_run(tmp_path):
    town = simulate_town(30, n_days=150)
    readings = Readings.from_frame(town.bills, drop_bad=True)
    write_table(readings.to_arrow(), tmp_path / "bills.csv")
    write_table(readings.to_arrow().slice(0, 3), tmp_path / "new-bills.csv")
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
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert page == make.findings_page()
    assert all(f"`{code}`" in page for code in CATALOGUE)


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    plt.close("all")


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (page, target)


def test_every_page_is_in_the_navigation_and_every_example_in_the_gallery():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    for page in PAGES:
        assert re.search(rf"(- |: ){page.relative_to(ROOT / 'docs').as_posix()}\n", navigation), (
            page
        )
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for script in (ROOT / "examples").glob("*.py"):
        assert f"`examples/{script.name}`" in gallery


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site. Warnings are errors, among them links and anchors that lead nowhere."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_reference_has_every_public_name(site):
    page = (site / "api.html").read_text(encoding="utf-8")
    for name in unsum.__all__:
        assert f'id="unsum.{name}"' in page, name
    for kind in (unsum.Readings, unsum.Recovery, unsum.Model, unsum.Panel, unsum.Findings):
        members = [name for name in vars(kind) if not name.startswith("_")]
        assert inspect.isclass(kind)
        assert len(members) > 5
        for name in members:
            assert f'id="unsum.{kind.__name__}.{name}"' in page, (kind, name)


def test_the_built_site_fetches_nothing_from_elsewhere(site):
    elsewhere = re.compile(
        r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//"""
        r"""|<link[^>]+href=["']?(?:https?:)?//|url\(["']?(?:https?:)?//|@import"""
    )
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > len(PAGES)
    for file in files:
        assert not elsewhere.search(file.read_text(encoding="utf-8")), file


def test_figures_beside_peers_are_those_of_the_page_of_accuracy():
    accuracy = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    sections = {part.partition(" ")[0]: part for part in accuracy.split("\n## ")[1:]}
    comparison = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    head, _, *rows = comparison.partition("## Measured")[2].partition("\n\n|")[2].splitlines()[:9]
    columns = [cell.strip() for cell in head.split("|")][1:-1]
    assert len(columns) == 6
    assert len(rows) == 7
    for row in rows:
        method, *figures = [cell.strip() for cell in row.split("|")][1:-1]
        for column, figure in zip(columns, figures, strict=True):
            dataset, _, scheme = column.partition(", ")
            measured = cells_of(sections[dataset.partition(" ")[0]], method.strip("`"))
            assert measured[scheme].startswith(figure), (method, column)


def cells_of(section, method):
    """The cells of a method in the first table of a section, by scheme."""
    lines = [[cell.strip() for cell in line.split("|")][1:-1] for line in section.splitlines()]
    head = next(line for line in lines if line and line[0] == "method")
    row = next(line for line in lines if line and line[0].strip("`") == method)
    return dict(zip(head[1:], row[1:], strict=True))
