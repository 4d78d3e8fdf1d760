"""Readings that count something: how sure a count is follows from its size.

Calls, cases or pieces sold come in whole numbers, and few of them may be few by chance. So a series
of counts has noise at every period whose variance is its mean, as Poisson counts have, whatever
else it does. No reading shows that noise within itself; that totals are whole numbers does.
"""

from __future__ import annotations

import numpy as np

from unsum.readings import Readings

FEWEST = 4  # positive totals that tell what they are multiples of
SHARE = 0.5  # of the series that could tell must agree
ALIKE = 1e-6  # relative


def common_quantum(readings: Readings) -> float:
    """What the totals of most series are multiples of, one in general, or zero.

    A series alone says little: totals that happen to be alike have much in common.
    """
    quanta = _find(readings, 0.0)
    telling = np.add.reduceat(readings.total > 0, readings.indptr[:-1], dtype=np.int64) >= FEWEST
    quanta = np.sort(quanta[telling])
    if not len(quanta):
        return 0.0
    agree = np.searchsorted(quanta, quanta * (1 + ALIKE), "right") - np.searchsorted(
        quanta, quanta * (1 - ALIKE), "left"
    )
    best = int(np.argmax(agree))
    return float(quanta[best]) if agree[best] >= SHARE * len(quanta) else 0.0


def count_in(readings: Readings, quantum: float) -> np.ndarray:
    """Which series have multiples of a quantum in all of their totals."""
    return _find(readings, quantum) >= (1 - ALIKE) * quantum


def _find(readings: Readings, known: float) -> np.ndarray:
    from unsum.kernels.counting import find_quanta

    quanta = np.empty(readings.n_series)
    find_quanta(readings.indptr, readings.total, known, quanta)
    return quanta
