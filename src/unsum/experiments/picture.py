"""A few customers as a picture: the truth, what was recovered, and even spreading."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from unsum.axes import EVEN, RECOVERED, TRUTH
from unsum.panel import Panel
from unsum.recovering import recover
from unsum.recovery import Recovery
from unsum.tables.write import whole_file


def draw_customers(
    truth: Panel, recovery: Recovery, names: Sequence[str], path: Path, unit: str = "kWh a day"
) -> None:
    """Draw the named series, one below the other, into a PNG or SVG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    readings = recovery.readings
    even = recover(readings, "even")
    figure = Figure(figsize=(10, 2.1 * len(names) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
    days = [np.datetime64(day) for day in truth.calendar.texts(slice(None, -1))]
    times = [np.datetime64(day) for day in readings.calendar.texts(slice(None))]
    for axis, name in zip(axes, names, strict=True):
        n = pc.index(readings.names, name).as_py()
        actual = truth.values[pc.index(truth.names, name).as_py()]
        axis.plot(days, actual, color=TRUTH, linewidth=1.0, label="truth (hidden)")
        axis.stairs(
            even.values[n], times, baseline=None, color=EVEN, linewidth=1.0, label="even spreading"
        )
        axis.plot(
            times[:-1], recovery.values[n], color=RECOVERED, linewidth=1.8,
            label=f"recovered ({recovery.method})",
        )  # fmt: skip
        axis.set_ylim(0, None)
        axis.set_ylabel(unit)
        count = int(readings.indptr[n + 1] - readings.indptr[n])
        axis.set_title(f"{name}, from {count} readings", loc="left", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="upper right", ncols=3, frameon=False, fontsize=9)
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format=path.suffix.lstrip(".") or "png")
