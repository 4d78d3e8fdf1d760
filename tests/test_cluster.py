"""The same bits from a real cluster of processes, whatever becomes of its workers."""

import copy
import os
import signal

import numpy as np
import pytest

import unsum
from unsum.checkpoint import Checkpoint
from unsum.cluster import CUT, Cluster, _advance, join_cluster
from unsum.errors import ParameterError, UnsumError
from unsum.experiments.town import simulate_town
from unsum.factorization.chunk import Step
from unsum.factorization.chunk_ar import Pulled
from unsum.methods.nmf import levels
from unsum.tables import folders

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with join_cluster("local:2", tmp_path_factory.mktemp("cluster")) as joined:
        yield joined


@pytest.fixture(scope="module")
def readings():
    return unsum.Readings.from_frame(simulate_town(700).bills, drop_bad=True)


def same(one, other):
    assert np.array_equal(one.profiles, other.profiles)
    assert np.array_equal(one.weights, other.weights)
    for name, track in one.history.items():
        assert np.array_equal(track, other.history[name]), name
    assert one.stop_reason == other.stop_reason


SETTINGS = [
    ("nmf", {"rank": 4, "max_iter": CUT + 5}),
    ("nmf", {"rank": 4, "max_iter": CUT + 5, "accelerate": True}),
    ("nmf-ar", {"rank": 3, "max_iter": 6}),
]


@pytest.mark.parametrize(("method", "settings"), SETTINGS)
def test_fits_have_the_same_bits(cluster, readings, method, settings):
    here = unsum.recover(readings, method, tol=0.0, **settings)
    there = unsum.recover(readings, method, tol=0.0, plan=cluster.plan(), **settings)
    same(here, there)


def at_odd_addresses(chunk):
    """The chunk as it may arrive from another worker."""
    moved = copy.copy(chunk)
    for name, value in vars(chunk).items():
        if isinstance(value, np.ndarray):
            bytes_ = np.empty(value.nbytes + 1, np.uint8)
            odd = bytes_[1:].view(value.dtype).reshape(value.shape)
            odd[...] = value
            odd.flags.writeable = value.flags.writeable
            setattr(moved, name, odd)
    return moved


def test_chunks_that_move_between_workers_are_worked_on_at_even_addresses(readings):
    W = np.random.default_rng(0).random((readings.n_periods, 3))
    step = Step.of(W, W, W, 7, "hals", 2)
    lags, part = {1: 1.0}, readings[:60]
    strength = np.full(60, 0.2)

    def held():
        chunk = Pulled(lags, strength, strength).make(part, levels(part), np.ones((60, 3)))
        return [chunk], []

    stayed, moved = held(), ([at_odd_addresses(held()[0][0])], [])
    assert not moved[0][0].V.flags.aligned
    for _ in range(3):
        stayed, moved = _advance(stayed, step), _advance(moved, step)
        arrays = [each for each in vars(moved[0][0]).values() if isinstance(each, np.ndarray)]
        assert all(each.flags.aligned for each in arrays)
        assert np.array_equal(stayed[1][0].sums, moved[1][0].sums)
        assert np.array_equal(stayed[0][0].V, moved[0][0].V)


def test_a_client_is_enough(cluster, readings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = unsum.recover(readings, "nmf", rank=2, max_iter=3)
    there = unsum.recover(readings, "nmf", rank=2, max_iter=3, client=cluster.client)
    same(here, there)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["auto", "even", "denton", "nmf"])
def test_files_have_the_same_bytes(cluster, readings, method, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "PART_VALUES", 256 * 425)
    settings = {"rank": 3, "max_iter": 3} if method == "nmf" else {}
    recovery = unsum.recover(readings[: 60 if method == "auto" else 300], method, **settings)
    if method == "auto":  # what was learned, for other series
        recovery = recovery.apply(readings)
    recovery.write(tmp_path / "here")
    recovery.write(tmp_path / "there", client=cluster.client)
    here, there = (sorted((tmp_path / name).glob("*.parquet")) for name in ("here", "there"))
    assert len(here) == (3 if method == "auto" else 2)
    assert [path.name for path in here] == [path.name for path in there]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(here, there, strict=True))


