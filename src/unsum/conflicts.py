"""Which readings contradict each other: the fewest that no nonnegative values meet together."""

from __future__ import annotations

from typing import Any

import numpy as np

from unsum.errors import UnsumError

CLEAR = 1e-7  # of the largest total: what linear programs tell from nothing


def find_conflict(matrix: Any, total: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows that no nonnegative values meet together, none of which can be spared; and by how much.

    A linear program finds values that miss the totals by as little as can be; its prices tell which
    rows are to blame. Each of those is then left out in turn. No rows, where all can be met.
    """
    columns = _different_columns(matrix)
    unit = float(total.max(initial=0.0)) or 1.0
    amount, blamed = _least_miss(columns, total / unit, np.arange(len(total)))
    if amount <= CLEAR:
        return np.empty(0, np.int64), 0.0
    rows = blamed
    for spared in blamed:
        others = rows[rows != spared]
        if _least_miss(columns, total / unit, others)[0] > CLEAR:
            rows = others
    return rows, _least_miss(columns, total / unit, rows)[0] * unit


def _different_columns(matrix: Any) -> Any:
    """The matrix with equal columns once: values that no row tells apart count as one."""
    columns = matrix.tocsc()
    columns.sort_indices()
    seen: dict[bytes, int] = {}
    for j in range(columns.shape[1]):
        some = slice(columns.indptr[j], columns.indptr[j + 1])
        if some.start < some.stop:
            seen.setdefault(columns.indices[some].tobytes() + columns.data[some].tobytes(), j)
    return columns[:, sorted(seen.values())]


def _least_miss(columns: Any, total: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
    """The least sum of absolute gaps of some rows, and those whose prices are not zero."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack

    if not len(rows):
        return 0.0, rows
    some = columns.tocsr()[rows]
    n, extra = some.shape[1], eye_array(len(rows), format="csr")
    cost = np.concatenate([np.zeros(n), np.ones(2 * len(rows))])
    solved = linprog(cost, A_eq=hstack([some, extra, -extra], format="csr"), b_eq=total[rows])
    if solved.status != 0:
        raise UnsumError(f"a linear program was not solved: {solved.message}")
    return float(solved.fun), rows[np.abs(solved.eqlin.marginals) > 1e-9]
