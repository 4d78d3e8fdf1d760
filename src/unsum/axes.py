"""How all pictures look: inks, axes, dates and titles; what is drawn on them is in `plotting`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum.calendar import DAY, HOUR, MINUTE, WEEK, Calendar, find_zone
from unsum.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRUTH, RECOVERED, EVEN = "#b8b8b8", "#1f5fa8", "#d9822b"
SEVERAL = (RECOVERED, EVEN, "#2a8c6e", "#a04a8f", "#6f6f6f", "#4fa8d9")
GAP = "#8a8a8a"  # where nothing was read
WIDTH = 9.0
MAX_AXES = 50  # of one figure
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}  # for text that others chose
LEGEND: dict[str, Any] = {
    "frameon": False, "fontsize": 8.5, "handlelength": 1.4, "columnspacing": 1.5,
}  # fmt: skip
TICKS = ("%Y", "%b", "%d\n%b", "%H:%M", "%H:%M", "%S.%f")  # of years, months, days, hours, ...
FIRST_TICKS = ("", "%Y", "%d\n%b", "%d\n%b", "%H:%M", "%H:%M")  # where the next larger unit begins
CORNERS = ("", "%Y", "%Y", "%d %b %Y", "%d %b %Y", "%d %b %Y %H:%M")  # what ticks leave unsaid
STEPS = {MINUTE: "minute", HOUR: "hour", DAY: "day", WEEK: "week"}
MONTHS = {1: "month", 3: "quarter", 12: "year"}


def edge_times(calendar: Calendar) -> np.ndarray:
    """The edges of periods as axes take them: numbers, local dates, or moments in UTC."""
    if calendar.frequency.numbered:
        return calendar.edges
    if calendar.frequency.daily_or_longer:
        return (calendar.walls // DAY * DAY).astype("datetime64[us]")
    return calendar.edges.astype("datetime64[us]")


def step_word(calendar: Calendar) -> str:
    """What a period is called."""
    frequency = calendar.frequency
    if frequency.numbered:
        return "period"
    return STEPS.get(frequency.step) or MONTHS.get(frequency.months) or frequency.text


def make_axes(n_rows: int, height: float, n_columns: int = 1, **more: Any) -> list[Axes]:
    """Axes of a new figure, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height * n_rows + 0.5), layout="constrained")
    figure._repr_png_ = partial(_to_png, figure)  # type: ignore[attr-defined]
    axes = figure.subplots(n_rows, n_columns, squeeze=False, **more)
    return list(axes.ravel())


def _to_png(figure: Figure) -> bytes:
    """What a notebook shows, also where pyplot has never been imported."""
    from io import BytesIO

    written = BytesIO()
    figure.savefig(written, format="png", dpi=110)
    return written.getvalue()


def check_axes(axes: Any) -> list[Axes]:
    """The axes that were given, one or several, in order."""
    from matplotlib.axes import Axes

    found = np.array(axes, dtype=object).ravel().tolist()
    if not found or not all(isinstance(each, Axes) for each in found):
        raise ParameterError(f"axes must be matplotlib axes, one or several; got {axes!r}.")
    return found


def figure_of(axes: Sequence[Axes], *, alone: bool = False) -> Figure:
    """The whole figure that axes belong to; one of our own has labels at its edges only."""
    if alone:
        for axis in axes:
            axis.label_outer()
    figure: Figure = axes[0].figure.figure
    return figure


def dress(axis: Axes, title: str) -> None:
    """What all axes have in common: a title at the left, zero at the bottom, no frame."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_title(title, loc="left", fontsize=9.5, **PLAIN)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_ylim(bottom=0, auto=None)  # what is added later may still raise the top
    axis.margins(x=0.01)
    axis.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axis.tick_params(labelsize=8.5)
    axis.yaxis.label.set_fontsize(8.5)


def dress_times(axis: Axes, calendar: Calendar) -> None:
    """Ticks at dates, or at hours of the zone that the calendar is in."""
    if calendar.frequency.numbered:
        axis.set_xlabel("period", fontsize=8.5)
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    local = calendar.tz is not None and not calendar.frequency.daily_or_longer
    zone = find_zone(calendar.tz or "UTC") if local else UTC
    locator = AutoDateLocator(tz=zone, minticks=4, maxticks=10)  # type: ignore[no-untyped-call]
    spelling = ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator, tz=zone, formats=TICKS, zero_formats=FIRST_TICKS, offset_formats=CORNERS
    )
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(spelling)
    axis.xaxis.get_offset_text().set_fontsize(8.5)


def add_legend(axes: Sequence[Axes], *, alone: bool) -> None:
    """What is drawn on any of the axes, each once: above a figure of our own, or within."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    what = list(found.values()), list(found)
    if alone:
        figure_of(axes).legend(*what, loc="outside upper right", ncols=len(found), **LEGEND)
    else:
        axes[0].set_ylim(top=1.3 * axes[0].get_ylim()[1], auto=None)
        axes[0].legend(*what, loc="upper right", ncols=3, **LEGEND)


def write_title(name: Any, what: str = "series") -> str:
    """A name of a series or group on one line, and not too long."""
    text = f"{what} {name}" if isinstance(name, int) else " ".join(str(name).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
