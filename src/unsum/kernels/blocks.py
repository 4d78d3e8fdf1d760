"""Readings on a long grid, seen by blocks of periods and through windows of blocks."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def block_readings(
    indptr, start, stop, total, estimated, block, counts, first, last, sums, soft
):  # fmt: skip
    """Readings between edges of blocks, each boundary moved to the nearest edge.

    What lies between boundary and edge moves along, at the rate of the reading there. Readings that
    touch are added up where no edge lies near their boundary; with one that is estimated, all of
    them are. `counts` receives how many each series has; the others receive the readings, one after
    the other.
    """
    made = 0
    for n in range(len(indptr) - 1):
        before = made
        d = indptr[n]
        while d < indptr[n + 1]:
            head, end = d, d + 1  # a run of readings that touch
            while end < indptr[n + 1] and start[end] == stop[end - 1]:
                end += 1
            edge, guessed = _nearest(start[head], block), False
            amount = -_between(start, stop, total, head, end, head, edge * block)
            while d < end:
                amount += total[d]
                guessed |= estimated[d]
                d += 1
                here = _nearest(stop[d - 1], block)
                closer = d < end and _nearest(stop[d], block) == here
                closer = closer and abs(stop[d] - here * block) <= abs(stop[d - 1] - here * block)
                if here > edge and not closer:
                    moved = _between(start, stop, total, head, end, d, here * block)
                    first[made], last[made], sums[made] = edge, here, max(amount + moved, 0.0)
                    soft[made] = guessed
                    made += 1
                    edge, amount, guessed = here, -moved, False
        counts[n] = made - before
    return made


@njit(cache=True, nogil=True)
def _between(start, stop, total, head, end, d, edge):
    """What readings have from the beginning of reading d (the end of the one before) to an edge.

    Negative if the edge comes first. Beyond the run from `head` to `end`, the rate goes on.
    """
    place = start[d] if d < end else stop[end - 1]
    amount = 0.0
    while place < edge:
        k = min(d, end - 1)
        reach = min(edge, stop[d]) if d < end else edge
        amount += total[k] * (reach - place) / (stop[k] - start[k])
        place = reach
        d += 1
    while place > edge:
        k = max(d - 1, head)
        reach = max(edge, start[d - 1]) if d > head else edge
        amount -= total[k] * (place - reach) / (stop[k] - start[k])
        place = reach
        d -= 1
    return amount


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
                    used |= stop[d] > k * block
                    low = max(low, stop[d])
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
