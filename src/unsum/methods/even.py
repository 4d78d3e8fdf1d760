"""Even spreading: the paper's interpolation, against which everything else is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsum.methods import DirectFit, Progress, Settings
from unsum.readings import Readings


@dataclass(frozen=True)
class Even(Settings):
    """Every period of a reading gets the same share; elsewhere the series' mean rate."""

    name: ClassVar[str] = "even"

    def fit(
        self,
        readings: Readings,  # noqa: ARG002
        threads: int | None = None,  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> EvenFit:
        return EvenFit("even spreading needs no iterations")


class EvenFit(DirectFit):
    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:  # noqa: ARG002
        from unsum.kernels.totals import spread_evenly

        spread_evenly(*part.arrays, values)
