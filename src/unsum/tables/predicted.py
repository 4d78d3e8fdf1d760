"""Series without any reading, predicted from their traits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unsum.errors import ParameterError
from unsum.recovery import Recovery
from unsum.traits import Traits

RIDGE = 1.0  # of a series, in regressions on traits


def predict_series(recovery: Recovery) -> pa.Table:
    """The long table of the series that have traits but no reading; none of it is covered.

    The shape is that of the population, with the response to traits where it has one; the level
    follows from a regression of the logarithms of known levels on traits.
    """
    traits, doubtful = recovery.traits, recovery.doubtful
    if traits is None or doubtful is None:
        raise ParameterError(
            "series without readings are predicted from traits, by the methods 'auto' and 'panel'; "
            "recover with traits."
        )
    readings = recovery.readings
    names = traits.others(readings.names)
    level, variance = _predict_levels(recovery, doubtful.levels(readings), traits.rows(names))
    expected = doubtful.expect(names)
    values = level[:, None] * expected.values
    columns = {"value": values, "covered": np.zeros(values.shape, np.bool_)}
    if recovery.interval is not None and recovery.uncertainty is not None:
        found = recovery.uncertainty.calibration
        shared = _leverage(recovery, traits, traits.rows(names)) * expected.shared
        own = found.ratio * expected.variance + found.shared * shared
        deviation = level[:, None] * np.sqrt(own + variance * expected.values**2)
        reach = found.reach_outside(recovery.interval) * deviation
        columns |= {"lower": np.maximum(values - reach, 0.0), "upper": values + reach}
    count = pa.array(np.repeat(np.arange(len(names)), readings.n_periods))
    periods = pa.array(np.tile(np.arange(readings.n_periods), len(names)))
    return pa.table(
        {
            "series": names.take(count),
            "time": readings.calendar.labels().take(periods),
            **{name: pa.array(column.ravel()) for name, column in columns.items()},
        }
    )


def _leverage(recovery: Recovery, traits: Traits, rows: np.ndarray) -> np.ndarray:
    """How much less is known about the mean of series with given traits than about that of all.

    What traits do is learned from the same series as the mean is, and known the less the further
    away they are from what is usual.
    """
    centre, inner = _spread_of(traits.rows(recovery.readings.names))
    away = rows - centre
    unusual = np.sum(away * np.linalg.solve(inner, away.T).T, axis=1)
    return np.asarray(1.0 + recovery.readings.n_series * unusual[:, None])


def _spread_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middle of traits, and their products around it, with a ridge."""
    centre = rows.mean(axis=0)
    return centre, (rows - centre).T @ (rows - centre) + RIDGE * np.eye(rows.shape[1])


def _predict_levels(
    recovery: Recovery, levels: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, float]:
    """Levels of series with given traits, and the relative variance of such a prediction."""
    known = np.flatnonzero(levels > 0)
    if not len(known) or recovery.traits is None:
        return np.zeros(len(rows)), 0.0
    own = recovery.traits.rows(recovery.readings.names.take(pa.array(known)))
    target, middle = np.log(levels[known]), float(np.log(levels[known]).mean())
    centre, inner = _spread_of(own)
    effects = np.linalg.solve(inner, (own - centre).T @ (target - middle))
    missed = target - middle - (own - centre) @ effects
    variance = float(missed @ missed) / max(len(known) - own.shape[1] - 1, 1)
    found = np.exp(middle + (rows - centre) @ effects + variance / 2)
    return np.asarray(found), float(np.expm1(min(variance, 5.0)))
