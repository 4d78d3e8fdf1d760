"""The paper's experiments on a small grid: data, resuming, verdicts, pages."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tables.test_cer import write_files
from tests.tables.test_uci import write_table
from unsum.errors import ParameterError
from unsum.experiments import grid as grid_module
from unsum.experiments.claims import CLAIMS, YARDSTICKS, judge
from unsum.experiments.datasets import Dataset, group_series, load_datasets, split_window
from unsum.experiments.grid import SCHEMA, Grid, Results, Task, run_grid, run_task
from unsum.experiments.page import Heading, Page, Picture, Table, Text
from unsum.experiments.paper import reproduce
from unsum.experiments.summary import Cell, Summary
from unsum.experiments.synthetic import matern, simulate_mixtures
from unsum.panel import Panel
from unsum.screen import Screen

TINY = Grid((4, 12), (2, 3), 1, 10, (12,), (2,))


@pytest.fixture(scope="module")
def data():
    both = simulate_mixtures(12, 60, 3, seed=1)
    return Dataset("synthetic", "Synthetic", *split_window(both, 0, 36))


def test_mixtures_have_the_rank_and_covariance_they_should():
    panel = simulate_mixtures(40, 50, 4, seed=3)
    assert panel.values.min() >= 0
    assert np.linalg.matrix_rank(panel.values) == 4
    assert np.array_equal(panel.values, simulate_mixtures(40, 50, 4, seed=3).values)
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) / 3.0
    np.testing.assert_allclose(matern(np.arange(5), 0.5, 3.0), np.exp(-distance), atol=1e-12)
    scaled = np.sqrt(3) * distance
    np.testing.assert_allclose(
        matern(np.arange(5), 1.5, 3.0), (1 + scaled) * np.exp(-scaled), atol=1e-12
    )
    with pytest.raises(ParameterError, match="must be positive"):
        simulate_mixtures(length_scale=0)


def test_a_window_and_what_is_left_out():
    panel = Panel.from_values(np.arange(20.0).reshape(2, 10))
    truth, rest = split_window(panel, 0, 6)
    assert truth.values.tolist() == panel.values[:, :6].tolist()
    assert rest.values.tolist() == panel.values[:, 6:].tolist()
    truth, rest = split_window(panel, 7, 3)
    assert rest.values.tolist() == panel.values[:, :7].tolist()
    assert group_series(panel, 5).values.tolist() == [panel.values.sum(axis=0).tolist()]


def test_published_formats_are_found_in_a_folder(tmp_path):
    write_table(tmp_path / "LD2011_2014.txt", n_days=400, first="2013-11-01", late=96 * 395)
    write_files(tmp_path, n_days=260)
    portugal, irish = load_datasets(["portugal", "households"], tmp_path)
    assert portugal.truth.values.shape == (1, 365)  # the other client has no history
    assert portugal.history.n_periods == 35
    assert irish.truth.values.shape == (1, 200)
    assert irish.history.n_periods == 60


def test_any_table_is_a_dataset(tmp_path):
    path = tmp_path / "mine.parquet"
    days = np.arange("2020-01-01", "2020-07-01", dtype="datetime64[D]")
    pq.write_table(pa.table({"time": days, "a": np.ones(len(days)), "b": np.ones(len(days))}), path)
    (data,) = load_datasets([f"mine={path}"], None)
    assert data.truth.values.shape == (2, 121)
    for names, folder, message in (
        (["france"], tmp_path, "no dataset 'france'"),
        (["portugal"], None, "say with --data"),
        (["regions"], tmp_path, "has no us_regions_daily.parquet"),
        (["households"], tmp_path, "has no File1.txt or ausgrid_weekly.parquet"),
    ):
        with pytest.raises(ParameterError, match=message):
            load_datasets(names, folder)


def test_a_task_has_a_row_for_each_rank_and_is_repeatable(data):
    task = Task("synthetic", "random", 4, 0, "nmf-ar", "nenmf")
    rows = run_task(data, TINY, task)
    assert [row["rank"] for row in rows] == [2, 3]
    assert all(row["iterations"] == 10 and 0 < row["paper"] < 1 for row in rows)
    again = run_task(data, TINY, task)
    assert [row["paper"] for row in rows] == [row["paper"] for row in again]
    zero, mean = (
        run_task(data, TINY, replace(task, method=method, update=""))[0]
        for method in ("even-0", "even")
    )
    assert zero["paper"] > mean["paper"]
    assert zero["paper_covered"] == mean["paper_covered"]


def test_every_variant_runs(data):
    tasks = [task for task in TINY.tasks(["synthetic"]) if task.variant != "paper"]
    assert {task.variant for task in tasks} == set(grid_module.VARIANTS) - {"paper"}
    for task in tasks:
        if task.scheme == "random":
            assert len(run_task(data, TINY, task)) == 1


def test_a_grid_goes_on_where_it_was(data, tmp_path):
    path = tmp_path / "results.parquet"
    tasks = TINY.tasks(["synthetic"])
    whole = Results(tmp_path / "whole.parquet", TINY, [data])
    run_grid([data], TINY, whole, workers=2)
    assert whole.missing(tasks, TINY) == []
    part = Results(path, TINY, [data])
    part.add([row for row in whole.rows if row["method"] == "nmf"])
    part.save()
    rest = Results(path, TINY, [data])
    missing = rest.missing(tasks, TINY)
    assert {task.method for task in missing} == {"even", "even-0", "nmf-ar"}
    run_grid([data], TINY, rest, workers=1)
    for name in SCHEMA.names:
        if name != "seconds":
            ours, theirs = (np.asarray(each.table()[name]) for each in (rest, whole))
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ParameterError, match="max_iter 10, now it is 11"):
        Results(path, replace(TINY, max_iter=11), [data])
    Results(path, TINY, [replace(data, name="other")])
    with pytest.raises(ParameterError, match="datasets"):
        Results(path, TINY, [replace(data, title="Another")])


def lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_run_leaves_a_table_to_go_on_from(tmp_path):
    command = [sys.executable, "-m", "unsum", "paper", "--quick", "--json", "--out", str(tmp_path)]
    quiet = subprocess.DEVNULL
    run = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
    path = tmp_path / "results.parquet"
    patience = time.monotonic() + 120
    while not path.exists() and time.monotonic() < patience:
        time.sleep(0.1)
    run.kill()
    run.wait()
    while lives(run.pid) and time.monotonic() < patience:
        time.sleep(0.1)
    assert not lives(run.pid)  # its helpers end as well
    done = pq.read_table(path)
    assert 0 < len(done) < 1000
    assert not (tmp_path / "paper.md").exists()


def invented(best):
    """A table of results in which each method has the errors that `best` gives it."""
    rows = []
    for dataset in ("synthetic", "portugal"):
        for scheme in ("periodic", "random"):
            for every in (5, 15):
                for method, update in (
                    ("even", ""), ("even-0", ""), ("nmf", "hals"), ("nmf", "nenmf"),
                    ("nmf-ar", "hals"), ("nmf-ar", "nenmf"),
                ):  # fmt: skip
                    for rank in (2, 3) if update else (0,):
                        error = best(dataset, scheme, every, method, update) * (1 + (rank == 2))
                        rows.append(
                            {
                                "dataset": dataset,
                                "scheme": scheme,
                                "every": every,
                                "run": 0,
                                "method": method,
                                "update": update,
                                "variant": "paper",
                                "rank": rank,
                                "paper": error,
                                "normalised": error,
                                "paper_covered": error,
                                "normalised_covered": error,
                                "validation": -float(rank),
                                "iterations": 1,
                                "seconds": 0.1,
                            }
                        )
    return Summary(pa.Table.from_pylist(rows, SCHEMA))


def as_the_paper_says(dataset, scheme, every, method, update):
    if method.startswith("even"):
        return 0.2
    if method == "nmf-ar" or scheme == "random" or every == 15:
        return 0.1
    return 0.3 if dataset == "portugal" else 0.1


def test_claims_hold_in_results_made_to_satisfy_them():
    summary = invented(as_the_paper_says)
    for claim in CLAIMS:
        for verdict in judge(summary, claim):
            assert str(verdict).startswith("holds ("), (claim.name, str(verdict))
    cell = Cell("portugal", "random", 5)
    assert summary.best(cell, "nmf") == 0.1
    assert summary.chosen(cell, "nmf") == 0.1  # the score prefers rank 3, which is the better one
    assert summary.best_rank(cell, "nmf") == [3]
    assert np.isnan(summary.best(Cell("nowhere", "random", 5), "nmf"))


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        (("nmf", "nenmf", 1.2), "Updates are equivalent"),
        (("nmf-ar", "hals", 5.0), "Algorithm 2 always beats interpolation"),
        (("even", "", 0.1), "Few readings: both beat interpolation by far"),
    ],
)
def test_claims_fail_in_results_made_to_contradict_them(changed, failing):
    def best(dataset, scheme, every, method, update):
        factor = changed[2] if (method, update) == changed[:2] else 1.0
        return factor * as_the_paper_says(dataset, scheme, every, method, update)

    summary = invented(best)
    verdicts = {claim.name: judge(summary, claim)[0] for claim in CLAIMS}
    assert str(verdicts[failing]).startswith("does not hold (0 of")
    assert len(YARDSTICKS) == 4


def test_pages_escape_what_they_show():
    page = Page("A <b>")
    page.add(
        Heading("x & y"), Text("1 < 2"), Table(["a"], [["<script>"]]),
        Picture("p.png", "c", "<?xml?><svg></svg>"),
    )  # fmt: skip
    html = page.html()
    assert "<script>" not in html
    assert "A &lt;b&gt;" in html
    assert "<svg></svg>" in html
    assert "| <script> |" in page.markdown()
    assert "![c](p.png)" in page.markdown()


def test_the_whole_command(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Grid, "quick", classmethod(lambda cls: TINY))
    monkeypatch.setattr("unsum.experiments.paper.load_datasets", lambda *_, **__: [data])
    found = reproduce(
        tmp_path, names=None, folder=None, quick=True, runs=None, smoothness=None,
        length_scale=None, workers=1, watch=Screen(quiet=True).watch,
    )  # fmt: skip
    assert all((tmp_path / name).stat().st_size for name in found.files)
    assert json.dumps(found.to_dict())
    text = (tmp_path / "paper.md").read_text()
    for claim in CLAIMS:
        assert claim.name in text
    assert "What makes a difference" in text
    assert "<svg" in (tmp_path / "paper.html").read_text()
    again = reproduce(
        tmp_path, names=None, folder=None, quick=True, runs=None, smoothness=None,
        length_scale=None, workers=1, watch=Screen(quiet=True).watch,
    )  # fmt: skip
    assert again.n_fits == found.n_fits
    assert (tmp_path / "figure-paper.svg").read_text().count("<svg") == 1
