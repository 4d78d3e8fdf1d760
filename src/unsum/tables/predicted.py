"""Series without any reading, predicted from their traits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unsum.errors import ParameterError
from unsum.recovery import Recovery

RIDGE = 1.0  # of a series, in the regression of levels


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
        own = found.ratio * expected.variance + found.shared * expected.shared
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


def _predict_levels(
    recovery: Recovery, levels: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, float]:
    """Levels of series with given traits, and the relative variance of such a prediction."""
    known = np.flatnonzero(levels > 0)
    if not len(known) or recovery.traits is None:
        return np.zeros(len(rows)), 0.0
    own = recovery.traits.rows(recovery.readings.names.take(pa.array(known)))
    target = np.log(levels[known])
    middle, centre = float(target.mean()), own.mean(axis=0)
    inner = (own - centre).T @ (own - centre) + RIDGE * np.eye(own.shape[1])
    effects = np.linalg.solve(inner, (own - centre).T @ (target - middle))
    missed = target - middle - (own - centre) @ effects
    variance = float(missed @ missed) / max(len(known) - own.shape[1] - 1, 1)
    found = np.exp(middle + (rows - centre) @ effects + variance / 2)
    return np.asarray(found), float(np.expm1(min(variance, 5.0)))
