"""Hide a known panel behind readings, recover it by several methods, and measure them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.aggregation import AtRandom, Periodic, aggregate
from unsum.experiments.errors import Errors, measure
from unsum.methods import parse_method
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover


@dataclass(frozen=True)
class Result:
    """What one method made of the readings; errors are means over the runs."""

    method: str
    errors: Errors

    def to_dict(self) -> dict[str, Any]:
        return {"method": self.method, **asdict(self.errors)}


def compare(
    truth: Panel,
    scheme: Periodic | AtRandom,
    methods: Sequence[str],
    *,
    runs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Result]:
    """Errors of the methods on readings of the truth, averaged over seeds."""
    measured: dict[str, list[Errors]] = {method: [] for method in methods}
    for run in range(runs):
        readings = aggregate(truth, replace(scheme, seed=scheme.seed + run))
        for method in methods:
            values = recover(readings, parse_method(method)).values
            measured[method].append(measure_recovery(truth, readings, values))
            if progress is not None:
                progress(1)
    return [
        Result(
            method,
            Errors(*np.mean([list(asdict(errors).values()) for errors in runs_], axis=0).tolist()),
        )
        for method, runs_ in measured.items()
    ]


def measure_recovery(truth: Panel, readings: Readings, values: np.ndarray) -> Errors:
    """Errors on the series that have readings, matched to the truth by name."""
    return measure(find_truth(truth, readings), values, readings.covered())


def find_truth(truth: Panel, readings: Readings) -> np.ndarray:
    """The true values of the series that have readings, in their order."""
    places = np.asarray(pc.index_in(readings.names, value_set=pa.array(truth.names)))
    return np.asarray(truth.values[places])
