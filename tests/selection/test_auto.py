"""`auto`: what it chooses, why, and what error it expects."""

import numpy as np
import pyarrow as pa
import pytest

from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.calendar import DAY, Calendar
from unsum.draws import name_keys, sample_series, uniform
from unsum.errors import ParameterError
from unsum.experiments.compare import measure_recovery
from unsum.experiments.synthetic import simulate_mixtures
from unsum.methods.auto import TRIAL_STEPS, Auto
from unsum.methods.denton import Denton
from unsum.methods.even import Even
from unsum.methods.panel import PanelModel
from unsum.panel import Panel
from unsum.population.learn import STEPS
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.saving import load
from unsum.selection.choosing import score_candidates
from unsum.selection.merging import sample_readings

METHODS = [("even", Even()), ("denton", Denton()), ("panel", PanelModel(steps=10))]


@pytest.fixture(scope="module")
def panel():
    """Series with a season in common and a rhythm of their own."""
    return simulate_mixtures(90, 70, 5, smoothness=1.5, length_scale=8, seed=6)


def test_auto_takes_what_splits_best_and_says_so(panel):
    readings = aggregate(panel, AtRandom(5))
    recovery = recover(readings)
    assert recovery.method == "panel"
    assert "it split merged readings" in recovery.why
    labels = [row["candidate"] for row in recovery.candidates]
    assert {"even", "denton"} < set(labels)
    scores = [row["score"] for row in recovery.candidates]
    assert scores == sorted(scores)
    assert recovery.provenance()["candidates"] == recovery.candidates
    (chosen,) = [row["candidate"] for row in recovery.candidates if row["chosen"]]
    again = recover(readings, "panel", shrinkage=shrinkage_of(chosen))
    assert np.array_equal(recovery.values, again.values)


def shrinkage_of(label):
    return float(label.split()[-1].rstrip(")"))


@pytest.mark.parametrize("every", [3, 5, 9])
def test_of_panels_that_split_about_equally_well_the_most_shrunk_is_taken(panel, every):
    readings = aggregate(panel, AtRandom(every))
    recovery = recover(readings)
    methods = [
        (row["candidate"], PanelModel(shrinkage=shrinkage_of(row["candidate"]), steps=10))
        for row in recovery.candidates
        if row["candidate"].startswith("panel")
    ]
    found = {each.label: each for each in score_candidates(readings, methods)}
    best = found[recovery.candidates[0]["candidate"]]
    close = []
    for label, each in found.items():
        gap, variance = 0.0, 0.0
        for own, other in zip(each.trials, best.trials, strict=True):
            by_series = {}
            for n, a, b in zip(
                own.merged.hidden.series_of_readings(), own.merged.errors(own.values),
                other.merged.errors(other.values), strict=True,
            ):  # fmt: skip
                by_series[n] = by_series.get(n, 0.0) + a**2 - b**2
            gaps = np.array(list(by_series.values()))
            gap += gaps.sum()
            variance += len(gaps) * gaps.var()
        if gap / 2 <= np.sqrt(variance / 2):
            close.append(shrinkage_of(label))
    (chosen,) = [row["candidate"] for row in recovery.candidates if row["chosen"]]
    assert shrinkage_of(chosen) == max(close)


def test_where_series_have_nothing_in_common_it_does_not_lose():
    rng = np.random.default_rng(7)
    truth = Panel.from_values(rng.gamma(2.0, 1.0, (60, 48)))
    readings = aggregate(truth, Periodic(6))
    found = measure_recovery(truth, readings, recover(readings).values).normalised_covered
    even = measure_recovery(truth, readings, recover(readings, "even").values).normalised_covered
    assert found < 1.02 * even


@pytest.mark.parametrize("scheme", [AtRandom(4), AtRandom(12), Periodic(12)])
def test_the_expected_error_is_about_right(scheme):
    rng = np.random.default_rng(8)
    common = np.cumsum(rng.normal(0, 0.1, (3, 96)), axis=1)
    own = np.zeros((120, 96))
    for t in range(1, 96):
        own[:, t] = 0.7 * own[:, t - 1] + rng.normal(0, 0.1, 120)
    truth = Panel.from_values(np.exp(rng.normal(0, 0.5, (120, 3)) @ common + own))
    readings = aggregate(truth, scheme)
    recovery = recover(readings)
    error = measure_recovery(truth, readings, recovery.values).normalised_covered
    assert 0.75 < recovery.expected_error / error < 1.35


