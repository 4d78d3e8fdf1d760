"""Merge-and-split validation."""

import numpy as np
import pytest

from tests.problems import random_readings
from unsum.aggregation import Periodic, aggregate
from unsum.errors import ParameterError
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.selection.merging import merge_neighbours, sample_readings


def rows(readings):
    """Readings as tuples, by series, start and stop."""
    series = readings.series_of_readings().tolist()
    return {
        (n, a, b): t
        for n, a, b, t in zip(
            series, readings.start.tolist(), readings.stop.tolist(), readings.total.tolist(),
            strict=True,
        )
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_lost_by_merging(seed):
    readings = random_readings(seed, n_series=15, coverage=0.8)
    merged = merge_neighbours(readings, seed=seed)
    before, after = rows(readings), rows(merged.readings)
    hidden, left_out = rows(merged.hidden), rows(merged.left_out)
    untouched = set(before) & set(after)
    assert set(before) == untouched | set(hidden) | set(left_out)
    assert len(before) == len(untouched) + len(hidden) + len(left_out)
    for key in untouched:
        assert after[key] == before[key]
    for n, a, b in set(after) - untouched:
        inside = [t for (m, c, d), t in hidden.items() if m == n and a <= c and d <= b]
        length = sum(d - c for m, c, d in hidden if m == n and a <= c and d <= b)
        assert len(inside) >= 2
        assert length == b - a
        assert after[n, a, b] == pytest.approx(sum(inside), rel=1e-12)
    for n, a, b in left_out:
        assert not merged.readings.covered()[n, a:b].any()


def test_the_truth_scores_zero_and_even_spreading_what_it_deserves():
    truth = np.array([[1.0, 3.0, 2.0, 2.0], [4.0, 4.0, 4.0, 4.0]])
    readings = aggregate(Panel.from_values(truth), Periodic(1, offset=0))
    merged = merge_neighbours(readings, share=1.0)
    assert merged.score(truth) == pytest.approx(0.0, abs=1e-15)
    even = recover(merged.readings, "even").values
    level = truth.mean(axis=1, keepdims=True)
    held = merged.hidden.covered()
    expected = np.mean(np.abs(even - truth)[held] / level.repeat(4, axis=1)[held])
    expected /= np.mean(truth[held] / level.repeat(4, axis=1)[held])
    assert merged.score(even) == pytest.approx(expected)


def test_fine_series_among_coarse_ones_imitate_them():
    """Hours among days: what is hidden are hours of a whole day, in half of the fine series."""
    rng = np.random.default_rng(1)
    truth = Panel.from_values(rng.random((60, 96)))
    fine = aggregate(truth, Periodic(1, offset=0))
    coarse = aggregate(truth, Periodic(24, offset=0))
    some = np.arange(60) % 3 == 0
    parts = [(fine if some[n] else coarse)[n : n + 1] for n in range(60)]
    readings = Readings.from_arrays(
        np.repeat(np.arange(60), [len(part) for part in parts]),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in
          ("start", "stop", "total")),
        n_series=60, n_periods=96,
    )  # fmt: skip
    merged = merge_neighbours(readings)
    imitating = np.unique(merged.hidden.series_of_readings())
    assert 4 <= len(imitating) < 20
    assert some[imitating].all()
    assert (merged.hidden.stop - merged.hidden.start == 1).all()
    counts = np.diff(merged.readings.indptr)
    assert (counts[imitating] == 4).all()
    assert len(sample_readings(readings, 0)) == 60


def test_without_neighbours_there_is_nothing_to_merge():
    readings = Readings.from_arrays([0, 0], [0, 5], [3, 8], [1.0, 2.0], n_series=1, n_periods=8)
    with pytest.raises(ParameterError, match="no two readings of a series touch"):
        merge_neighbours(readings)
