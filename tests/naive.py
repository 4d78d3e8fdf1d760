"""The paper's algorithms as the paper prints them: dense, slow, obvious.

V, W, H have the paper's shapes: V (T x N), W (T x K), H (K x N).
"""

from __future__ import annotations

import numpy as np


def project_simplex(x, total):
    """Chen and Ye: the nearest point with nonnegative entries that sum to total, by sorting."""
    ordered = np.sort(x)[::-1]
    excess = np.cumsum(ordered) - total
    counts = np.arange(1, len(x) + 1)
    last = np.flatnonzero(ordered - excess / counts > 0)
    if not len(last):
        return np.zeros_like(x)
    level = excess[last[-1]] / counts[last[-1]]
    return np.maximum(x - level, 0)


def project(X, readings, totals):
    """P_A: every reading's block onto its simplex; the rest is left as it is."""
    V = X.copy()
    owner = readings.series_of_readings()
    for n, low, high, total in zip(owner, readings.start, readings.stop, totals, strict=True):
        V[low:high, n] = project_simplex(X[low:high, n], total)
    return V


def hals(W, H, V, n_sweeps):
    """Update W, one profile after the other, for V = W H."""
    gram, target = H @ H.T, V @ H.T
    W = W.copy()
    for _ in range(n_sweeps):
        for k in range(W.shape[1]):
            if gram[k, k] > 0:
                W[:, k] = np.maximum(0, W[:, k] + (target[:, k] - W @ gram[:, k]) / gram[k, k])
    return W


def nenmf(W, H, V, n_steps):
    """Update W by the optimal gradient method, every row with its own restarts."""
    gram, target = H @ H.T, V @ H.T
    bound = np.linalg.eigvalsh(gram)[-1]
    W = W.copy()
    for i, row in enumerate(W):

        def value(x, i=i):
            return x @ gram @ x / 2 - target[i] @ x

        here, ahead, momentum = row.copy(), row.copy(), 1.0
        for _ in range(n_steps):
            tried = np.maximum(0, ahead - (gram @ ahead - target[i]) / bound)
            if value(tried) > value(here) and momentum > 1:
                ahead, momentum = here.copy(), 1.0
                continue
            following = (1 + np.sqrt(4 * momentum**2 + 1)) / 2
            ahead = tried + (momentum - 1) / following * (tried - here)
            here, momentum = tried, following
        W[i] = here
    return W


UPDATES = {"hals": hals, "nenmf": nenmf}


def algorithm_1(W, H, readings, totals, update, n_inner, n_iterations):
    """Yields (V, W, H) before the first iteration and after each."""
    V = project(W @ H, readings, totals)
    yield V, W, H
    for _ in range(n_iterations):
        W = UPDATES[update](W, H, V, n_inner)
        H = UPDATES[update](H.T, W.T, V.T, n_inner).T
        V = project(W @ H, readings, totals)
        yield V, W, H


def residuals(V, W, H):
    """R(W) and R(H), squared and summed, as printed; and with negative gradients at zeros."""
    at_W, at_H = (W @ H - V) @ H.T, W.T @ (W @ H - V)
    printed = np.sum(at_W[W != 0] ** 2) + np.sum(at_H[H != 0] ** 2)
    zeros = np.sum(np.minimum(at_W[W == 0], 0) ** 2) + np.sum(np.minimum(at_H[H == 0], 0) ** 2)
    return printed, printed + zeros


def autocorrelated(x0, strength, lags, rho, start, stop, total):
    """Theorem 2 with nonnegativity: dense, by active sets, and checked for optimality.

    Minimises ||x - x0||^2 - lambda x' Delta_rho x subject to the readings and x >= 0, the second
    term over covered periods only.
    """
    n = len(x0)
    covered = np.zeros(n)
    for low, high in zip(start, stop, strict=True):
        covered[low:high] = 1
    delta = -2 * rho * np.eye(n)
    for lag, share in lags.items():
        delta += share * (np.eye(n, k=lag) + np.eye(n, k=-lag))
    M = np.eye(n) - strength * delta * np.outer(covered, covered)
    A = np.array(
        [[low <= t < high for t in range(n)] for low, high in zip(start, stop, strict=True)]
    )
    A = A.astype(float)
    free = ~(A[total == 0].any(axis=0)) if (total == 0).any() else np.ones(n, bool)
    A, c, possible = A[total > 0], total[total > 0], free.copy()
    for _ in range(100):
        for row in A:
            if not (free & (row > 0)).any():
                free |= row > 0
        size = int(free.sum())
        system = np.zeros((size + len(A), size + len(A)))
        system[:size, :size] = M[np.ix_(free, free)]
        system[:size, size:] = -A[:, free].T
        system[size:, :size] = A[:, free]
        solution = np.linalg.solve(system, np.concatenate([x0[free], c]))
        x = np.zeros(n)
        x[free] = solution[:size]
        pull = M @ x - x0 - A.T @ solution[size:]
        wrong = (free & (x < -1e-12)) | (possible & ~free & (pull < -1e-12))
        if not wrong.any():
            return np.maximum(x, 0)
        free = free ^ wrong
    raise AssertionError("the active sets cycle; choose another problem")


def algorithm_2(W, H, readings, totals, lags, rho, strength, update, n_inner, n_iterations):
    """Yields (V, W, H) before the first iteration and after each; lambda is frozen."""

    def pull(X):
        V = np.empty_like(X)
        for n in range(X.shape[1]):
            own = slice(readings.indptr[n], readings.indptr[n + 1])
            V[:, n] = autocorrelated(
                X[:, n], strength[n], lags, rho[n], readings.start[own], readings.stop[own],
                totals[own],
            )  # fmt: skip
        return V

    V = pull(W @ H)
    yield V, W, H
    for _ in range(n_iterations):
        W = UPDATES[update](W, H, V, n_inner)
        H = UPDATES[update](H.T, W.T, V.T, n_inner).T
        V = pull(W @ H)
        yield V, W, H
