"""Results of the grid, by cell: a dataset, a scheme and a sampling rate."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Key = tuple[str, str, int, str, str, str]  # dataset, scheme, every, method, update, variant


@dataclass(frozen=True)
class Cell:
    """Where methods meet."""

    dataset: str
    scheme: str
    every: int

    @property
    def rate(self) -> float:
        return 1 / self.every


class Summary:
    """Errors at the best rank, and at the rank that validation would choose, averaged over runs."""

    def __init__(self, table: pa.Table) -> None:
        self.runs: dict[Key, dict[int, list[dict[str, Any]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in table.to_pylist():
            key = (
                row["dataset"], row["scheme"], row["every"], row["method"], row["update"],
                row["variant"],
            )  # fmt: skip
            self.runs[key][row["run"]].append(row)
        self.every = sorted({key[2] for key in self.runs if key[5] == "paper"})

    def cells(self) -> list[Cell]:
        """All cells of the paper's grid."""
        found = {Cell(*key[:3]) for key in self.runs if key[5] == "paper"}
        return sorted(found, key=lambda cell: (cell.dataset, cell.scheme, cell.every))

    def best(
        self,
        cell: Cell,
        method: str,
        update: str = "hals",
        error: str = "paper",
        variant: str = "paper",
        ranks: tuple[int, ...] | None = None,
        runs: tuple[int, ...] | None = None,
    ) -> float:
        """The error at the best rank of each run; NaN where nothing was run."""
        errors = [
            min(row[error] for row in rows if ranks is None or row["rank"] in ranks)
            for run, rows in self._rows(cell, method, update, variant).items()
            if runs is None or run in runs
        ]
        return float(np.mean(errors)) if errors else float("nan")

    def chosen(self, cell: Cell, method: str, error: str = "paper") -> float:
        """The error at the rank that validation chooses, without knowing the truth; first run."""
        rows = self._rows(cell, method, "hals", "paper").get(0)
        return min(rows, key=lambda row: row["validation"])[error] if rows else float("nan")

    def best_rank(self, cell: Cell, method: str, error: str = "paper") -> list[int]:
        runs = self._rows(cell, method, "hals", "paper").values()
        return [min(rows, key=lambda row: row[error])["rank"] for rows in runs]

    def curve(
        self, dataset: str, scheme: str, method: str, update: str, error: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Best errors against `every`."""
        every = [
            value
            for value in self.every
            if (dataset, scheme, value, method, update, "paper") in self.runs
        ]
        errors = [self.best(Cell(dataset, scheme, value), method, update, error) for value in every]
        return np.array(every), np.array(errors)

    def _rows(
        self, cell: Cell, method: str, update: str, variant: str
    ) -> dict[int, list[dict[str, Any]]]:
        update = "" if method.startswith("even") else update
        key = (cell.dataset, cell.scheme, cell.every, method, update, variant)
        return self.runs.get(key, {})