def test_few_series_learn_in_fewer_steps():
    errors = {}
    for count in (12, 150):
        rng = np.random.default_rng(0)
        common = np.cumsum(rng.normal(0, 0.05, (4, 140)), axis=1)
        own = np.zeros((count, 140))
        for t in range(1, 140):
            own[:, t] = 0.8 * own[:, t - 1] + rng.normal(0, 0.06, count)
        truth = Panel.from_values(np.exp(rng.normal(0.5, 0.7, (count, 4)) @ common + own))
        readings = aggregate(truth, AtRandom(14))
        recovery = recover(readings)
        (chosen,) = [row["candidate"] for row in recovery.candidates if row["chosen"]]
        for steps in (TRIAL_STEPS, STEPS):
            values = recover(readings, "panel", shrinkage=shrinkage_of(chosen), steps=steps).values
            errors[steps] = measure_recovery(truth, readings, values).normalised_covered
        best = min(errors, key=errors.__getitem__)
        assert best == (TRIAL_STEPS if count == 12 else STEPS)
        assert recovery.stop_reason.endswith(f"{count} series in {best} steps")


def test_scores_rank_candidates_as_the_truth_does(panel):
    for scheme in (AtRandom(4), Periodic(4), AtRandom(12)):
        readings = aggregate(panel, scheme)
        candidates = score_candidates(readings, METHODS)
        errors = [
            measure_recovery(
                panel, readings, recover(readings, each.method).values
            ).normalised_covered
            for each in candidates
        ]
        assert errors[0] == min(errors)
        assert all(each.standard_error < each.score for each in candidates)


def test_a_large_panel_is_judged_by_a_sample(panel, monkeypatch):
    readings = aggregate(panel, AtRandom(5))
    monkeypatch.setattr("unsum.selection.merging.ENOUGH", 300)
    monkeypatch.setattr("unsum.selection.merging.MAX_WORK", 1)
    monkeypatch.setattr("unsum.methods.auto.MAX_VALUES", 20 * readings.n_periods)
    recovery = recover(readings)
    assert recovery.method == "panel"
    assert recovery.expected_error > 0


def test_a_large_panel_on_a_short_grid_is_judged_by_a_sample_too():
    count = 20_000
    readings = Readings.from_arrays(
        np.repeat(np.arange(count), 4), np.tile([0, 3, 6, 9], count),
        np.tile([3, 6, 9, 12], count), np.ones(4 * count), n_series=count, n_periods=12,
    )  # fmt: skip
    assert 10_000 < len(sample_readings(readings, 0)) <= 12_500


def test_finely_read_series_are_not_lost_among_many_others(monkeypatch):
    fine = np.arange(0, 3000, 100)
    counts = np.where(np.isin(np.arange(3000), fine), 48, 4)
    series = np.repeat(np.arange(3000), counts)
    length = np.where(counts == 48, 1, 12)[series]
    place = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)
    readings = Readings.from_arrays(
        series, place * length, (place + 1) * length, np.ones(len(series)), n_series=3000,
        n_periods=48,
    )  # fmt: skip
    monkeypatch.setattr("unsum.selection.merging.MAX_READINGS", 8000)
    places = sample_readings(readings, 0)
    assert set(fine) <= set(places)
    assert 1900 < len(places) < 2100
    monkeypatch.setattr("unsum.methods.panel.MAX_VALUES", 20 * 48)
    learned = PanelModel(steps=1).fit(readings)
    assert np.count_nonzero(learned.sample.complete()) == 10
    assert learned.sample.n_series == 20


def test_long_grids_are_judged_by_not_too_many_values():
    readings = Readings.from_arrays(
        np.repeat(np.arange(3000), 2), np.tile([0, 5000], 3000), np.tile([5000, 10_000], 3000),
        np.ones(6000), n_series=3000, n_periods=10_000,
    )  # fmt: skip
    assert len(sample_readings(readings, 0)) == 800


def test_without_neighbours_auto_says_that_it_cannot_compare():
    readings = Readings.from_arrays(
        [0, 0, 1], [0, 5, 2], [3, 8, 4], [1.0, 2.0, 3.0], n_series=2, n_periods=8
    )
    recovery = recover(readings)
    assert recovery.method == "denton"
    assert "methods cannot be compared: no two readings" in recovery.why
    assert recovery.expected_error is None
    assert recovery.candidates == []


def test_on_long_grids_the_panel_model_comes_in_stages():
    names = [name for name, _ in Auto()._methods(2500)]
    assert names == ["even", "denton", "panel (shrinkage 0.5)"]
    assert len(Auto()._methods(10**6)) == 2


def test_settings_are_checked():
    with pytest.raises(ParameterError, match="folds must be a whole number of at least 1"):
        Auto(folds=0)


