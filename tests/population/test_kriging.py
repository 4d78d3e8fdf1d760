"""The mean of a population given readings, against dense formulas."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.stats import multivariate_normal

from tests.population.test_population import dense_readings, random_population
from tests.problems import random_readings
from unsum.aggregation import Periodic, aggregate
from unsum.experiments.synthetic import simulate_mixtures
from unsum.panel import Panel
from unsum.population.kriging import USUAL, _likely_weights, _say_of_mean, krige_mean
from unsum.population.lags import simple_covariances
from unsum.population.learn import learn_population
from unsum.population.model import Population
from unsum.population.start import guess_again
from unsum.readings import Readings


def equal(rows, variance):
    """Equal shares of a variance."""
    return np.full(len(rows), float(variance) / len(rows))


def with_whole_series(readings: Readings, seed: int) -> Readings:
    """The same, and two series that are read at every period."""
    rng = np.random.default_rng(seed)
    n, n_periods = readings.n_series, readings.n_periods
    more = np.repeat([n, n + 1], n_periods)
    start = np.tile(np.arange(n_periods), 2)
    return Readings.from_arrays(
        np.concatenate([readings.series_of_readings(), more]),
        np.concatenate([readings.start, start]),
        np.concatenate([readings.stop, start + 1]),
        np.concatenate([readings.total, 1 + rng.random(2 * n_periods)]),
        n_series=n + 2,
        n_periods=n_periods,
    )


def dense_information(readings, population):
    """Precision and pull, series by series, with matrices written out."""
    scaled = population.scale(readings, population.levels(readings))
    noises = population.noises(readings)
    n_periods = readings.n_periods
    precision, pull = np.zeros((n_periods, n_periods)), np.zeros(n_periods)
    for n in range(readings.n_series):
        A, _, own = dense_readings(readings, n)
        K = A @ population.covariance @ A.T + np.diag(noises[own])
        gap = scaled[own] - A @ population.mean
        weight = (USUAL + len(A)) / (USUAL + gap @ np.linalg.solve(K, gap))
        precision += weight * A.T @ np.linalg.solve(K, A)
        pull += weight * A.T @ np.linalg.solve(K, gap)
    return precision, pull


@pytest.mark.parametrize("seed", range(6))
def test_what_readings_say_of_the_mean_is_the_dense_formula(seed):
    readings = with_whole_series(random_readings(seed, 5, 24, coverage=0.8), seed)
    population = random_population(seed, 24)
    precision, pull = _say_of_mean(readings, population)
    dense = dense_information(readings, population)
    np.testing.assert_allclose(precision, dense[0], atol=1e-7 * np.abs(dense[0]).max())
    np.testing.assert_allclose(pull, dense[1], atol=1e-7 * np.abs(dense[1]).max())


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_is_that_of_a_gaussian_process(seed):
    """The posterior of a curve with the likely covariance, around a flat centre."""
    readings = random_readings(seed, n_series=9, n_periods=20, coverage=0.9)
    population = random_population(seed, 20)
    precision, pull = dense_information(readings, population)
    centre = np.full(20, population.mean.mean())
    away = population.mean - centre
    pull = pull + precision @ away
    rows = simple_covariances(20)
    prior = toeplitz(_likely_weights(precision, pull, rows, equal(rows, np.mean(away**2))) @ rows)
    covariance = np.linalg.inv(np.linalg.inv(prior) + precision)
    kriged = krige_mean(readings, population, season=1)
    np.testing.assert_allclose(kriged.covariance, covariance, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(kriged.mean, centre + covariance @ pull, rtol=1e-5, atol=1e-7)


def test_steps_make_what_is_said_more_likely():
    """What pulls on the mean, over its precision, is the mean with an error."""
    rng = np.random.default_rng(8)
    curve = np.cumsum(rng.normal(0, 1, 60))
    errors = np.diag(rng.uniform(0.05, 0.2, 60))
    precision = np.linalg.inv(errors)
    seen = curve + rng.normal(0, 1, 60) * np.sqrt(np.diag(errors))
    rows = simple_covariances(60)
    found = toeplitz(
        _likely_weights(precision, precision @ seen, rows, equal(rows, np.var(curve))) @ rows
    )
    white = np.var(curve) * np.eye(60)
    likelihood = [
        multivariate_normal(np.zeros(60), each + errors).logpdf(seen) for each in (white, found)
    ]
    assert likelihood[1] > likelihood[0] + 30
    assert found[0, 1] > 0.8 * found[0, 0]


def test_a_smooth_mean_is_known_between_readings():
    """Offsets differ, so the mean is seen at every period; the doubt about it is honest."""
    truth = simulate_mixtures(n_series=100, n_periods=120)
    readings = aggregate(truth, Periodic(7))
    population = learn_population(readings, steps=10).population
    kriged = krige_mean(readings, population, season=1)
    scaled = truth.values / truth.values.mean(axis=1, keepdims=True)
    missed = np.mean((kriged.mean - scaled.mean(axis=0)) ** 2)
    assert 0.3 < np.trace(kriged.covariance) / 120 / missed < 3
    assert missed < 0.05 * np.var(scaled.mean(axis=0))


def test_a_long_mean_is_judged_by_its_middle(monkeypatch):
    """Its movement is much the same in the middle as throughout."""
    truth = simulate_mixtures(n_series=60, n_periods=160)
    readings = aggregate(truth, Periodic(5))
    population = learn_population(readings, steps=5).population
    whole = krige_mean(readings, population, season=1)
    monkeypatch.setattr("unsum.population.kriging.MAX_SEEN", 100)
    again = krige_mean(readings, population, season=1)
    assert not np.array_equal(again.mean, whole.mean)
    moves = np.linalg.norm(whole.mean - whole.mean.mean())
    assert np.linalg.norm(again.mean - whole.mean) < 0.05 * moves
    assert 0.5 < np.trace(again.covariance) / np.trace(whole.covariance) < 2


def test_a_mean_that_does_not_move_has_nothing_to_tell():
    readings = aggregate(Panel.from_values(np.full((6, 30), 2.0)), Periodic(5))
    flat = Population(np.ones(30), 0.01 * np.eye(30))
    kriged = krige_mean(readings, flat, season=7)
    np.testing.assert_allclose(kriged.mean, 1.0, atol=1e-6)
    assert np.isfinite(kriged.covariance).all()
    assert np.isfinite(guess_again(readings, flat, season=7).covariance).all()
    alone = replace(flat, mean=np.ones(1), covariance=np.array([[0.01]]))
    single = aggregate(Panel.from_values(np.full((6, 1), 2.0)), Periodic(1, offset=0))
    assert np.isfinite(krige_mean(single, alone, season=1).covariance).all()


@pytest.mark.parametrize(("every", "hidden"), [(7, True), (5, False)])
def test_a_rhythm_that_dates_hide_may_be_there_all_the_same(every, hidden):
    rng = np.random.default_rng(7)
    truth = Panel.from_values(1 + 0.05 * rng.normal(0, 1, (60, 140)))
    readings = aggregate(truth, Periodic(every, offset=0))
    population = Population(np.ones(140), 0.0025 * np.eye(140))
    of_days = [
        np.trace(krige_mean(readings, population, season=7, rhythm=rhythm).covariance) / 140
        for rhythm in (0.0, 0.1)
    ]
    assert of_days[1] > of_days[0]
    assert (of_days[1] > 5 * 0.0025 / 60) == hidden  # a day of 60 series is known to a 60th
