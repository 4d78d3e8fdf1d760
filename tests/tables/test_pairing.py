"""Credits netted with what they correct, and estimates with the reading that makes up for them."""

import numpy as np
import pandas as pd
import pytest

from tests.test_intervals import simulate
from unsum.aggregation import Periodic, aggregate
from unsum.errors import ParameterError, ReadingsError
from unsum.experiments.compare import measure_recovery
from unsum.readings import Readings
from unsum.recovering import recover


def frame(*rows, quality=None):
    table = pd.DataFrame(rows, columns=["series", "start", "end", "total"])
    return table if quality is None else table.assign(quality=list(quality))


def read(table, **options):
    return Readings.from_frame(table, freq="period", **options)


def listed(readings):
    return list(zip(readings.start.tolist(), readings.stop.tolist(), readings.total, strict=True))


def test_credits_are_set_aside_unless_told():
    readings = read(frame(("a", 0, 30, 100.0), ("a", 30, 60, -20.0)))
    assert listed(readings) == [(0, 30, 100.0)]
    assert readings.findings.codes == ("negative-total",)
    assert "negatives='net'" in readings.findings.items[0].sentence


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0, 30, 100.0), (30, 60, -20.0)], [(0, 60, 80.0)]),
        ([(0, 30, -20.0), (30, 60, 100.0)], [(0, 60, 80.0)]),
        ([(0, 30, 100.0), (0, 30, -100.0), (0, 30, 80.0)], [(0, 30, 80.0)]),
        ([(0, 30, 50.0), (30, 60, 60.0), (0, 60, -20.0)], [(0, 60, 90.0)]),
        ([(0, 30, 50.0), (30, 60, 10.0), (60, 90, -20.0)], [(0, 90, 40.0)]),
        (
            [(0, 30, 50.0), (30, 40, -5.0), (40, 50, -10.0), (50, 60, 9.0)],
            [(0, 50, 35.0), (50, 60, 9.0)],
        ),
    ],
)  # fmt: skip
def test_credits_are_added_to_what_they_correct(rows, expected):
    readings = read(frame(*(("a", *row) for row in rows)), negatives="net")
    assert listed(readings) == expected
    (finding,) = readings.findings.items
    assert finding.code == "netted"
    assert readings.findings.rows_used == len(rows)
    total = expected[0][2]
    assert finding.details[0].endswith(f"make {total:g}")


def test_credits_with_nothing_to_net_are_set_aside():
    table = frame(("a", 0, 30, 10.0), ("a", 30, 60, -20.0), ("b", 0, 10, -1.0), ("b", 20, 30, 4.0))
    readings = read(table, negatives="net")
    assert listed(readings) == [(0, 30, 10.0), (20, 30, 4.0)]
    assert readings.findings.set_aside_rows.tolist() == [1, 2]
    assert "nothing to net it with" in readings.findings.items[0].sentence


def test_an_actual_reading_makes_up_for_the_estimates_before_it():
    table = frame(
        ("a", 0, 30, 100.0), ("a", 30, 60, 90.0), ("a", 60, 90, 20.0), ("a", 90, 120, 70.0),
        ("a", 120, 150, 60.0), quality="aeeae",
    )  # fmt: skip
    plain = read(table)
    assert plain.estimated.tolist() == [False, True, True, False, True]
    readings = read(table, true_up=True)
    assert listed(readings) == [(0, 30, 100.0), (30, 120, 180.0), (120, 150, 60.0)]
    assert readings.estimated.tolist() == [False, False, True]
    assert readings.further.total.tolist() == [90.0, 20.0]
    assert readings.further.estimated.all()
    assert readings.findings.codes[-1] == "made-up"
    assert "90 (row 1), 20 (row 2), 70 (row 3) make 180" in readings.findings.items[-1].details[0]


def test_a_negative_correction_of_an_estimate_is_a_pair():
    table = frame(("a", 0, 30, 100.0), ("a", 30, 60, -20.0), quality="ea")
    readings = read(table, negatives="net")
    assert listed(readings) == [(0, 60, 80.0)]
    assert not readings.estimated.any()
    assert readings.further is None  # that much was not used in the whole


def test_repeated_rows_count_once_and_unclear_credits_are_no_readings():
    rows = [("a", 0, 30, 100.0), ("a", 0, 30, -20.0)]
    repeated = read(frame(*rows, *rows), negatives="net")
    assert listed(repeated) == [(0, 30, 80.0)]
    assert "merged-duplicates" in repeated.findings.codes
    thirds = read(
        frame(("a", 0, 30, 0.3), ("a", 0, 30, -0.1), ("a", 0, 30, -0.2), ("a", 30, 60, 110.0)),
        negatives="net",
    )
    assert listed(thirds) == [(0, 30, 0.0), (30, 60, 110.0)]
    with pytest.raises(ReadingsError, match="overlap"):
        read(frame(("a", 0, 30, 100.0), ("a", 0, 60, 220.0), ("a", 9, 19, -20.0)), negatives="net")
    with pytest.raises(ReadingsError, match="read more than once with different totals"):
        read(frame(("a", 0, 30, 100.0), ("a", 0, 30, 110.0), ("a", 0, 30, -20.0)), negatives="net")
    table = frame(("a", 0, 30, 50.0), ("a", 0, 30, 50.0), ("a", 30, 60, 40.0), quality="eea")
    assert listed(read(table, true_up=True)) == [(0, 60, 90.0)]


def estimated_bills(error, seed=0):
    """Bills every second of which was estimated, and made up for by the next."""
    truth = simulate(n_series=120, n_periods=96)
    readings = aggregate(truth, Periodic(8, offset=0))
    rng = np.random.default_rng(seed)
    total, place = (
        readings.total.copy(),
        np.arange(readings.n_readings) - np.repeat(readings.indptr[:-1], np.diff(readings.indptr)),
    )
    guess = np.flatnonzero((place % 2 == 0) & (place < 11))
    wrong = total[guess] * error * rng.standard_normal(len(guess))
    wrong = np.clip(wrong, -0.9 * total[guess], 0.9 * total[guess + 1])
    total[guess] += wrong
    total[guess + 1] -= wrong
    table = readings.to_frame("pandas").assign(total=total, quality="actual")
    table.loc[guess, "quality"] = "estimated"
    return truth, table


def test_the_error_of_estimates_is_learned_from_pairs():
    for error in (0.1, 0.4):
        _, table = estimated_bills(error)
        recovery = recover(read(table, true_up=True), "panel")
        assert recovery.fit.informed.doubt == pytest.approx(error, rel=0.35)
    known = recover(read(table, true_up=True), "panel", doubt=0.1)
    assert known.fit.informed.doubt == 0.1
    with pytest.raises(ParameterError, match="doubt must be positive"):
        recover(read(table), "panel", doubt=-1.0)


def test_estimates_help_as_far_as_they_can_be_trusted():
    truth, table = estimated_bills(0.1)
    pairs = read(table, true_up=True)
    with_guesses = recover(pairs, "panel").values
    without = recover(pairs.keep(np.ones(pairs.n_readings, bool)), "panel").values
    as_if_actual = recover(read(table.drop(columns="quality")), "panel").values
    errors = [
        measure_recovery(truth, pairs, values).normalised_covered
        for values in (with_guesses, without, as_if_actual)
    ]
    assert errors[0] < 0.97 * min(errors[1:])
