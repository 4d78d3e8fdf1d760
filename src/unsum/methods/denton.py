"""Denton's smoothest series: one series at a time, least squares of first differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsum.methods import DirectFit, Progress, Settings
from unsum.readings import Readings


@dataclass(frozen=True)
class Denton(Settings):
    """Minimise `sum_t (v[t+1] - v[t])^2` subject to the readings and `v >= 0`, per series.

    Periods that no reading covers take part in the sum: beyond the first and the last reading the
    series continues flat, a gap between readings is bridged by a straight line.
    """

    name: ClassVar[str] = "denton"

    def fit(
        self,
        readings: Readings,  # noqa: ARG002
        threads: int | None = None,  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> DentonFit:
        return DentonFit("denton solves every series directly and needs no iterations")


class DentonFit(DirectFit):
    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:  # noqa: ARG002
        from unsum.kernels.smooth import smooth_series

        smooth_series(*part.arrays, part.active, values)