def test_a_checkpoint_goes_from_threads_to_a_cluster_and_back(cluster, readings, tmp_path):
    from unsum.factorization.crew import Plan

    settings = {"rank": 3, "max_iter": 8, "tol": 0.0}
    whole = unsum.recover(readings, "nmf", **settings)

    def stop_after(n):
        count = iter(range(n))
        return lambda _: next(count)  # StopIteration ends the fit

    kept = Checkpoint(tmp_path / "run", {}, pause=0.0)
    for plan in (Plan(keeper=kept), cluster.plan(kept)):
        with pytest.raises(StopIteration):
            unsum.recover(readings, "nmf", plan=plan, progress=stop_after(2), **settings)
    same(whole, unsum.recover(readings, "nmf", plan=cluster.plan(kept), **settings))
    same(whole, unsum.recover(readings, "nmf", plan=Plan(keeper=kept), **settings))


@pytest.mark.parametrize("victims", [1, 2])
def test_lost_workers_change_nothing(readings, victims, tmp_path):
    settings = {"rank": 3, "max_iter": CUT + 3, "tol": 0.0}
    whole = unsum.recover(readings, "nmf", **settings)
    with join_cluster("local:2", tmp_path) as cluster:
        turns = iter(range(100))

        def strike(_):
            if next(turns) in (2, CUT):
                for pid in list(cluster.client.run(os.getpid).values())[:victims]:
                    os.kill(pid, signal.SIGKILL)

        same(
            whole, unsum.recover(readings, "nmf", plan=cluster.plan(), progress=strike, **settings)
        )


def test_a_deserted_cluster_is_told(readings, tmp_path, monkeypatch):
    monkeypatch.setattr("unsum.cluster.STANDSTILL", 0.5)
    with join_cluster("local:1", tmp_path) as cluster:
        turns = iter(range(100))

        def strike(_):
            if next(turns) == 2:
                cluster.client.cluster.scale(0)

        with pytest.raises(UnsumError, match="has had no worker for 2 s; start some"):
            unsum.recover(
                readings, "nmf", plan=cluster.plan(), progress=strike, rank=3, max_iter=30, tol=0.0
            )


def test_a_lost_scheduler_is_told_and_the_run_goes_on_later(readings, tmp_path):
    settings = {"rank": 3, "max_iter": 8, "tol": 0.0}
    whole = unsum.recover(readings, "nmf", **settings)
    kept = Checkpoint(tmp_path / "run", {}, pause=0.0)
    with join_cluster("local:1", tmp_path / "one") as cluster:
        turns = iter(range(100))

        def strike(_):
            if next(turns) == 3:
                cluster.client.cluster.close()

        with pytest.raises(UnsumError, match="the cluster was lost"):
            unsum.recover(readings, "nmf", plan=cluster.plan(kept), progress=strike, **settings)
    with join_cluster("local:2", tmp_path / "two") as cluster:
        same(whole, unsum.recover(readings, "nmf", plan=cluster.plan(kept), **settings))


def test_what_cannot_be_joined_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("unsum.cluster.PATIENCE", 1)
    with pytest.raises(ParameterError, match="must be like tcp"), join_cluster("local:x", tmp_path):
        pass
    with pytest.raises(UnsumError, match="no cluster answers"):  # noqa: SIM117
        with join_cluster("tcp://127.0.0.1:1", tmp_path):
            pass


def test_totals_of_groups_stay_in_one_process(cluster, tmp_path):
    own = {"series": ["a", "b"], "start": [0, 0], "end": [6, 6], "total": [6.0, 8.0]}
    loads = {"group": ["f"] * 2, "start": [0, 3], "end": [3, 6], "total": [7.0, 7.0]}
    readings = unsum.Readings.from_frame(own, freq="period").with_groups({"f": ["a", "b"]}, loads)
    recovery = unsum.recover(readings, "even")
    with pytest.raises(ParameterError, match="solved in one process"):
        list(Cluster(cluster.client, tmp_path).write_parts(recovery, [(0, 2)], tmp_path))
