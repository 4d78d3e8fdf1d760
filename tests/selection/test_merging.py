"""Merge-and-split validation."""

import numpy as np
import pytest

from tests.problems import random_readings
from unsum.aggregation import Periodic, aggregate
from unsum.errors import ParameterError
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.selection import merge_neighbours


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_by_merging(seed):
    readings = random_readings(seed, n_series=15, coverage=0.8)
    merged = merge_neighbours(readings, seed=seed)
    coarser = merged.readings
    assert coarser.n_readings == readings.n_readings - len(merged.series)
    assert np.array_equal(coarser.covered(), readings.covered())
    sums = [np.bincount(r.series_of_readings(), r.total, minlength=15) for r in (readings, coarser)]
    np.testing.assert_allclose(*sums)
    fine = {
        (n, a, b): t
        for n, a, b, t in zip(
            readings.series_of_readings(), readings.start, readings.stop, readings.total,
            strict=True,
        )
    }  # fmt: skip
    for i, n in enumerate(merged.series):
        assert fine[n, merged.start[i], merged.middle[i]] == merged.first[i]
        assert fine[n, merged.middle[i], merged.stop[i]] == merged.second[i]


def test_the_truth_scores_zero_and_even_spreading_what_it_deserves():
    truth = np.array([[1.0, 3.0, 2.0, 2.0], [4.0, 4.0, 4.0, 4.0]])
    readings = aggregate(Panel.from_values(truth), Periodic(1, offset=0))
    merged = merge_neighbours(readings, share=1.0)
    assert merged.score(truth) == 0.0
    even = recover(merged.readings, "even").values
    level = truth.mean(axis=1, keepdims=True)
    held = np.zeros(truth.shape, bool)
    for n, a, b in zip(merged.series, merged.start, merged.stop, strict=True):
        held[n, a:b] = True
    expected = np.sqrt(
        np.sum(((even - truth) / level)[held] ** 2) / np.sum((truth / level)[held] ** 2)
    )
    assert merged.score(even) == pytest.approx(expected)


def test_without_neighbours_there_is_nothing_to_merge():
    readings = Readings.from_arrays([0, 0], [0, 5], [3, 8], [1.0, 2.0], n_series=1, n_periods=8)
    with pytest.raises(ParameterError, match="no two readings of a series touch"):
        merge_neighbours(readings)
