"""Readings on a long grid, seen by blocks of periods and through windows of blocks."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def block_readings(
    indptr, start, stop, total, estimated, block, counts, first, last, sums, soft
):  # fmt: skip
    """Readings between edges of blocks, each boundary moved to the nearest edge.

    Readings that touch are added up where no edge lies near their boundary; with one that is
    estimated, all of them are. `counts` receives how many each series has; the others receive the
    readings, one after the other.
    """
    made = 0
    for n in range(len(indptr) - 1):
        before = made
        d = indptr[n]
        while d < indptr[n + 1]:
            edge, amount, guessed = _nearest(start[d], block), 0.0, False
            reached = start[d]
            while d < indptr[n + 1] and start[d] == reached:  # a run of readings that touch
                amount += total[d]
                guessed |= estimated[d]
                reached = stop[d]
                d += 1
                here = _nearest(reached, block)
                closer = d < indptr[n + 1] and start[d] == reached
                closer = closer and _nearest(stop[d], block) == here
                closer = closer and abs(stop[d] - here * block) <= abs(reached - here * block)
                if here > edge and not closer:
                    first[made], last[made], sums[made] = edge, here, amount
                    soft[made] = guessed
                    made += 1
                    edge, amount, guessed = here, 0.0, False
        counts[n] = made - before
    return made


@njit(cache=True, nogil=True)
def _nearest(period, block):
    return (2 * period + block) // (2 * block)


@njit(cache=True, nogil=True)
def window_readings(
    indptr, start, stop, total, estimated, blocks, block, begin, window, counts, first, last, sums,
    soft,
):  # fmt: skip
    """The readings of a window: a series' own that lie within it, and the totals of the blocks that
    these leave free.

    `blocks` (n_series, n_blocks) are those totals; a window may reach beyond the first and the last
    of them. `counts` receives how many readings each series has.
    """
    n_blocks = blocks.shape[1]
    end = min(begin + window, n_blocks * block)
    made = 0
    for n in range(len(indptr) - 1):
        before = made
        d = indptr[n] + np.searchsorted(start[indptr[n] : indptr[n + 1]], begin)
        k = max(begin // block, 0)
        while k * block < end:
            low, high = k * block, (k + 1) * block
            used = False
            while d < indptr[n + 1] and start[d] < high:
                if stop[d] <= end:
                    first[made], last[made] = start[d] - begin, stop[d] - begin
                    sums[made], soft[made] = total[d], estimated[d]
                    made += 1
                    used = True
                    low = stop[d]
                d += 1
            if not used:
                first[made], last[made] = k * block - begin, high - begin
                sums[made], soft[made] = blocks[n, k], False
                made += 1
            k += 1
            while k * block < low:  # the last reading reaches into the next block
                k += 1
        counts[n] = made - before
    return made
