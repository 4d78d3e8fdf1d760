"""How sure the model is on long grids: against one covariance, and against the truth."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import unsum
from tests.population.test_stages import DAY, days_of_series, mixed_readings
from unsum.aggregation import AtRandom, aggregate
from unsum.calendar import DAY as SECONDS_OF_DAY
from unsum.calendar import Calendar
from unsum.methods.auto import Auto
from unsum.methods.panel import StagedFit
from unsum.panel import Panel, sum_between
from unsum.population.long import LongDoubtful
from unsum.population.model import Population
from unsum.population.stages import Stages
from unsum.population.uncertainty import Asked, Doubtful
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.tables.sums import sum_groups, sum_series


def two_levels(stages, seed=0):
    """A population whose blocks are filled in the same way, up to what is left open within them.

    Returned as one covariance over all periods, and as blocks and windows.
    """
    rng = np.random.default_rng(seed)
    block, count = stages.block, stages.n_blocks
    shape = 0.5 + rng.random(block)
    shape /= shape.sum()
    spread = np.kron(np.eye(count), shape[:, None])
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    by_blocks = Population(2 + rng.random(count), np.exp(-lags / 3))
    within = rng.normal(size=(block, block))
    within -= shape[:, None] * within.sum(axis=0)
    covariance = spread @ by_blocks.covariance @ spread.T
    covariance += np.kron(np.eye(count), 0.3 * within @ within.T)
    mean = spread @ by_blocks.mean
    root = rng.normal(size=(count, count))
    doubt = 0.05 * root @ root.T
    windows = []
    for begin in stages.begins:
        periods = np.arange(begin, begin + stages.span) - stages.margin
        periods = np.clip(periods, 0, stages.n_periods - 1)
        own = Population(mean[periods], covariance[np.ix_(periods, periods)])
        windows.append(Doubtful(own, np.zeros(own.covariance.shape)))
    whole = Doubtful(Population(mean, covariance), spread @ doubt @ spread.T)
    return whole, LongDoubtful(stages, Doubtful(by_blocks, doubt), windows, 0.25), spread


@pytest.mark.parametrize("margin", [0, 4])
def test_blocks_and_windows_know_as_much_as_one_covariance(margin):
    stages = Stages(72, 4, 12, margin)
    whole, long, spread = two_levels(stages)
    dates = [[0, 6, 12, 18], [1, 7, 15], [0, 9], [3, 11, 18], [0, 1, 2, 9]]
    rows = [
        (n, 4 * a, 4 * b) for n, own in enumerate(dates) for a, b in itertools.pairwise(own)
    ] + [(5, a, a + 1) for a in range(8)]
    series, start, stop = np.array(rows).T
    level = np.array([1.0, 2.0, 3.0, 0.5, 1.0, 1.5])
    sums = whole.population.mean_sums
    readings = Readings.from_arrays(
        series, start, stop, level[series] * (sums[stop] - sums[start]), n_series=6, n_periods=72
    )
    pairs = np.array([(c, d) for c in range(72) for d in range(c, 73)])
    asked = Asked(np.arange(7) * len(pairs), np.tile(pairs[:, 0], 6), np.tile(pairs[:, 1], 6))
    slot = np.arange(len(asked)) % 5
    weights = np.repeat(level, len(pairs))
    found, expected = (
        each.ask(readings, level, asked, slot=slot, n_slots=5, weights=weights)
        for each in (long, whole)
    )
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.shared, expected.shared, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.residues, expected.residues @ spread, rtol=1e-3, atol=1e-2)
    assert (found.within <= found.variance).all()
    np.testing.assert_allclose(found.common, 0.25 * found.within)
    inside = (asked.first % 4 > 0) | (asked.last % 4 > 0)
    assert found.within[~inside].max() < 1e-3 < found.within[inside].max()


def test_many_sums_are_asked_for_in_parts(monkeypatch):
    stages = Stages(72, 4, 12, 4)
    _, long, _ = two_levels(stages)
    values = np.random.default_rng(0).random((5, 72))
    readings = mixed_readings(values, np.zeros(5, bool), 24)
    asked = Asked.between(np.arange(0, 73, 3), 5)
    level, slot = np.ones(5), np.tile(np.arange(24), 5)
    at_once = long.ask(readings, level, asked, slot=slot, n_slots=24)
    monkeypatch.setattr("unsum.population.long.MAX_ASKED", 50)
    in_parts = long.ask(readings, level, asked, slot=slot, n_slots=24)
    for name in ("variance", "shared", "surprise", "counts", "within", "common"):
        np.testing.assert_array_equal(getattr(in_parts, name), getattr(at_once, name))
    np.testing.assert_allclose(in_parts.residues, at_once.residues, rtol=1e-12)


@pytest.fixture(scope="module")
def mixed():
    values = days_of_series(n_series=48, n_days=170)
    fine = np.arange(48) % 4 == 0
    readings = mixed_readings(values, fine, 10 * DAY)
    calendar = Calendar.covering("2h", None, 0, 170 * SECONDS_OF_DAY)
    return values, fine, recover(replace(readings, calendar=calendar), interval=0.9)


def inside(truth, lower, upper):
    slack = 1e-9 * truth
    return (np.asarray(lower) - slack <= truth) & (truth <= np.asarray(upper) + slack)


def test_intervals_of_periods_hold_as_often_as_they_say(mixed):
    values, fine, recovery = mixed
    assert recovery.method == "panel"
    readings = recovery.readings
    bounds = recovery.bound(0, readings, np.arange(values.shape[1] + 1), recovery.values)
    held = inside(values, bounds.lower, bounds.upper)
    assert 0.8 < held[~fine].mean() < 0.98
    assert (bounds.lower <= recovery.values).all()
    assert (recovery.values <= bounds.upper).all()
    assert (bounds.upper == bounds.lower)[fine].all()


def test_intervals_of_sums_do_too(mixed):
    values, fine, recovery = mixed
    for cuts in (np.arange(0, 2041, 3 * DAY), np.arange(7, 2041, 31)):
        table = sum_series(recovery, cuts)
        held = inside(sum_between(values, cuts).ravel(), table["lower"], table["upper"])
        assert 0.8 < held.reshape(48, -1)[~fine].mean() < 1
        everyone = sum_groups(recovery, cuts, "all")
        held = inside(sum_between(values, cuts).sum(axis=0), everyone["lower"], everyone["upper"])
        assert held.mean() > 0.75
    whole = sum_groups(recovery, np.arange(0, 2041, 10 * DAY), "all")
    np.testing.assert_array_equal(whole["lower"], whole["upper"])


def test_the_error_to_expect_is_about_right(mixed):
    values, _, recovery = mixed
    level = values.mean(axis=1, keepdims=True)
    error = np.linalg.norm((recovery.values - values) / level) / np.linalg.norm(values / level)
    assert 0.75 < recovery.expected_error / error < 1.33


def test_what_is_known_survives_a_file_and_serves_others(mixed, tmp_path):
    *_, recovery = mixed
    assert isinstance(recovery.fit.fit, StagedFit)
    recovery.save(tmp_path / "long.unsum")
    again = unsum.load(tmp_path / "long.unsum")
    assert np.array_equal(again.values, recovery.values)
    cuts = np.arange(0, 2041, 50)
    assert sum_series(again, cuts) == sum_series(recovery, cuts)
    applied = recovery.model.apply(recovery.readings[1:3], interval=0.9)
    np.testing.assert_allclose(applied.values, recovery.values[1:3], rtol=1e-9)
    own, other = (sum_series(each, cuts) for each in (recovery, applied))
    np.testing.assert_allclose(other["upper"], own["upper"][len(cuts) - 1 :][: 2 * (len(cuts) - 1)])


def test_tails_and_sources_are_told(mixed):
    values, fine = mixed[0][:24], mixed[1][:24]
    readings = mixed_readings(values, fine, 10 * DAY)
    ends = readings.stop <= np.where(fine, 2040, 1920)[readings.series_of_readings()]
    recovery = recover(readings.keep(ends), "panel", season=DAY, interval=0.9)
    tails = recovery.unbilled(backend="pyarrow")
    assert len(tails) == 18
    truth = values[~fine, 1920:].sum(axis=1)
    assert 0.7 < inside(truth, tails["lower"], tails["upper"]).mean() <= 1
    (low,), (high,) = (
        recovery.unbilled(by="all", backend="pyarrow")[name].to_pylist()
        for name in ("lower", "upper")
    )
    assert low <= truth.sum() <= high
    shares = recovery.diagnosis(backend="pyarrow")
    total = sum(np.asarray(shares[name]) for name in ("own", "panel", "open"))
    np.testing.assert_allclose(total, 1)
    assert np.asarray(shares["own"])[fine].min() > 0.99


def test_estimated_readings_inform_but_do_not_bind():
    values = days_of_series(n_series=30, n_days=175)
    readings = mixed_readings(values, np.arange(30) % 5 == 0, 7 * DAY)
    rng = np.random.default_rng(0)
    coarse = readings.stop - readings.start > 1
    guessed = coarse & (rng.random(readings.n_readings) < 0.4)
    total = np.where(guessed, readings.total * rng.lognormal(0, 0.5, len(guessed)), readings.total)
    readings = readings.with_totals(total)
    soft = replace(readings, estimated=guessed)
    told, untold = (recover(each, "panel", season=DAY).values for each in (soft, readings))
    missed, wrong = (np.linalg.norm(each - values) for each in (told, untold))
    assert missed < 0.8 * wrong
    sums = aggregate(Panel.from_values(told), readings).total
    np.testing.assert_allclose(sums[~guessed], total[~guessed], rtol=1e-9)
    assert np.abs(sums / total - 1)[guessed].max() > 0.1


def traits_of(names, kind):
    return pa.table({"series": [str(name) for name in names], "kind": kind})


def test_traits_tell_how_days_look_like():
    late = np.random.default_rng(1).random(30) < 0.5
    values = days_of_series(n_series=30, n_days=170, share=0.8 - 0.6 * late)
    kind = np.where(late, "late", "early")
    fine = np.arange(30) % 3 == 0
    readings = mixed_readings(values[:28], fine[:28], 10 * DAY)
    known = traits_of(range(30), kind)
    plain, told = (
        recover(readings, "panel", season=DAY, traits=each, interval=each and 0.9)
        for each in (None, known)
    )
    gaps = [np.linalg.norm((each.values - values[:28])[~fine[:28]]) for each in (told, plain)]
    assert gaps[0] < 0.8 * gaps[1]
    predicted = told.predict(backend="pyarrow")
    assert predicted["series"].unique().to_pylist() == ["28", "29"]
    lower, value, upper = (np.asarray(predicted[name]) for name in ("lower", "value", "upper"))
    assert (lower <= value).all()
    assert (value <= upper).all()
    shape = value.reshape(2, -1, DAY).sum(axis=1)
    assert ((shape[:, 8:].sum(axis=1) > shape[:, 4:8].sum(axis=1)) == late[28:]).all()
    applied = told.model.apply(readings[1:3], traits=traits_of([1, 2], kind[1:3]), interval=0.9)
    np.testing.assert_allclose(applied.values, told.values[1:3], rtol=1e-9)


def test_indicators_tell_how_blocks_differ():
    values = days_of_series(n_series=30, n_days=170)
    weather = np.random.default_rng(3).gamma(2.0, 1.0, 170)
    values *= np.repeat(0.5 + weather, DAY)
    readings = aggregate(Panel.from_values(values), AtRandom(15 * DAY))
    hourly = np.repeat(weather, DAY)
    covered = readings.covered()
    gaps = [
        np.linalg.norm(
            (recover(readings, "panel", season=DAY, indicators=each).values - values)[covered]
        )
        for each in (hourly, None)
    ]
    assert gaps[0] < 0.9 * gaps[1]


def test_auto_tries_what_is_known_on_long_grids():
    known = traits_of(range(5), ["a", "a", "b", "b", "b"])
    names = [name for name, _ in Auto(traits=known)._methods(2500, np.ones(2500))]
    assert names[2:] == [
        f"panel (shrinkage 0.5{more})"
        for more in ("", ", traits", ", indicators", ", traits, indicators")
    ]
