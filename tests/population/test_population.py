"""The Gaussian population against dense formulas, and what it learns."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.stats import multivariate_t

from tests.problems import random_readings
from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.errors import ParameterError
from unsum.experiments.compare import measure_recovery
from unsum.experiments.synthetic import simulate_mixtures
from unsum.kernels.gaussian import condition_rows, explain_rows
from unsum.kernels.stationary import weigh_lags
from unsum.methods.panel import PanelModel
from unsum.panel import Panel
from unsum.population.dates import average_diagonals
from unsum.population.lags import rhythms, simple_covariances, variances_of_sums
from unsum.population.learn import learn_population, weigh
from unsum.population.model import Population, add_up
from unsum.population.start import first_guess, guess_again
from unsum.population.uncertainty import Asked, Doubtful
from unsum.readings import Readings
from unsum.recovering import recover


def random_population(seed, n_periods, level=0.0):
    rng = np.random.default_rng(seed)
    root = rng.normal(0, 1, (n_periods, 5))
    covariance = root @ root.T / 5 + 0.3 * np.eye(n_periods)
    return Population(1.0 + rng.random(n_periods), covariance, level=level)


def dense_readings(readings, n):
    """The readings of a series as a matrix, with their totals."""
    own = slice(readings.indptr[n], readings.indptr[n + 1])
    start, stop = readings.start[own], readings.stop[own]
    periods = np.arange(readings.n_periods)
    A = ((periods >= start[:, None]) & (periods < stop[:, None])).astype(float)
    return A, readings.total[own], own


def with_level(population):
    """The covariance of series whose level is open, written out."""
    return population.covariance + population.freedom * np.outer(population.mean, population.mean)


def dense_condition(population, readings, n, noises, C):
    """Conditional mean, covariance and log-likelihood, with matrices written out.

    Of series with the covariance C, seen beside a level.
    """
    A, total, own = dense_readings(readings, n)
    K = A @ with_level(population) @ A.T + np.diag(noises[own])
    gain = C @ A.T @ np.linalg.inv(K)
    gap = total - A @ population.mean
    covariance = C - gain @ A @ C
    likelihood = -0.5 * gap @ np.linalg.solve(K, gap) - 0.5 * np.linalg.slogdet(K)[1]
    errors = np.diag(noises[own]) - np.diag(noises[own]) @ np.linalg.inv(K) @ np.diag(noises[own])
    missed = np.diag(noises[own]) @ np.linalg.solve(K, gap)
    return population.mean + gain @ gap, covariance, likelihood, np.diag(errors) + missed**2


def with_quality(readings, seed):
    """The same readings, some of them estimated."""
    estimated = np.random.default_rng(seed).random(readings.n_readings) < 0.3
    return replace(readings, estimated=estimated)


def with_counts(readings):
    """The same with totals that are multiples of a half."""
    return readings.with_totals(np.ceil(4 * readings.total) / 2)


@pytest.mark.parametrize("seed", range(10))
def test_conditional_means_are_those_of_the_dense_formula(seed):
    readings = random_readings(seed, n_series=6, n_periods=30, coverage=0.8)
    if seed % 2:
        readings = with_quality(readings, seed)
    population = random_population(seed, 30, level=0.3 * (seed % 3))
    noises = population.noises(readings)
    values = np.empty((6, 30))
    condition_rows(*readings.arrays, noises, *population.sums, values)
    pulls, steps = np.zeros((6, 31)), np.zeros((31, 31))
    weights, errors = np.empty(6), np.empty(readings.n_readings)
    usual = np.trace(population.covariance)
    likelihood = explain_rows(
        *readings.arrays, noises, population.mean_sums, population.free_sums,
        population.squared_sums, usual, pulls, steps, weights, errors,
    )  # fmt: skip
    again = population.mean + np.cumsum(pulls, axis=1)[:, :-1] @ population.covariance
    expected, told = 0.0, np.zeros((30, 30))
    for n in range(6):
        own = slice(readings.indptr[n], readings.indptr[n + 1])
        mean, *_ = dense_condition(population, readings, n, noises, with_level(population))
        np.testing.assert_allclose(values[n], mean, atol=1e-9 * np.abs(mean).max())
        mean, covariance, part, squares = dense_condition(
            population, readings, n, noises, population.covariance
        )
        expected += part
        np.testing.assert_allclose(again[n], mean, atol=1e-9 * np.abs(mean).max())
        squared = np.sum((mean - population.mean) ** 2) + np.trace(covariance)
        assert weights[n] == pytest.approx(2 / (1 + squared / usual), rel=1e-6)
        told += weights[n] * (population.covariance - covariance)
        np.testing.assert_allclose(errors[own], squares, rtol=1e-6, atol=1e-12)
    found = population.covariance @ add_up(steps) @ population.covariance
    np.testing.assert_allclose(found, told, atol=1e-8 * usual)
    assert likelihood == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_doubts_are_those_of_the_dense_formula(seed):
    rng = np.random.default_rng(seed)
    readings = random_readings(seed, n_series=5, n_periods=24, coverage=0.8)
    if seed % 2:
        readings = with_counts(readings)
    population = random_population(seed, 24, level=0.3 * (seed % 3))
    population = replace(population, quantum=0.5 * (seed % 2), counting=0.8)
    levels = population.levels(readings)
    doubtful = Doubtful.learned_from(readings, population)
    noises = population.noises(readings)
    counting = 0.4 * np.divide(1, levels, out=np.zeros(5), where=levels > 0) * (seed % 2)
    curves = []
    cuts = np.array([0, 5, 6, 13, 24])
    J = np.zeros((4, 24))
    for row, low, high in zip(J, cuts, cuts[1:], strict=False):
        row[low:high] = 1.0
    weights = rng.random(20)
    slot = np.tile(np.arange(4), 5)
    doubt = doubtful.ask(
        readings, levels, Asked.between(cuts, 5), slot=slot, n_slots=4, weights=weights
    )
    for n in range(5):
        A, _, own = dense_readings(readings, n)
        noise = counting[n] * np.diag(population.mean)
        C = with_level(population) + noise
        K = A @ C @ A.T + population.noise * np.diag(A.sum(axis=1))
        np.testing.assert_allclose(
            K - A @ with_level(population) @ A.T, np.diag(noises[own]), atol=1e-12
        )
        gain = C @ A.T @ np.linalg.inv(K)
        curves.append(J @ (np.eye(24) - gain @ A))
        variance = np.diag(J @ (C - gain @ A @ C) @ J.T)
        np.testing.assert_allclose(doubt.variance[4 * n : 4 * n + 4], variance, atol=1e-8)
        alone = noise - noise @ A.T @ np.linalg.pinv(A @ noise @ A.T) @ A @ noise
        counted = np.diag(J @ alone @ J.T)
        np.testing.assert_allclose(doubt.counted[4 * n : 4 * n + 4], counted, atol=1e-8)
    posterior = doubtful.covariance_of_mean
    for n in range(5):
        shared = np.diag(curves[n] @ posterior @ curves[n].T)
        np.testing.assert_allclose(doubt.shared[4 * n : 4 * n + 4], shared, atol=1e-8)
    together = np.einsum("nq,nqt->qt", weights.reshape(5, 4), np.array(curves))
    np.testing.assert_allclose(doubt.residues, together, atol=1e-8)


def test_sums_that_are_asked_for_can_be_thinned_out():
    asked = Asked(np.array([0, 0, 30, 32]), np.arange(32), np.arange(32) + 1)
    few = asked.few(5)
    assert few.tolist() == [0, 6, 12, 18, 24, 30, 31]
    thin = asked.take(few)
    assert thin.places.tolist() == [0, 0, 5, 7]
    assert thin.of_series() == [slice(0, 5), slice(5, 7)]


@pytest.mark.parametrize("seed", range(5))
def test_the_start_knows_how_likely_it_is(seed):
    """The histogram of lags is the slope of the likelihood, against small changes."""
    readings = random_readings(seed, n_series=7, n_periods=20, coverage=0.8)
    covariances = np.vstack([simple_covariances(20), rhythms(20, season=5)])
    sums = variances_of_sums(covariances)
    usual = 3.0
    rng = np.random.default_rng(seed)
    weights, gap = rng.random(len(covariances)), rng.normal(0, 1, readings.n_readings)
    arrays = readings.indptr, readings.start, readings.stop, gap
    noise = rng.random(readings.n_readings)

    def likelihood(weights, factor=1.0):
        fitted, expected, of_noise = np.zeros(21), np.zeros(21), np.zeros(2)
        found = weigh_lags(
            *arrays, factor * noise, weights @ sums, usual, fitted, expected, of_noise
        )
        return found, sums @ (fitted - expected), of_noise[0] - of_noise[1]

    _, slope, of_noise = likelihood(weights)
    louder = likelihood(weights, 1 + 1e-5)[0] - likelihood(weights, 1 - 1e-5)[0]
    assert louder / 2e-5 == pytest.approx(of_noise / 2, rel=1e-3, abs=1e-5)
    for k in range(len(weights)):
        step = np.zeros(len(weights))
        step[k] = 1e-5
        up, down = likelihood(weights + step)[0], likelihood(weights - step)[0]
        assert (up - down) / 2e-5 == pytest.approx(slope[k] / 4, rel=1e-3, abs=1e-5)
    dense = toeplitz(weights @ covariances)
    A, _, own = dense_readings(readings, 0)
    alone = weigh_lags(
        readings.indptr[:2], readings.start, readings.stop, gap, noise, weights @ sums, usual,
        np.zeros(21), np.zeros(21), np.zeros(2),
    )  # fmt: skip
    K = A @ dense @ A.T * (1 + 1e-7 * np.eye(len(A))) + np.diag(noise[own])
    student = multivariate_t(np.zeros(len(A)), K, usual)
    shift = student.logpdf(np.zeros(len(A))) + 0.5 * np.linalg.slogdet(K)[1]
    assert alone == pytest.approx(student.logpdf(gap[own]) - shift, rel=1e-6)


def test_a_second_guess_knows_how_smooth_series_are_within_their_readings():
    """A week of seven smooth days looks like noise to a first guess; the mean tells better."""
    truth = simulate_mixtures(n_series=80, n_periods=120)
    readings = aggregate(truth, Periodic(7))
    scaled = truth.values / truth.values.mean(axis=1, keepdims=True)
    true = average_diagonals(np.cov(scaled.T))[0]
    first = first_guess(readings)
    learned = learn_population(readings, steps=5).population
    again = guess_again(readings, replace(first, mean=learned.mean))
    rough = [1 - each[1] / each[0] for each in (true, again.covariance[0], first.covariance[0])]
    assert rough[0] < rough[1] < 0.7 * rough[2]


def test_a_second_guess_keeps_what_indicators_tell():
    """Weekly readings never show the week; an indicator that explains totals does."""
    rng = np.random.default_rng(5)
    cold = np.cumsum(rng.normal(0, 0.3, 210)) + rng.normal(0, 1.0, 210)
    size = rng.uniform(0.5, 1.5, (60, 1))
    values = 10 + size * cold + rng.normal(0, 0.1, (60, 210))
    truth = Panel.from_values(np.maximum(values, 0.1))
    readings = aggregate(truth, Periodic(7, offset=0))
    errors = [
        measure_recovery(truth, readings, recover(readings, "panel", indicators=each).values).paper
        for each in (None, cold)
    ]
    assert errors[1] < 0.3 * errors[0]


def test_the_start_tells_smooth_series_from_noise():
    rng = np.random.default_rng(3)
    smooth = np.cumsum(np.cumsum(rng.normal(0, 0.02, (60, 90)), axis=1), axis=1)
    smooth -= smooth.mean(axis=1, keepdims=True)
    found = []
    for deviations in (smooth / smooth.std() * 0.3, rng.normal(0, 0.3, (60, 90))):
        truth = Panel.from_values(np.maximum(2 + deviations, 0.01))
        covariance = first_guess(aggregate(truth, AtRandom(3))).covariance[0]
        found.append(covariance[1] / covariance[0])
    assert found[0] > 0.9
    assert found[1] < 0.5


def test_the_start_finds_a_rhythm_and_does_not_invent_one():
    rng = np.random.default_rng(4)
    rough = rng.normal(0, 0.1, (80, 140))
    weekly = np.tile(rng.normal(0, 0.3, (80, 7)), 20)
    for truth, every, least, most in (
        (2 + rough + weekly, 3, 0.6, 1.0),
        (2 + rough, 3, -0.1, 0.3),
        (2 + rough + weekly, 7, -0.1, 0.6),  # weekly totals never show the week
    ):
        readings = aggregate(Panel.from_values(np.maximum(truth, 0.01)), Periodic(every))
        covariance = first_guess(readings, season=7).covariance[0]
        after = (covariance[7] - covariance[3]) / (covariance[0] - covariance[3])
        assert least < after < most


def test_the_start_does_not_take_estimated_bills_for_a_rhythm():
    """What one bill has too much, the next has too little; a strong week could do that, too."""
    rng = np.random.default_rng(6)
    truth = Panel.from_values(2 + rng.normal(0, 0.1, (60, 360)))
    readings = aggregate(truth, Periodic(30, offset=0))
    wrong = rng.normal(0, 12, (60, 12)) * np.tile([1, 0, 0], 4)
    wrong -= np.roll(wrong, 1, axis=1)
    covariance = first_guess(
        readings.with_totals(np.maximum(readings.total + wrong.ravel(), 0.0)), season=7
    ).covariance[0]
    after = (covariance[7] - covariance[3]) / (covariance[0] - covariance[3])
    assert -0.3 < after < 0.3


@pytest.mark.parametrize("season", [2, 7, 24])
def test_rhythms_are_covariances_without_a_sum(season):
    rows = rhythms(300, season)
    for row in rows:
        assert row[0] == pytest.approx(1)
        assert np.linalg.eigvalsh(toeplitz(row))[0] > -1e-9
    for row in rows[-2:]:  # which hardly fade
        assert variances_of_sums(row)[season] < 0.05 * season**2


def test_a_few_wild_series_do_not_speak_for_all_in_the_start():
    rng = np.random.default_rng(5)
    calm = 1 + 0.2 * np.sin(np.arange(90) / 9 + rng.uniform(0, 6, (60, 1)))
    wild = rng.exponential(1, (6, 90)) ** 3
    shapes = []
    for values in (calm, np.concatenate([calm, wild])):
        covariance = first_guess(aggregate(Panel.from_values(values), AtRandom(3))).covariance[0]
        shapes.append(covariance[3] / covariance[0])
    assert shapes[1] > 0.8 * shapes[0]


def test_wild_series_count_for_less():
    rng = np.random.default_rng(4)
    values = 1 + 0.1 * rng.normal(0, 1, (50, 12))
    values[7] = 1 + 3 * rng.normal(0, 1, 12)
    population = Population(np.ones(12), 0.01 * np.eye(12))
    weights = weigh(values, population)
    assert weights[7] < 0.1
    assert 0.8 < np.median(weights) < 1.2


def test_the_error_of_estimated_readings_is_learned():
    rng = np.random.default_rng(5)
    truth = simulate_mixtures(120, 60, 4, seed=5)
    readings = aggregate(truth, Periodic(6))
    estimated = rng.random(readings.n_readings) < 0.3
    for wrong in (0.08, 0.5):
        noise = np.where(estimated, rng.normal(0, wrong, len(estimated)), 0)
        total = readings.total * np.exp(noise)
        soft = replace(readings, total=total, estimated=estimated)
        doubt = learn_population(soft).population.doubt
        assert 0.4 * wrong < doubt < 2.5 * wrong


def test_from_complete_readings_it_learns_what_there_is():
    rng = np.random.default_rng(2)
    truth = np.maximum(1 + rng.normal(0, 0.2, (400, 4)) @ rng.random((4, 12)), 0.01)
    readings = aggregate(Panel.from_values(truth), Periodic(1, offset=0))
    learned = learn_population(readings, shrinkage=0.0, steps=60)
    level = learned.population.levels(readings)
    scaled = truth / level[:, None]
    weights = weigh(scaled, learned.population)
    np.testing.assert_allclose(
        learned.population.mean, np.average(scaled, axis=0, weights=weights), atol=1e-4
    )
    np.testing.assert_allclose(
        learned.population.covariance, np.cov(scaled.T, aweights=weights, bias=True), atol=2e-3
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
        ({"season": 0}, "whole number of at least 1"),
    ):
        with pytest.raises(ParameterError, match=message):
            PanelModel(**settings)


def tails_missed(truth, readings):
    """The squared error of sums over what no reading covers, over its variance."""
    fit = PanelModel().fit(readings)
    values = np.empty(truth.values.shape)
    fit.fill(0, readings, values)
    last = readings.stop[readings.indptr[1:] - 1]
    places = np.arange(readings.n_series + 1)
    asked = Asked(places, last, np.full(readings.n_series, readings.n_periods))
    doubtful = Doubtful.learned_from(readings, fit.population)
    doubt = doubtful.ask(readings, fit.levels, asked)
    open_ = np.arange(readings.n_periods) >= last[:, None]
    missed = np.sum((values - truth.values) * open_, axis=1) / fit.levels
    long = open_.sum(axis=1) >= 20
    return float(np.mean(missed[long] ** 2 / (doubt.variance + doubt.shared)[long]))


def test_the_level_of_a_series_with_few_readings_is_not_taken_as_known(monkeypatch):
    rng = np.random.default_rng(0)
    moves = toeplitz(np.exp(-np.arange(120) / 40))
    values = np.exp(rng.multivariate_normal(np.zeros(120), 0.06 * moves, 80))
    truth = Panel.from_values(values * rng.uniform(1, 50, (80, 1)))
    readings = aggregate(truth, AtRandom(30))
    free = tails_missed(truth, readings)
    monkeypatch.setattr("unsum.population.learn.LEVEL", 0.0)
    monkeypatch.setattr("unsum.population.learn._kept", {})
    assert 0.6 < free < 3
    assert tails_missed(truth, readings) > 3 * free
