"""Runs that are ended go on, and arrive at the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.csv as pv
import pytest

import unsum
from unsum.checkpoint import Checkpoint, identify
from unsum.errors import ParameterError, UnsumError
from unsum.experiments.town import simulate_town
from unsum.factorization.crew import Plan
from unsum.tables.jobs import Outputs
from unsum.tables.rows import Options
from unsum.tables.running import Means, run_recover


class StoppedError(Exception):
    """A run that was ended."""


def watch(*_):
    from contextlib import contextmanager

    @contextmanager
    def silent():
        yield lambda _: None

    return silent()


@pytest.fixture(scope="module")
def bills(tmp_path_factory):
    path = tmp_path_factory.mktemp("bills") / "bills.csv"
    pv.write_csv(simulate_town(300).bills, path)
    return path


def run(source, out, means, method="even", **settings):
    return run_recover(
        source, Outputs(out), Options(), method=method, settings=settings, drop_bad=True,
        watch=watch, say=lambda _: None, means=means,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("nmf", {"rank": 4}),
        ("nmf", {"rank": 4, "accelerate": True}),
        ("nmf", {"rank": 3, "update": "nenmf"}),
        ("nmf-ar", {"rank": 3}),
    ],
)
def test_a_fit_goes_on_from_any_iteration(bills, method, settings, tmp_path):
    readings = unsum.read_readings(bills, drop_bad=True)
    whole = unsum.recover(readings, method, max_iter=12, tol=0.0, **settings)
    for last in (1, 5, 11):
        kept = Checkpoint(tmp_path / f"run-{last}", {}, pause=0.0)
        count = 0

        def stop(_, last=last):
            nonlocal count
            count += 1
            if count == last:
                raise StoppedError

        with pytest.raises(StoppedError):
            unsum.recover(
                readings, method, max_iter=12, tol=0.0, plan=Plan(keeper=kept), progress=stop,
                **settings,
            )  # fmt: skip
        state = kept.load()
        assert len(state["objective"]) == last
        again = unsum.recover(
            readings, method, max_iter=12, tol=0.0, plan=Plan(keeper=kept), **settings
        )
        assert np.array_equal(again.profiles, whole.profiles)
        assert np.array_equal(again.weights, whole.weights)
        assert np.array_equal(again.values, whole.values)
        for name, track in whole.history.items():
            assert np.array_equal(again.history[name], track), name


@pytest.mark.parametrize("memory", [1 << 30, 500_000])
def test_a_run_that_ended_while_writing_does_not_fit_again(bills, memory, tmp_path, monkeypatch):
    from unsum.tables import running

    means = Means(memory=memory, checkpoint=tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(running, "write_folder", lambda *_, **__: (_ for _ in ()).throw(StoppedError))
        with pytest.raises(StoppedError):
            run(bills, tmp_path / "out", means, "nmf", rank=3, max_iter=5)
    assert not (tmp_path / "out").exists()
    with monkeypatch.context() as patch:
        patch.setattr(running, "recover", lambda *_, **__: pytest.fail("fitted again"))
        if memory < 1 << 30:
            import unsum.checkpoint as keeping

            patch.setattr(keeping, "take_in_within", lambda *_: pytest.fail("judged again"))
        run(bills, tmp_path / "out", means, "nmf", rank=3, max_iter=5)
    assert not (tmp_path / "run").exists()  # nothing of it is needed any more
    run(bills, tmp_path / "other", Means(), "nmf", rank=3, max_iter=5)
    ours, theirs = ((tmp_path / name / "part-0000000000.parquet") for name in ("out", "other"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_checkpoint_of_another_run_is_refused(bills, tmp_path):
    folder = tmp_path / "run"
    Checkpoint(folder, identify(bills, Options(), method="nmf", settings={"rank": 3}))
    Checkpoint(folder, identify(bills, Options(), method="nmf", settings={"rank": 3}))
    with pytest.raises(ParameterError, match="its rank was 3, and now is 4"):
        Checkpoint(folder, identify(bills, Options(), method="nmf", settings={"rank": 4}))
    with pytest.raises(ParameterError, match="its freq was 'D', and now is 'h'"):
        Checkpoint(folder, identify(bills, Options("h"), method="nmf", settings={"rank": 3}))
    other = tmp_path / "other.csv"
    other.write_bytes(bills.read_bytes())
    with pytest.raises(ParameterError, match="its input was"):
        Checkpoint(folder, identify(other, Options(), method="nmf", settings={"rank": 3}))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ParameterError, match="something else than a checkpoint"):
        Checkpoint(tmp_path / "mine", {})


def test_a_killed_process_is_taken_up_again(bills, tmp_path):
    """For real: kill -9 while it fits, then the same command."""
    command = [
        sys.executable, "-m", "unsum", "recover", str(bills), "-o", "out", "--drop-bad", "--method",
        "nmf", "--rank", "6", "--max-iter", "400", "--tol", "0", "--checkpoint", "run",
    ]  # fmt: skip
    environment = os.environ | {"UNSUM_CHECKPOINT_SECONDS": "0"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    loop = tmp_path / "run" / "loop.npz"
    begun = time.monotonic()
    while not loop.exists() and time.monotonic() - begun < 60 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert loop.exists()
    assert not (tmp_path / "out").exists()
    (tmp_path / "run" / ".loop.npz.1.part").write_bytes(b"ended while it was kept")
    done = subprocess.run(
        [*command, "--json"], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    assert json.loads(done.stdout)["checks"]["verified"]
    assert not (tmp_path / "run").exists()
    subprocess.run(
        [*(each if each != "out" else "whole" for each in command[:-2])], cwd=tmp_path,
        capture_output=True, check=True,
    )  # fmt: skip
    names = [Path(name) / "part-0000000000.parquet" for name in ("out", "whole")]
    ours, theirs = ((tmp_path / name).read_bytes() for name in names)
    assert ours == theirs


@pytest.mark.parametrize("out", ["run", "run/out.parquet", "run/deep/out"])
def test_outputs_and_checkpoints_lie_apart(bills, out, tmp_path):
    (tmp_path / "run" / "deep").mkdir(parents=True)
    with pytest.raises(UnsumError, match=r"must lie apart|holds something else"):
        run(bills, tmp_path / out, Means(checkpoint=tmp_path / "run"))
    assert (tmp_path / "run" / "deep").exists()


def test_outputs_do_not_go_into_the_input(bills, tmp_path):
    import pyarrow.parquet as pq

    (tmp_path / "data").mkdir()
    pq.write_table(pv.read_csv(bills), tmp_path / "data" / "bills.parquet")
    with pytest.raises(ParameterError, match="the folder of the input"):
        run(tmp_path / "data", tmp_path / "data" / "out.parquet", Means())
    job = run(tmp_path / "data", tmp_path / "out", Means(memory=1_000_000))
    assert job.findings.rows_read == len(pv.read_csv(bills))
    assert job.recovery.readings.findings.rows_read == job.findings.rows_read
