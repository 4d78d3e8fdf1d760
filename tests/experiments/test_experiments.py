"""The simulated town, and comparing methods against a known truth."""

import numpy as np

from unsum.aggregation import AtRandom, Periodic
from unsum.experiments.compare import compare, measure_recovery
from unsum.experiments.town import N_DAYS, simulate_town
from unsum.panel import Panel
from unsum.reading import check
from unsum.readings import Readings
from unsum.recovering import recover


def test_the_town_is_believable_and_reproducible():
    town = simulate_town(120, seed=1)
    assert town.truth.values.shape == (120, N_DAYS)
    assert town.truth.values.min() >= 0
    again = simulate_town(120, seed=1)
    assert np.array_equal(again.truth.values, town.truth.values)
    assert again.bills.equals(town.bills)
    weekdays = town.truth.values[:, :364].reshape(120, 52, 7).mean(axis=1)
    assert (weekdays.max(axis=1) > 1.5 * weekdays.min(axis=1)).sum() > 10


def test_the_bills_add_up_to_the_truth_and_have_a_few_mistakes():
    town = simulate_town(120, seed=2)
    findings = check(town.bills)
    assert {"missing-total", "start-not-before-end", "overlap", "negative-total"} <= set(
        findings.codes
    )
    assert findings.rows_set_aside <= 6
    readings = Readings.from_frame(town.bills, drop_bad=True)
    lengths = readings.stop - readings.start
    assert {1} | set(range(27, 36)) <= set(lengths.tolist())
    assert readings.estimated.any()


def test_comparing_rewards_smoothness_where_there_is_some():
    waves = 1.2 + np.sin(np.arange(300) / 40 + np.arange(8)[:, None])
    for scheme in (Periodic(30), AtRandom(30), Periodic(30, ends=True)):
        even, denton = compare(Panel.from_values(waves), scheme, ["even", "denton"], runs=2)
        assert (even.method, denton.method) == ("even", "denton")
        assert denton.errors.normalised_covered < 0.5 * even.errors.normalised_covered
        assert set(denton.to_dict()) > {"method", "paper", "normalised"}


def test_a_perfect_recovery_has_no_error():
    town = simulate_town(30, seed=4)
    results = compare(town.truth, Periodic(1, offset=0), ["even", "denton"])
    assert all(result.errors.paper < 1e-12 for result in results)


def test_series_are_matched_by_name_when_some_have_no_reading():
    town = simulate_town(30, seed=5)
    readings = Readings.from_frame(town.bills, drop_bad=True)[7:]
    values = recover(readings, "even").values
    errors = measure_recovery(town.truth, readings, values)
    assert 0 < errors.normalised < 0.6
