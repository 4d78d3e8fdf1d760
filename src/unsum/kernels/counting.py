"""Totals that are whole numbers of something: of calls, of pieces sold, of pulses of a meter."""

from __future__ import annotations

import numpy as np
from numba import njit

EXACT = 1e-9  # of the largest total: what rounding may leave
FINEST = 1e-7  # of the largest total: anything is a multiple of what is finer


@njit(cache=True, nogil=True, error_model="numpy")
def find_quanta(indptr, total, known, quanta):
    """The largest number that the totals of each series, and `known`, are multiples of, or zero."""
    for n in range(len(indptr) - 1):
        largest = known
        for d in range(indptr[n], indptr[n + 1]):
            largest = max(largest, total[d])
        common = known
        for d in range(indptr[n], indptr[n + 1]):
            common, rest = total[d], common
            while rest > EXACT * largest:  # Euclid's algorithm
                common, rest = rest, common % rest
                if common - rest < EXACT * largest:
                    rest = 0.0
            if 0.0 < common < FINEST * largest:
                break
            if total[d] > common:  # rounding must not add up
                common = total[d] / np.round(total[d] / common)
        quanta[n] = common if common >= FINEST * largest else 0.0
