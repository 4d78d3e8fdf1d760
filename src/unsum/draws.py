"""Random numbers that belong to the name of a series, wherever it stands in the table."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from unsum.readings import Readings

SLICE = 1 << 16
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def name_keys(names: Any, seed: int) -> np.ndarray:
    """A key for each series, from its name and a seed."""
    keys = np.empty(len(names), np.uint64)
    for low in range(0, len(names), SLICE):  # few at a time, as objects are large
        keys[low : low + SLICE] = [
            int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "little")
            for name in names[low : low + SLICE].to_pylist()
        ]
    return keys


def uniform(keys: np.ndarray, counters: np.ndarray | int) -> np.ndarray:
    """Numbers between 0 and 1, one for each pair of a key and a counter (splitmix64)."""
    with np.errstate(over="ignore"):
        x = keys + (np.asarray(counters, np.uint64) + np.uint64(1)) * GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    draws: np.ndarray = (x >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return draws


def sample_series(names: Any, size: int, seed: int) -> np.ndarray:
    """The places of `size` series, drawn by name, in increasing order."""
    return np.sort(np.argsort(name_keys(names, seed), kind="stable")[:size])


def sample_within(
    readings: Readings, places: np.ndarray, cost: np.ndarray | float, seed: int
) -> np.ndarray:
    """Some of the series at these places, drawn by name, whose costs add up to about one.

    Up to half of it goes to series that are read finely, as few of them among many others could
    teach a lot.
    """
    costs = np.broadcast_to(cost, len(places))
    if costs.sum() <= 1.0:
        return places
    length, usual = reading_lengths(readings)
    fine = length[places] <= usual / 2
    chosen, left = [], 1.0
    for some, share in ((np.flatnonzero(fine), 0.5), (np.flatnonzero(~fine), 1.0)):
        if len(some):
            each = float(costs[some].mean())
            size = min(len(some), max(1, int(share * left / each + 1e-6)))
            drawn = sample_series(readings.names.take(places[some]), size, seed)
            chosen.append(places[some[drawn]])
            left = max(left - size * each, 0.0)
    return np.sort(np.concatenate(chosen))


def reading_lengths(readings: Readings) -> tuple[np.ndarray, float]:
    """The mean length of each series' readings; and the usual one, for what is unknown."""
    lengths, unknown = [], np.zeros(readings.n_periods + 1)
    for part in readings.parts(SLICE):  # few at a time, as there may be many readings
        counts = np.diff(part.indptr)
        periods = np.add.reduceat(part.stop - part.start, part.indptr[:-1])
        lengths.append(periods / counts)
        rounded = np.rint(lengths[-1]).astype(np.int64)
        unknown += np.bincount(rounded, periods - counts, len(unknown))
    ahead = np.cumsum(unknown)
    return np.concatenate(lengths), float(np.searchsorted(ahead, ahead[-1] / 2))
