"""Overlapping readings: what follows from them, and which of them contradict each other."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

from unsum.tables.untangle import Conflict, Untangled, untangle


def untangle_rows(*rows):
    """Untangle readings written as (start, stop, total), sorted by start."""
    start, stop, total = zip(*rows, strict=True)
    return untangle(np.array(start, np.int32), np.array(stop, np.int32), np.array(total, float))


def disjoint(result):
    assert isinstance(result, Untangled)
    return list(
        zip(result.start.tolist(), result.stop.tolist(), result.total.tolist(), strict=True)
    )


def interleaving(result):
    return list(zip(*(column.tolist() for column in result.rest), strict=True))


def assert_conflict(result, readings, first, last, amount):
    assert isinstance(result, Conflict)
    assert result.readings.tolist() == readings
    assert (result.first, result.last) == (first, last)
    assert result.amount == pytest.approx(amount, rel=1e-12)


def assert_implied(rows, result, tolerance=1e-9):
    """Every reading is a union of derived ones, and their sum within 1e-9 of itself."""
    after = {start: (stop, total) for start, stop, total in disjoint(result) + interleaving(result)}
    for start, stop, total in rows:
        reach, totals = start, []
        while reach < stop:
            reach, part = after[reach]
            totals.append(part)
        assert reach == stop
        assert abs(sum(totals) - total) <= tolerance * total


def assert_well_formed(result):
    assert (result.start[1:] >= result.stop[:-1]).all()
    for columns in ((result.start, result.stop, result.total), result.rest):
        assert [column.dtype for column in columns] == [np.int32, np.int32, np.float64]
        assert (columns[0] < columns[1]).all()
        assert (columns[2] >= 0).all()


def some_series_meets(rows, n_periods):
    """Whether a nonnegative series has these totals, asked of a solver of linear programs."""
    if not rows:
        return True
    periods = np.arange(n_periods)
    within = np.array([(start <= periods) & (periods < stop) for start, stop, _ in rows], float)
    answer = linprog(
        np.zeros(n_periods), A_eq=within, b_eq=[total for _, _, total in rows], method="highs"
    )
    assert answer.status in (0, 2)
    return answer.status == 0


def random_intervals(rng, n_readings, n_periods):
    """Intervals at random, sorted by start; a few cuts are shared by many of them."""
    cuts = rng.choice(n_periods + 1, min(n_periods + 1, int(rng.integers(3, 12))), replace=False)
    pairs = [sorted(rng.choice(cuts, 2, replace=False).tolist()) for _ in range(n_readings)]
    return sorted(pairs, key=lambda pair: pair[0])


def test_a_bill_within_a_longer_one_leaves_the_rest_of_it():
    result = untangle_rows((0, 2, 100.0), (1, 2, 40.0))
    assert disjoint(result) == [(0, 1, 60.0), (1, 2, 40.0)]
    assert interleaving(result) == []
    assert_well_formed(result)


def test_bills_nested_three_levels_deep_give_their_differences():
    result = untangle_rows((0, 12, 120.0), (0, 3, 50.0), (1, 3, 30.0))
    assert disjoint(result) == [(0, 1, 20.0), (1, 3, 30.0), (3, 12, 70.0)]


def test_a_chain_of_corrections_is_followed_through_all_its_links():
    result = untangle_rows((0, 4, 40.0), (2, 4, 25.0), (2, 6, 45.0), (5, 6, 5.0), (5, 8, 35.0))
    assert disjoint(result) == [
        (0, 2, 15.0), (2, 4, 25.0), (4, 5, 15.0), (5, 6, 5.0), (6, 8, 30.0),
    ]  # fmt: skip


def test_bills_that_interleave_keep_one_and_put_the_other_in_the_rest():
    result = untangle_rows((0, 2, 100.0), (1, 3, 90.0))
    assert disjoint(result) == [(0, 2, 100.0)]
    assert interleaving(result) == [(1, 3, 90.0)]
    assert_well_formed(result)


def test_a_bill_strictly_inside_another_is_in_the_rest():
    result = untangle_rows((0, 10, 100.0), (3, 4, 5.0))
    assert disjoint(result) == [(0, 10, 100.0)]
    assert interleaving(result) == [(3, 4, 5.0)]


def test_equal_cover_prefers_more_readings():
    result = untangle_rows((0, 4, 4.0), (1, 3, 2.0), (3, 5, 2.0))
    assert disjoint(result) == [(1, 3, 2.0), (3, 5, 2.0)]
    assert interleaving(result) == [(0, 4, 4.0)]


def test_duplicates_merge():
    result = untangle_rows((0, 3, 0.3), (0, 3, 0.3), (3, 5, 1.0), (3, 5, 1.0), (3, 5, 1.0))
    assert disjoint(result) == [(0, 3, 0.3), (3, 5, 1.0)]


def test_readings_that_touch_do_not_overlap():
    assert disjoint(untangle_rows((0, 2, 0.1), (2, 3, 0.2))) == [(0, 2, 0.1), (2, 3, 0.2)]


def test_a_single_reading_stays():
    assert disjoint(untangle_rows((4, 9, 0.7))) == [(4, 9, 0.7)]


def test_zeros_only():
    result = untangle_rows((0, 5, 0.0), (1, 3, 0.0), (1, 5, 0.0))
    assert disjoint(result) == [(0, 1, 0.0), (1, 3, 0.0), (3, 5, 0.0)]


def test_the_same_interval_with_different_totals_is_a_conflict():
    result = untangle_rows((0, 1, 7.0), (2, 5, 10.0), (2, 5, 10.0), (2, 5, 12.5), (5, 6, 1.0))
    assert isinstance(result, Conflict)
    assert len(result.readings) == 2
    assert 3 in result.readings
    assert_conflict(result, result.readings.tolist(), 2, 5, 2.5)
    assert_conflict(untangle_rows((2, 5, 12.5), (2, 5, 10.0)), [0, 1], 2, 5, 2.5)


def test_a_long_bill_smaller_than_a_short_one_inside_it_is_a_conflict():
    assert_conflict(untangle_rows((0, 12, 10.0), (3, 4, 25.0)), [0, 1], 0, 12, 15.0)


def test_parts_that_exceed_a_bill_only_together_are_a_conflict_of_all():
    result = untangle_rows((0, 6, 10.0), (0, 2, 4.0), (2, 4, 4.0), (5, 6, 3.0))
    assert_conflict(result, [0, 1, 2, 3], 0, 6, 1.0)


def test_bills_that_interleave_conflict_when_the_running_sum_would_fall():
    assert_conflict(untangle_rows((0, 2, 5.0), (1, 3, 6.0), (2, 4, 0.0)), [0, 1, 2], 0, 4, 1.0)


def test_a_conflict_leaves_out_readings_it_does_not_need():
    result = untangle_rows((0, 9, 50.0), (1, 4, 9.0), (2, 3, 10.0), (4, 9, 30.0), (5, 9, 20.0))
    assert_conflict(result, [1, 2], 1, 4, 1.0)


def test_the_rounding_of_decimals_is_no_conflict():
    rows = [(0, 3, 0.3), (0, 2, 0.1 + 0.2), (1, 2, 0.2), (2, 3, 0.0)]
    result = untangle_rows(*rows)
    assert result.total.tolist() == pytest.approx([0.1, 0.2, 0.0], rel=1e-14)
    assert_implied(rows, result, 1e-14)


@pytest.mark.parametrize(("miss", "agree"), [(5e-10, True), (5e-9, False)])
def test_readings_agree_when_each_is_within_half_a_billionth_of_itself(miss, agree):
    rows = [(0, 2, 3.0), (0, 1, 1.0), (1, 2, 2.0 + 3 * miss)]
    result = untangle_rows(*rows)
    assert isinstance(result, Untangled) == agree
    if agree:
        assert disjoint(result) == [(0, 1, 1.0), (1, 2, 2.0 + 3 * miss)]
        assert_implied(rows, result)


def test_small_readings_stay_exact_beside_large_ones_that_agree_only_roughly():
    rows = [(0, 5, 1e12), (0, 6, 1e12 - 1), (4, 6, 3.0)]
    result = untangle_rows(*rows)
    assert_implied(rows, result)
    assert_well_formed(result)


def test_a_small_conflict_beside_a_large_reading_is_found():
    assert_conflict(untangle_rows((0, 9, 1e12), (0, 1, 1.0), (0, 1, 2.0)), [1, 2], 0, 1, 1.0)


@pytest.mark.parametrize("scale", [1e-300, 1e300, 5e-324, 1.7976931348623157e308 / 128])
def test_the_scale_of_totals_does_not_matter(scale):
    result = untangle_rows((0, 2, 100 * scale), (1, 2, 40 * scale))
    assert result.total.tolist() == pytest.approx([60 * scale, 40 * scale], rel=1e-14, abs=0)
    conflict = untangle_rows((0, 12, 10 * scale), (3, 4, 25 * scale))
    assert conflict.amount == pytest.approx(15 * scale, rel=1e-14, abs=0)


def test_the_largest_float_does_not_overflow():
    most = np.finfo(float).max
    assert_conflict(untangle_rows((0, 9, 0.0), (1, 2, most), (3, 4, most)), [0, 1], 0, 9, most)
    close = [(0, 3, most), (0, 2, most * (1 - 1e-10)), (1, 3, most), (1, 2, most)]
    assert_implied(close, untangle_rows(*close))


def test_tiny_and_huge_totals_stand_side_by_side():
    rows = [(0, 3, 1e300), (0, 1, 1e-300), (1, 2, 1e-300)]
    assert disjoint(untangle_rows(*rows)) == [(0, 1, 1e-300), (1, 2, 1e-300), (2, 3, 1e300)]


def test_readings_without_overlap_come_back_bit_for_bit_beside_one_overlap():
    rng = np.random.default_rng(0)
    stop = np.cumsum(rng.integers(1, 5, 20_000)).astype(np.int32)
    start = np.append(np.int32(0), stop[:-1])
    total = rng.gamma(0.5, 1.0, 20_000) * 10.0 ** rng.integers(-20, 20, 20_000)
    wide = int(np.flatnonzero(stop - start > 1)[5_000])
    half = total[wide] / 2
    result = untangle(
        np.insert(start, wide + 1, start[wide] + 1),
        np.insert(stop, wide + 1, stop[wide]),
        np.insert(total, wide + 1, half),
    )
    assert isinstance(result, Untangled)
    others = np.delete(np.arange(20_001), [wide, wide + 1])
    kept = np.delete(np.arange(20_000), wide)
    assert result.start[others].tobytes() == start[kept].tobytes()
    assert result.stop[others].tobytes() == stop[kept].tobytes()
    assert result.total[others].tobytes() == total[kept].tobytes()
    assert result.total[[wide, wide + 1]].tolist() == [half, half]


@pytest.mark.parametrize("seed", range(60))
def test_readings_of_one_series_never_conflict_and_give_its_own_sums(seed):
    rng = np.random.default_rng(seed)
    n_periods = int(rng.integers(5, 60))
    values = rng.gamma(0.5, 1.0, n_periods) * 10.0 ** rng.uniform(-3, 3, n_periods)
    values[rng.random(n_periods) < 0.4] = 0.0
    intervals = random_intervals(rng, int(rng.integers(2, 25)), n_periods)
    rows = [(start, stop, float(values[start:stop].sum())) for start, stop in intervals]
    result = untangle_rows(*rows)
    largest = max(total for _, _, total in rows)
    for start, stop, total in disjoint(result) + interleaving(result):
        assert abs(total - values[start:stop].sum()) <= 1e-12 * largest
        if (start, stop) in {row[:2] for row in rows}:
            assert (start, stop, total) in rows
    assert_implied(rows, result)
    assert_well_formed(result)


def test_a_cluster_of_five_hundred_readings():
    rng = np.random.default_rng(1)
    values = rng.gamma(0.5, 1.0, 400)
    start = np.sort(rng.integers(0, 399, 500))
    stop = np.minimum(start + rng.integers(1, 60, 500), 400)
    rows = [
        (a, b, float(values[a:b].sum()))
        for a, b in zip(start.tolist(), stop.tolist(), strict=True)
    ]  # fmt: skip
    assert_implied(rows, untangle_rows(*rows))
    low, high, total = rows[250]
    rows[250] = (low, high, total + 100.0)
    result = untangle_rows(*rows)
    assert isinstance(result, Conflict)
    assert 250 in result.readings


@pytest.mark.parametrize("seed", range(25))
def test_verdicts_are_those_of_a_linear_program_and_no_conflict_can_be_reduced(seed):
    rng = np.random.default_rng(seed)
    verdicts = set()
    for _ in range(12):
        n_periods = int(rng.integers(3, 9))
        values = rng.integers(0, 4, n_periods)
        rows = [
            (start, stop, max(0, int(values[start:stop].sum() + rng.choice([0, 0, 0, -2, 2]))))
            for start, stop in random_intervals(rng, int(rng.integers(2, 9)), n_periods)
        ]
        result = untangle_rows(*rows)
        assert isinstance(result, Untangled) == some_series_meets(rows, n_periods)
        verdicts.add(type(result))
        if isinstance(result, Conflict):
            involved = [rows[place] for place in result.readings]
            assert not some_series_meets(involved, n_periods)
            for each in range(len(involved)):
                assert some_series_meets(involved[:each] + involved[each + 1 :], n_periods)
            assert result.amount >= 1
            assert result.first == min(start for start, _, _ in involved)
            assert result.last == max(stop for _, stop, _ in involved)
        else:
            assert_implied(rows, result, 0.0)
            assert some_series_meets(disjoint(result) + interleaving(result), n_periods)
    assert verdicts == {Conflict, Untangled}


@pytest.mark.parametrize("seed", range(40))
def test_disjoint_readings_cover_the_most_periods_then_are_the_most_then_the_earliest(seed):
    rng = np.random.default_rng(seed)
    values = rng.random(20)
    rows = [
        (start, stop, float(values[start:stop].sum()))
        for start, stop in random_intervals(rng, 5, 20)
    ]
    result = untangle_rows(*rows)
    derived = sorted(disjoint(result) + interleaving(result))
    choices = [
        choice
        for size in range(len(derived) + 1)
        for choice in combinations(derived, size)
        if all(one[1] <= other[0] for one, other in pairwise(choice))
    ]
    best = min(
        choices,
        key=lambda choice: (
            -sum(stop - start for start, stop, _ in choice),
            -len(choice),
            [start for start, _, _ in choice],
        ),
    )
    assert disjoint(result) == list(best)
