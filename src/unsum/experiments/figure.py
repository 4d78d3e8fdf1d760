"""The paper's figure: error against sampling rate, a panel for each dataset and scheme."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unsum.tables.write import whole_file

if TYPE_CHECKING:
    from unsum.experiments.summary import Summary

EVEN, FAINT, PLAIN, PENALISED = "#c8322b", "#eeb0ab", "#2e8b45", "#2760b0"
LINES = (
    ("even", "", EVEN, "-.", "even spreading"),
    ("even-0", "", FAINT, "-.", "even spreading, else zero"),
    ("nmf", "nenmf", PLAIN, "-", "Algorithm 1, NeNMF"),
    ("nmf", "hals", PLAIN, ":", "Algorithm 1, HALS"),
    ("nmf-ar", "nenmf", PENALISED, "-", "Algorithm 2, NeNMF"),
    ("nmf-ar", "hals", PENALISED, ":", "Algorithm 2, HALS"),
)
SCHEMES = ("periodic", "random")
ROOM = 1.6  # panels are zoomed to so much above the largest error of the algorithms


def draw_figure(
    summary: Summary, error: str, titles: dict[str, str], paths: Sequence[Path]
) -> None:
    """Draw one error, at the best rank, averaged over runs, into PNG or SVG files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(titles)
    figure = Figure(figsize=(3.4 * len(names) + 0.4, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, len(names), squeeze=False, sharex=True)
    for row, scheme in enumerate(SCHEMES):
        for column, name in enumerate(names):
            axis = axes[row, column]
            highest = 0.0
            for method, update, colour, style, label in LINES:
                every, errors = summary.curve(name, scheme, method, update, error)
                if not len(every):
                    continue
                axis.plot(
                    1 / every, errors, style, color=colour, label=label, linewidth=1.6,
                    marker="o", markersize=2.5,
                )  # fmt: skip
                if update:
                    highest = max(highest, float(np.max(errors)))
            axis.set_ylim(0, max(ROOM * highest, 1e-3))
            axis.set_xscale("log")
            ticks = sorted({1 / value for value in summary.every})
            axis.set_xticks(ticks, [f"{tick:.2f}" for tick in ticks], fontsize=7)
            axis.minorticks_off()
            axis.set_title(f"{titles[name]}, {scheme}", fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(color="#e6e6e6", linewidth=0.6)
    for axis in axes[-1]:
        axis.set_xlabel("sampling rate (readings per period)", fontsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel(error.replace("paper", "error of the paper"), fontsize=8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(6, 2 * len(names)),
        frameon=False,
        fontsize=8,
    )
    for path in paths:
        with whole_file(path) as temporary:
            figure.savefig(
                temporary, format=path.suffix.lstrip("."), dpi=130, metadata=_plain(path)
            )


def _plain(path: Path) -> dict[str, None]:
    """No dates in the file: the same results draw the same picture."""
    return {"Date": None} if path.suffix == ".svg" else {}
