"""What further measures tell the population, against the dense formula."""

from dataclasses import replace

import numpy as np
import pytest

from tests.population.test_population import dense_condition, dense_readings, random_population
from tests.problems import random_readings
from tests.test_projection import matrix_of, random_measures
from unsum.methods.panel import PanelFit
from unsum.population import informing
from unsum.population.uncertainty import Doubtful


@pytest.mark.parametrize("seed", range(4))
def test_means_given_measures_are_those_of_the_dense_formula(seed, monkeypatch):
    monkeypatch.setattr(informing, "PRECISION", 1e-13)
    monkeypatch.setattr(informing, "DOUBTS", [0.2])
    rng = np.random.default_rng(seed)
    N, T = 5, 14
    readings = random_readings(seed, n_series=N, n_periods=T, coverage=0.6, zeros=0.0)
    population = random_population(seed, T)
    root = rng.normal(0, 1, (T, T))
    doubtful = Doubtful(population, 0.05 * root @ root.T)
    levels = population.levels(readings)
    fit = PanelFit(population, levels, {}, "", readings)
    values = np.empty((N, T))
    fit.fill(0, readings, values)
    measures = random_measures(rng, N, T, 6)
    total = measures.forward(values) * rng.uniform(0.7, 1.3, 6)
    measures = replace(measures, total=total, estimated=np.arange(6) == 2)

    noises = population.noises(readings)
    scaled = readings.with_totals(population.scale(readings, levels))
    spread, covariance, residues = np.empty(N), np.zeros((N, T, N, T)), np.empty((N, T, T))
    for n in range(N):
        A, beyond, own = dense_readings(scaled, n)
        K = A @ population.covariance @ A.T + np.diag(noises[own])
        gap = beyond - A @ population.mean
        spread[n] = (10 + gap @ np.linalg.solve(K, gap)) / (10 + len(gap))
        residues[n] = np.eye(T) - population.covariance @ A.T @ np.linalg.inv(K) @ A
        covariance[n, :, n] = (
            levels[n] ** 2
            * spread[n]
            * dense_condition(population, scaled, n, noises, population.covariance)[1]
        )
    shared = (levels[:, None, None] * residues).reshape(N * T, T)
    covariance = covariance.reshape(N * T, N * T) + shared @ doubtful.covariance_of_mean @ shared.T
    F = matrix_of(measures)
    square = measures.squared().forward(np.repeat((levels**2 * spread)[:, None], T, axis=1))
    usual = square * np.trace(population.covariance) / T
    noise = np.where(
        measures.estimated, (population.doubt * F @ values.ravel()) ** 2, informing.NOISE * usual
    )
    losses = np.zeros((measures.n_sets, 6))
    for r, s in zip(measures.measure, measures.piece_set, strict=True):
        if measures.set_ptr[s + 1] - measures.set_ptr[s] > 1:
            losses[s, r] += informing.LOSSES * (F @ values.ravel())[r]
    spread_of_totals = F @ covariance @ F.T + np.diag(noise) + losses.T @ losses
    gain = covariance @ F.T @ np.linalg.inv(spread_of_totals)
    expected = values.ravel() + gain @ (total - F @ values.ravel())

    found = np.empty((N, T))
    informed = fit.inform(readings, measures, doubtful)
    informed.fill(0, readings, found)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6, atol=1e-6 * values.max())
    later = np.empty((2, T))
    informed.fill(3, readings[3:], later)
    np.testing.assert_allclose(later, found[3:], rtol=1e-12)
