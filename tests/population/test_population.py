"""The Gaussian population against dense formulas, and what it learns."""

import numpy as np
import pytest

from tests.problems import random_readings
from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.errors import ParameterError
from unsum.experiments.compare import measure_recovery
from unsum.experiments.synthetic import simulate_mixtures
from unsum.kernels.gaussian import condition_rows, explain_rows
from unsum.methods.panel import PanelModel
from unsum.panel import Panel
from unsum.population.learn import learn_population, shrink
from unsum.population.model import Population, average_diagonals
from unsum.readings import Readings
from unsum.recovering import recover


def random_population(seed, n_periods):
    rng = np.random.default_rng(seed)
    root = rng.normal(0, 1, (n_periods, 5))
    covariance = root @ root.T / 5 + 0.3 * np.eye(n_periods)
    return Population(1.0 + rng.random(n_periods), covariance)


def dense_condition(population, readings, n):
    """Conditional mean, covariance and log-likelihood, with matrices written out."""
    own = slice(readings.indptr[n], readings.indptr[n + 1])
    start, stop, total = readings.start[own], readings.stop[own], readings.total[own]
    periods = np.arange(readings.n_periods)
    A = ((periods >= start[:, None]) & (periods < stop[:, None])).astype(float)
    K = A @ population.covariance @ A.T + population.noise * np.diag(stop - start)
    gain = population.covariance @ A.T @ np.linalg.inv(K)
    gap = total - A @ population.mean
    covariance = population.covariance - gain @ A @ population.covariance
    likelihood = -0.5 * gap @ np.linalg.solve(K, gap) - 0.5 * np.linalg.slogdet(K)[1]
    return population.mean + gain @ gap, covariance, likelihood


@pytest.mark.parametrize("seed", range(10))
def test_conditional_means_are_those_of_the_dense_formula(seed):
    readings = random_readings(seed, n_series=6, n_periods=30, coverage=0.8)
    population = random_population(seed, 30)
    values, again = np.empty((6, 30)), np.empty((6, 30))
    explained = np.empty((readings.n_readings, 30))
    condition_rows(*readings.arrays, *population.sums, values)
    likelihood = explain_rows(*readings.arrays, *population.sums, again, explained)
    expected = 0.0
    for n in range(6):
        mean, covariance, own = dense_condition(population, readings, n)
        expected += own
        np.testing.assert_allclose(values[n], mean, atol=1e-9 * np.abs(mean).max())
        np.testing.assert_allclose(again[n], mean, atol=1e-9 * np.abs(mean).max())
        G = explained[readings.indptr[n] : readings.indptr[n + 1]]
        np.testing.assert_allclose(population.covariance - G.T @ G, covariance, atol=1e-9)
    assert likelihood == pytest.approx(expected, rel=1e-9)


def test_a_stationary_covariance_stays_positive():
    rng = np.random.default_rng(1)
    for n in (1, 2, 7, 40):
        root = rng.normal(0, 1, (n, 3))
        stationary = average_diagonals(root @ root.T)
        assert np.linalg.eigvalsh(stationary)[0] > -1e-12
        for lag in range(n):
            assert len(set(np.round(np.diagonal(stationary, lag), 12))) == 1
    assert np.array_equal(shrink(np.eye(3), 0.0), np.eye(3))


def test_from_complete_readings_it_learns_what_there_is():
    rng = np.random.default_rng(2)
    truth = np.maximum(1 + rng.normal(0, 0.2, (400, 4)) @ rng.random((4, 12)), 0.01)
    readings = aggregate(Panel.from_values(truth), Periodic(1, offset=0))
    learned = learn_population(readings, shrinkage=0.0, steps=60)
    level = learned.population.levels(readings)
    scaled = truth / level[:, None]
    np.testing.assert_allclose(learned.population.mean, scaled.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(
        learned.population.covariance, np.cov(scaled.T, bias=True), atol=2e-3
    )


def test_levels_are_fair_to_series_read_in_part_of_the_year():
    mean = np.concatenate([np.full(5, 2.0), np.full(5, 0.5)])
    population = Population(mean, np.eye(10))
    readings = Readings.from_arrays(
        [0, 1, 2], [0, 5, 0], [5, 10, 10], [30.0, 7.5, 37.5], n_series=3, n_periods=10
    )
    np.testing.assert_allclose(population.levels(readings), [3.0, 3.0, 3.0])


@pytest.mark.parametrize(("scheme", "part"), [(AtRandom(5), 0.6), (Periodic(5), 0.8)])
def test_it_beats_methods_that_look_at_one_series_alone(scheme, part):
    truth = simulate_mixtures(100, 80, 6, seed=4)
    readings = aggregate(truth, scheme)
    errors = {
        method: measure_recovery(truth, readings, recover(readings, method).values).normalised
        for method in ("even", "denton", "panel")
    }
    assert errors["panel"] < part * min(errors["even"], errors["denton"])


def test_a_weekly_rhythm_shows_in_random_readings():
    rng = np.random.default_rng(5)
    week = np.tile([1.2, 1.2, 1.2, 1.2, 1.2, 0.5, 0.5], 12)
    truth = Panel.from_values(week * (1 + 0.1 * rng.random((80, 84))))
    readings = aggregate(truth, AtRandom(5))
    values = recover(readings, "panel").values
    assert measure_recovery(truth, readings, values).normalised < 0.1


def test_a_large_panel_is_learned_from_a_sample(monkeypatch):
    readings = random_readings(3, n_series=40, n_periods=20)
    monkeypatch.setattr("unsum.methods.panel.MAX_VALUES", 20 * 15)
    recovery = recover(readings, "panel")
    assert "from 15 series" in recovery.stop_reason
    again = recover(readings, "panel")
    assert np.array_equal(recovery.values, again.values)


def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("unsum.population.learn.GROUP_READINGS", 50)
    readings = random_readings(3, n_series=90, n_periods=24)
    values = [recover(readings, "panel", threads=threads).values for threads in (1, 2, 7)]
    assert np.array_equal(values[0], values[1])
    assert np.array_equal(values[0], values[2])


def test_settings_are_checked():
    for settings, message in (
        ({"shrinkage": 2.0}, "between 0 and 1"),
        ({"steps": -1}, "whole number of at least 0"),
        ({"seed": 0.5}, "whole number of at least 0"),
    ):
        with pytest.raises(ParameterError, match=message):
            PanelModel(**settings)
    readings = Readings.from_arrays([0], [0], [2500], [1.0], n_series=1, n_periods=2500)
    with pytest.raises(ParameterError, match="up to 2000 periods, these are 2500"):
        recover(readings, "panel")
