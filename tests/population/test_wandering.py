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
from unsum.population.wandering import USUAL, by_wandering
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
