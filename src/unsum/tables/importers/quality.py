"""Words for the quality of reads and readings: actual, or estimated."""

from __future__ import annotations

import numpy as np

from unsum.findings import MAX_DETAILS
from unsum.tables.importers.joined import find_row
from unsum.tables.ledger import Ledger, count

_ACTUAL = (
    "", "a", "act", "actual", "measured", "metered", "read", "r", "reading", "regular", "valid",
    "validated", "verified", "customer", "customer read", "customer reading", "c", "company",
    "smart", "remote", "automatic", "manual", "normal", "final", "initial", "agreed",
)  # fmt: skip
_ESTIMATED = (
    "e", "est", "estimated", "estimate", "estimation", "estimated read", "estimated reading",
    "calculated", "computed", "forecast", "projected", "interpolated", "substituted", "substitute",
    "deemed", "zeroed", "mixed", "s",
)  # fmt: skip
_WORDS = dict.fromkeys(_ACTUAL, False) | dict.fromkeys(_ESTIMATED, True)
_NO = dict.fromkeys(("", "0", "0.0", "false", "f", "no", "n"), False)
_YES = dict.fromkeys(("1", "1.0", "true", "t", "yes", "y"), True)


def judge_quality(codes: np.ndarray, words: list[str], column: str, ledger: Ledger) -> np.ndarray:
    """Which rows are estimated, by the words of a column; unknown words count as actual.

    In a column that is called after estimates, such as `is_estimated`, yes and no count too.
    """
    known = _WORDS | (_NO | _YES if "estim" in column.lower() else {})
    meant = [known.get(word.strip(" .").lower()) for word in words]
    estimated: np.ndarray = np.array([bool(each) for each in meant] + [False])[codes]
    strange = np.array([each is None for each in meant] + [False])[codes]
    where = np.flatnonzero(strange & ledger.in_use)
    if len(where):
        ledger.add(
            "unknown-quality",
            f"{count(len(where), 'row')} with a quality in column {column!r} that is neither "
            "actual nor estimated.",
            where,
            details=(
                f"{find_row(ledger.source, int(i))}: {words[codes[i]][:40]!r}"
                for i in where[:MAX_DETAILS]
            ),
        )
    return estimated
