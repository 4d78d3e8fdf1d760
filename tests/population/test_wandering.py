"""Series whose level wanders, against dense formulas, and what they gain."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t

from tests.population.test_population import dense_readings, random_population
from tests.problems import random_readings
from unsum.aggregation import Periodic, aggregate
from unsum.kernels.gaussian import judge_rows
from unsum.methods.panel import PanelModel
from unsum.panel import Panel
from unsum.population.wandering import SIZES, USUAL, _kinds, by_wandering
from unsum.readings import Readings
from unsum.recovering import recover


@pytest.mark.parametrize("seed", range(4))
def test_series_are_judged_by_a_student_distribution(seed):
    readings = random_readings(seed, n_series=6, n_periods=30, coverage=0.8)
    population = random_population(seed, 30)
    noises, found = population.noises(readings), np.empty(6)
    judge_rows(*readings.arrays, noises, population.mean_sums, population.both_sums, USUAL, found)
    for n in range(6):
        A, total, own = dense_readings(readings, n)
        K = A @ population.covariance @ A.T + np.diag(noises[own])
        student = multivariate_t(A @ population.mean, K, USUAL)
        shift = student.logpdf(A @ population.mean) + 0.5 * np.linalg.slogdet(K)[1]
        assert found[n] == pytest.approx(student.logpdf(total) - shift, rel=1e-9)


def test_a_wandering_level_multiplies_the_series():
    """The covariance of `(1 + w) (mean + e)`, by simulation of both."""
    rng = np.random.default_rng(4)
    population = replace(random_population(1, 6), wander=0.02)
    kind = _kinds(population)[SIZES.index(10.0)]
    lags = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    levels = 1 + rng.multivariate_normal(np.zeros(6), 0.2 * np.exp(-lags / 6), 400_000)
    moves = rng.multivariate_normal(np.zeros(6), population.covariance, 400_000)
    simulated = np.cov((levels * (population.mean + moves)).T)
    np.testing.assert_allclose(
        kind.covariance, simulated, atol=0.03 * np.diag(kind.covariance).max()
    )


def some_jump(seed=0):
    """Sixty calm series, the first four of which rise and fall manifold in the end."""
    rng = np.random.default_rng(seed)
    values = 1 + 0.1 * np.cumsum(rng.normal(0, 0.1, (60, 150)), axis=1)
    values += 0.1 * np.sin(np.arange(150) * 2 * np.pi / 7) + 0.05 * rng.normal(0, 1, (60, 150))
    values = np.maximum(values, 0.05)
    ramp = np.concatenate([np.zeros(90), np.linspace(0, 8, 60)])
    values[:4] = 0.3 * values[:4] + ramp * rng.uniform(0.5, 1.5, (4, 1))
    return Panel.from_values(values)


def test_series_that_jump_wander_and_are_closer_to_the_truth():
    truth = some_jump()
    readings = aggregate(truth, Periodic(7, offset=0))
    fit = PanelModel().fit(readings)
    population = fit.population
    kinds = list(by_wandering(readings, population, population.scale(readings, fit.levels)))
    wandering = np.concatenate([places for places, kind in kinds[1:]])
    assert set(range(4)) <= set(wandering.tolist())
    assert len(wandering) < 15
    firm = replace(fit, population=replace(population, wander=0.0))
    errors = []
    for each in (fit, firm):
        values = np.empty(truth.values.shape)
        each.fill(0, readings, values)
        errors.append(np.sqrt(np.mean((values - truth.values) ** 2, axis=1)))
    assert errors[0][:4].mean() < 0.9 * errors[1][:4].mean()
    same = np.setdiff1d(np.arange(60), wandering)
    np.testing.assert_array_equal(errors[0][same], errors[1][same])


def test_a_series_recovered_alone_is_as_it_was_among_others():
    """Whether its level wanders is a matter of its own readings."""
    readings = aggregate(some_jump(), Periodic(15))
    recovery = recover(readings, "panel")
    some = np.array([1, 7, 30])
    np.testing.assert_array_equal(recovery.apply(readings.take(some)).values, recovery.values[some])


def test_a_plant_that_rests_keeps_the_shape_of_its_day():
    """Some clients by the hour teach the day to those with daily totals, also to one that stops."""
    rng = np.random.default_rng(5)
    day = np.tile([0.2, 0.3, 0.8, 2.2, 1.8, 1.2, 1.0, 0.5], 28)
    values = np.maximum(day * (1 + 0.1 * rng.normal(0, 1, (40, 224))), 0.01)
    works = np.repeat((np.arange(28) < 9) | (np.arange(28) > 19), 8)
    values[-1] *= np.where(works, 3.0, 0.05)
    rows = []
    for n, own in enumerate(values):
        every = 1 if n < 10 else 8
        start = np.arange(0, 224, every)
        rows.append((np.full(len(start), n), start, start + every, np.add.reduceat(own, start)))
    readings = Readings.from_arrays(
        *(np.concatenate(column) for column in zip(*rows, strict=True)), n_series=40, n_periods=224
    )
    fit = PanelModel().fit(readings)
    population = fit.population
    kinds = list(by_wandering(readings, population, population.scale(readings, fit.levels)))
    assert any(39 in places for places, kind in kinds if kind is not kinds[0][1])
    found = recover(readings, "panel").values[-1]
    shares = day.reshape(28, 8)[0] / 8
    scaled = (values[-1].reshape(28, 8).sum(axis=1)[:, None] * shares).ravel()
    error, usual = (np.linalg.norm(each - values[-1]) for each in (found, scaled))
    assert error < 1.3 * usual  # as close as the true shape of all days, scaled
