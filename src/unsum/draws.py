"""Random numbers that belong to the name of a series, wherever it stands in the table."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

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
