"""Rows that say the same thing twice, or two things of the same moment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unsum.findings import MAX_DETAILS
from unsum.tables.importers.joined import find_row
from unsum.tables.ledger import Ledger, count


def settle_repeats(
    ledger: Ledger,
    position: np.ndarray,
    key: np.ndarray,
    moment: np.ndarray,
    value: np.ndarray,
    describe: Callable[[int], str],
    *,
    remedy: str,
    estimated: np.ndarray | None = None,
) -> np.ndarray:
    """The places of the rows to keep, by key and moment: one for each pair of them.

    Rows of the same key, moment and value count once, an actual one rather than an estimate; where
    values differ, which is right is unknown. `describe` tells of a place in words, and `position`
    is its row.
    """
    soft = np.zeros(len(position), bool) if estimated is None else estimated
    order = np.lexsort((position, soft, moment, key))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(key[order]) != 0) | (np.diff(moment[order]) != 0)
    heads = np.flatnonzero(fresh)
    if len(heads) == len(order):
        return order
    values, group = value[order], np.cumsum(fresh) - 1
    agree = np.minimum.reduceat(values, heads) == np.maximum.reduceat(values, heads)
    repeats = order[~fresh & agree[group]]
    if len(repeats):
        rows = np.unique(position[repeats])
        ledger.add(
            "merged-duplicates",
            f"{count(len(rows), 'row')} repeating another with the same value.",
            rows,
        )
    torn = np.flatnonzero(~agree)
    if len(torn):
        bad = np.unique(position[order[~agree[group]]])

        def tell(which: int) -> str:
            copies = order[group == which][:4]
            versions = ", ".join(
                f"{value[i]:g} ({find_row(ledger.source, int(position[i]))})" for i in copies
            )
            return f"{describe(int(copies[0]))}: {versions}"

        ledger.add(
            "conflicting-duplicate",
            f"{count(len(bad), 'row')} with another value of the same time in the same series; "
            f"{remedy}.",
            bad,
            details=(tell(int(which)) for which in torn[:MAX_DETAILS]),
            set_aside=bad,
        )
    kept: np.ndarray = order[fresh & agree[group]]
    return kept