def test_the_rank_is_chosen_on_merged_readings():
    """Three profiles make all series; two cannot, and twelve need not."""
    rng = np.random.default_rng(3)
    profiles = np.abs(np.cumsum(rng.normal(0, 1, (3, 60)), axis=1)) + 0.1
    truth = Panel.from_values(rng.gamma(1.0, 1.0, (150, 3)) @ profiles)
    readings = aggregate(truth, AtRandom(4))
    ranks = [1, 2, 3, 12]
    recovery = recover(readings, candidates=["denton", *(f"nmf:{rank}" for rank in ranks)])
    (chosen,) = [row["candidate"] for row in recovery.candidates if row["chosen"]]
    assert (recovery.method, chosen) == ("nmf", "nmf (rank 3)")
    assert np.array_equal(recovery.values, recover(readings, "nmf", rank=3).values)
    errors = {
        f"nmf (rank {rank})": measure_recovery(
            truth, readings, recover(readings, "nmf", rank=rank).values
        ).normalised_covered
        for rank in ranks
    }
    scores = {row["candidate"]: row["score"] for row in recovery.candidates}
    assert sorted(errors, key=errors.get) == sorted(errors, key=scores.get)
    assert recovery.expected_error is None
    assert all(row["standard_error"] > 0 for row in recovery.candidates)


def test_given_panel_models_know_what_auto_was_told_and_keep_their_steps(panel):
    readings = aggregate(panel, AtRandom(5))
    wave = np.sin(np.arange(readings.n_periods))
    given = ["even", PanelModel(shrinkage=0.3, steps=4)]
    recovery = recover(readings, candidates=given, indicators=wave, interval=0.9)
    again = recover(readings, "panel", shrinkage=0.3, steps=4, indicators=wave)
    assert recovery.candidates[0]["candidate"] == "panel (shrinkage 0.3, steps 4)"
    assert np.array_equal(recovery.values, again.values)
    assert recovery.expected_error > 0
    assert recovery.settings["candidates"] == ["even", "panel (shrinkage 0.3, steps 4)"]


def test_given_candidates_survive_saving_and_learning_again(panel, tmp_path):
    readings = aggregate(panel, AtRandom(5))
    recovery = recover(readings, candidates=["even", "nmf:2"])
    recovery.save(tmp_path / "town.unsum")
    known = load(tmp_path / "town.unsum")
    assert known.candidates == recovery.candidates
    assert known.settings == recovery.settings
    again = recover(readings, known.settings["name"], candidates=known.settings["candidates"])
    assert np.array_equal(again.values, recovery.values)


def test_where_given_candidates_cannot_be_compared_the_first_is_taken():
    readings = Readings.from_arrays(
        [0, 0, 1], [0, 5, 2], [3, 8, 4], [1.0, 2.0, 3.0], n_series=2, n_periods=8
    )
    recovery = recover(readings, candidates=["even", "denton"])
    assert recovery.method == "even"
    assert recovery.why.endswith("Then auto takes even")


@pytest.mark.parametrize(
    ("candidates", "sentence"),
    [
        ("denton", "candidates must be a list such as"),
        ([], "candidates must be a list such as"),
        (["auto"], "candidates must differ, also from auto; got 'auto'"),
        (["nmf:5", " nmf:5"], r"candidates must differ, also from auto; got 'nmf \(rank 5\)'"),
        (["nmf:x"], "the rank of nmf must be a number; got 'nmf:x'"),
        (["even:3"], "what may stand behind a colon is nmf:RANK"),
        (["mean"], "method must be one of"),
        ([3], "method must be a name or a method object; got 3"),
        (["panel:2"], "shrinkage must lie between 0 and 1; got 2"),
    ],
)
def test_bad_candidates_get_a_sentence(candidates, sentence):
    with pytest.raises(ParameterError, match=sentence):
        Auto(candidates=candidates)


def test_draws_belong_to_names():
    names = pa.array(["a", "b", "c", "d"])
    keys = name_keys(names, 3)
    shuffled = name_keys(names.take(pa.array([2, 0, 3, 1])), 3)
    assert np.array_equal(keys[[2, 0, 3, 1]], shuffled)
    assert not np.array_equal(keys, name_keys(names, 4))
    draws = uniform(np.repeat(name_keys(pa.array(range(100)), 0), 100), np.tile(range(100), 100))
    assert 0 <= draws.min() < 0.01
    assert 0.99 < draws.max() < 1
    assert abs(draws.mean() - 0.5) < 0.01
    chosen = sample_series(names, 2, 5)
    assert len(chosen) == 2
    assert set(names.take(pa.array(chosen)).to_pylist()) == {
        names[int(i)].as_py() for i in sample_series(names, 2, 5)
    }


@pytest.mark.parametrize("n_periods", [2, 3, 5, 8])
def test_a_few_days_are_enough_to_try(n_periods):
    """Weekdays explain all of a grid that is shorter than a week."""
    rng = np.random.default_rng(n_periods)
    calendar = Calendar.covering("D", None, 0, DAY * n_periods)
    truth = Panel.from_values(1 + rng.random((6, n_periods)), calendar=calendar)
    recovery = recover(aggregate(truth, Periodic(1, offset=0)), interval=0.9)
    np.testing.assert_allclose(recovery.values, truth.values)
