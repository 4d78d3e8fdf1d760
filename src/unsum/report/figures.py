"""The figures of the page, as Bokeh documents in JSON; the page's script puts them in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.embed import json_item
from bokeh.models import (
    ColumnDataSource,
    DatetimeTickFormatter,
    FactorRange,
    HoverTool,
    Model,
    NumeralTickFormatter,
    Range1d,
    Whisker,
)  # fmt: skip
from bokeh.plotting import figure

from unsum.calendar import Calendar
from unsum.readings import Readings

BLUE, ORANGE, GREY = "#1f5fa8", "#d9822b", "#8a8a8a"
LENGTHS = 40  # bars of a histogram, at most


class Axis:
    """Periods as places on a horizontal axis: milliseconds on the wall clock, or numbers."""

    def __init__(self, calendar: Calendar) -> None:
        self.dated = not calendar.frequency.numbered
        self.edges = calendar.walls / 1000 if self.dated else calendar.edges.astype(np.float64)
        self.daily = calendar.frequency.daily_or_longer

    @property
    def middles(self) -> np.ndarray:
        middles: np.ndarray = (self.edges[1:] + self.edges[:-1]) / 2
        return middles

    def draw(self, height: int, **more: Any) -> Any:
        """An empty figure over the range."""
        plot = _figure(height, "datetime" if self.dated else "linear", **more)
        plot.x_range = Range1d(
            self.edges[0], self.edges[-1], bounds=(self.edges[0], self.edges[-1])
        )
        if self.dated:
            plot.xaxis.formatter = DatetimeTickFormatter(
                hours="%H:%M", days="%d %b", months="%b %Y", years="%Y"
            )
        return plot

    @property
    def when(self) -> tuple[str, str]:
        """How a tooltip tells the period."""
        if not self.dated:
            return "period", "@at{0}"
        return "time", "@at{%Y-%m-%d}" if self.daily else "@at{%Y-%m-%d %H:%M}"

    def hover(self, *lines: tuple[str, str], **more: Any) -> HoverTool:
        formatters = {"@at": "datetime"} if self.dated else {}
        return HoverTool(
            tooltips=[self.when, *lines], formatters=formatters, attachment="above", **more
        )


def draw_coverage(readings: Readings, axis: Axis) -> Any:
    """How many series some reading covers, period by period."""
    change = np.zeros(readings.n_periods + 1)
    np.add.at(change, readings.start, 1.0)
    np.subtract.at(change, readings.stop, 1.0)
    covered = np.minimum(np.cumsum(change)[:-1], readings.n_series) / max(readings.n_series, 1)
    plot = axis.draw(180, y_range=Range1d(0, 1.02))
    data = {
        "left": axis.edges[:-1], "right": axis.edges[1:], "top": covered, "at": axis.edges[:-1],
    }  # fmt: skip
    bars = plot.quad(
        "left", "right", "top", 0, source=ColumnDataSource(data), fill_color=BLUE, line_color=None,
        fill_alpha=0.7,
    )  # fmt: skip
    plot.yaxis.formatter = NumeralTickFormatter(format="0%")
    plot.add_tools(axis.hover(("series covered", "@top{0.0%}"), renderers=[bars]))
    return _item(plot, "coverage")


def draw_lengths(readings: Readings) -> Any:
    """How many readings have which length."""
    lengths = readings.stop - readings.start
    low, high = int(lengths.min(initial=1)), int(lengths.max(initial=1))
    width = -(-(high - low + 1) // LENGTHS)
    edges = np.arange(low, high + width + 1, width)
    counts, _ = np.histogram(lengths, edges)
    plot = _figure(180)
    last = edges[1:] - 1
    span = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(edges[:-1], last, strict=True)]
    data = {"left": edges[:-1] - 0.5, "right": edges[1:] - 0.5, "top": counts, "span": span}
    bars = plot.quad(
        "left", "right", "top", 0, source=ColumnDataSource(data), fill_color=BLUE, fill_alpha=0.7,
        line_color="white",
    )  # fmt: skip
    plot.xaxis.axis_label = "periods in a reading"
    plot.yaxis.formatter = NumeralTickFormatter(format="0,0")
    plot.y_range.start = 0
    tips = [("periods", "@span"), ("readings", "@top{0,0}")]
    plot.add_tools(HoverTool(tooltips=tips, renderers=[bars]))
    return _item(plot, "lengths")


def draw_totals(rows: list[dict[str, Any]]) -> Any:
    """Sums over all series, with intervals where they are known."""
    labels = [row["label"] for row in rows]
    data = {
        "label": labels,
        "total": [row["total"] for row in rows],
        "covered": [row["covered"] for row in rows],
        "alpha": [0.35 + 0.5 * row["covered"] for row in rows],
    }
    tips = [("from", "@label"), ("total", "@total{0,0.[000]}"), ("covered", "@covered{0%}")]
    plot = _figure(260, x_range=FactorRange(*labels))
    sure = "lower" in rows[0]
    if sure:
        data |= {end: [row[end] for row in rows] for end in ("lower", "upper")}
        tips.insert(2, ("interval", "@lower{0,0.[000]} to @upper{0,0.[000]}"))
    source = ColumnDataSource(data)
    bars = plot.vbar(
        "label", top="total", width=0.8, source=source, fill_color=BLUE, fill_alpha="alpha",
        line_color=None,
    )  # fmt: skip
    if sure:
        plot.add_layout(
            Whisker(base="label", lower="lower", upper="upper", source=source, line_color="#222222")
        )
    plot.y_range.start = 0
    plot.xaxis.major_label_orientation = 0.7
    plot.yaxis.formatter = NumeralTickFormatter(format="0.[0]a")
    plot.add_tools(HoverTool(tooltips=tips, renderers=[bars]))
    return _item(plot, "totals-figure")


def draw_profiles(curves: list[tuple[str, np.ndarray, str]], axis: Axis) -> Any:
    """The curves of profiles over the range, relative to their means."""
    plot = axis.draw(300)
    for title, curve, ink in curves:
        titles = [title] * len(curve)
        data = {"x": axis.middles, "y": curve, "at": axis.edges[:-1], "title": titles}
        line = plot.line(
            "x", "y", source=ColumnDataSource(data), color=ink, line_width=1.6, line_alpha=0.9
        )
        tips = (("", "@title"), ("relative to its mean", "@y{0.00}"))
        plot.add_tools(axis.hover(*tips, renderers=[line]))
    return _item(plot, "profiles")


def draw_convergence(history: dict[str, np.ndarray]) -> Any | None:
    """The objective and the KKT residual, relative to where they began."""
    tracks = {
        "objective": history.get("objective", np.empty(0)),
        "KKT residual": history.get("residual", np.empty(0)),
    }
    tracks = {name: track for name, track in tracks.items() if len(track) > 1}
    if not tracks:
        return None
    logarithmic = all((track > 0).all() for track in tracks.values())
    plot = _figure(220, y_axis_type="log" if logarithmic else "linear")
    for k, (name, track) in enumerate(tracks.items()):
        y = track / track[0] if logarithmic and track[0] > 0 else track
        source = ColumnDataSource({"x": np.arange(len(y)), "y": y, "value": track})
        line = plot.line(
            "x", "y", source=source, color=(BLUE, ORANGE)[k], legend_label=name, line_width=1.8
        )
        tips = [("iteration", "@x"), (name, "@value{0.000000e+0}")]
        plot.add_tools(HoverTool(tooltips=tips, renderers=[line], mode="vline"))
    plot.xaxis.axis_label = "iteration"
    if logarithmic:
        plot.yaxis.axis_label = "relative to the first"
    _set_legend(plot)
    return _item(plot, "convergence")


def draw_series(axis: Axis, *, bounded: bool) -> Any:
    """The figure of one series; the page's script fills it with the series that is looked at."""
    plot = axis.draw(360)
    plot.y_range.start = 0
    empty: dict[str, list[Any]]
    empty = {name: [] for name in ("left", "right", "top", "total", "first", "last", "kind")}
    steps = plot.quad(
        "left", "right", "top", 0, source=ColumnDataSource(empty, name="readings"),
        fill_color=ORANGE, fill_alpha=0.13, line_color=ORANGE, line_alpha=0.55,
        legend_label="readings",
    )  # fmt: skip
    values = ColumnDataSource(
        {name: [] for name in ("x", "at", "y", "lower", "upper")}, name="values"
    )
    tips = [("recovered", "@y{0,0.[0000]}")]
    if bounded:
        plot.varea(
            "x", "lower", "upper", source=values, fill_color=BLUE, fill_alpha=0.2,
            legend_label="interval",
        )  # fmt: skip
        tips.append(("interval", "@lower{0,0.[0000]} to @upper{0,0.[0000]}"))
    line = plot.line("x", "y", source=values, color=BLUE, line_width=1.6, legend_label="recovered")
    plot.add_tools(axis.hover(*tips, renderers=[line], mode="vline"))
    tips = [("reading", "@first to @last"), ("total", "@total{0,0.[0000]}"), ("", "@kind")]
    plot.add_tools(HoverTool(tooltips=tips, renderers=[steps], attachment="below"))
    plot.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    _set_legend(plot)
    return _item(plot, "series-figure")


def _figure(height: int, kind: str = "auto", **more: Any) -> Any:
    plot = figure(
        height=height, sizing_mode="stretch_width", x_axis_type=kind, tools="xbox_zoom,reset,save",
        min_border_left=48, **more,
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.background_fill_color = plot.border_fill_color = None
    plot.outline_line_color = None
    plot.grid.grid_line_color = "#000000"
    plot.grid.grid_line_alpha = 0.08
    plot.xgrid.visible = False
    for axis in plot.axis:
        axis.axis_line_color = axis.major_tick_line_color = GREY
        axis.minor_tick_line_color = None
        axis.major_label_text_color = axis.axis_label_text_color = "#444444"
        axis.axis_label_text_font_style = "normal"
    return plot


def _set_legend(plot: Any) -> None:
    plot.legend.location = "top_left"
    plot.legend.orientation = "horizontal"
    plot.legend.background_fill_alpha = 0.0
    plot.legend.border_line_color = None
    plot.legend.label_text_font_size = "9pt"
    plot.add_layout(plot.legend[0], "above")


def _item(plot: Model, target: str) -> Any:
    return json_item(plot, target)
