"""Pictures of a recovery: series beside their readings, shared profiles, totals.

Figures are made without pyplot and leave nothing behind in it; a notebook shows the one that is
returned. Names of series are drawn as they are, never as formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum.axes import (
    EVEN,
    GAP,
    MAX_AXES,
    RECOVERED,
    SEVERAL,
    add_legend,
    check_axes,
    dress,
    dress_times,
    edge_times,
    figure_of,
    make_axes,
    step_word,
    write_title,
)
from unsum.calendar import DAY, Calendar
from unsum.errors import ParameterError
from unsum.panel import cut_points
from unsum.readings import Readings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unsum.recovery import Recovery

FEW = 3  # series that are drawn when none is named
MAX_SEARCHED = 20_000  # names that a mistyped one is compared with
WEEKDAYS = ("M", "T", "W", "T", "F", "S", "S")


def plot_series(recovery: Recovery, series: Any, axes: Any, *, even: bool) -> Figure:
    """Readings at their mean levels, recovered values, and their interval; an axes per series."""
    readings = recovery.readings
    given = None if axes is None else check_axes(axes)
    if series is None:
        places = choose_series(readings, FEW if given is None else len(given))
    else:
        places = find_series(readings, series)
    alone = given is None
    if given is None:
        given = make_axes(len(places), 1.9, sharex=True)
    elif len(given) < len(places):
        raise ParameterError(
            f"{len(places)} series are drawn on as many axes; got {len(given)}. Give more axes, or "
            "fewer names."
        )
    for axis, n in zip(given, places, strict=False):
        _draw_series(axis, recovery, int(n), even=even)
    add_legend(given[: len(places)], alone=alone)
    return figure_of(given, alone=alone)


def _draw_series(axis: Axes, recovery: Recovery, n: int, *, even: bool) -> None:
    readings = recovery.readings
    part, times = readings[n : n + 1], edge_times(readings.calendar)
    middles = times[:-1] + np.diff(times) / 2
    values = recovery.values_of(n, part)
    bounds = recovery.bound(n, part, np.arange(part.n_periods + 1), values)
    count = _draw_readings(axis, readings, n, times)
    if even and part.n_readings:
        axis.stairs(
            _spread(part), times, baseline=None, color=EVEN, alpha=0.6, linewidth=0.7, zorder=2,
            label="even spreading",
        )  # fmt: skip
    axis.plot(
        middles, values[0], color=RECOVERED, linewidth=1.3, zorder=4,
        marker="o" if part.n_periods == 1 else "", label=f"recovered ({recovery.method})",
    )  # fmt: skip
    if bounds is not None:
        axis.fill_between(
            middles, bounds.lower[0], bounds.upper[0], color=RECOVERED, alpha=0.17, linewidth=0,
            zorder=1, label=f"{100 * (recovery.interval or 0):g} % interval",
        )  # fmt: skip
    unread = _find_unread(part)
    if unread.any():
        axis.stairs(
            unread, times, fill=True, color=GAP, alpha=0.13, linewidth=0, zorder=0,
            transform=axis.get_xaxis_transform(), label="no reading",
        )  # fmt: skip
    axis.set_ylabel(f"per {step_word(readings.calendar)}")
    word = "reading" if count == 1 else "readings"
    dress(axis, f"{write_title(part.names[0].as_py())}, {count:,} {word}")
    dress_times(axis, readings.calendar)


def _find_unread(part: Readings) -> np.ndarray:
    """Which periods of a series, while it is active, no reading covers."""
    first, last = part.active[0]
    unread = ~part.covered()[0]
    unread[:first] = unread[last:] = False
    return np.asarray(unread)


def _draw_readings(axis: Axes, readings: Readings, n: int, times: np.ndarray) -> int:
    """A step for each reading at its mean level; those that are estimated are broken lines."""
    start, stop, total, estimated = _own_readings(readings, n)
    if len(total):
        lines = axis.hlines(
            total / (stop - start), times[start], times[stop], color=EVEN, linewidth=1.8, zorder=3,
            label="readings, mean level",
        )  # fmt: skip
        lines.set_linestyle([(0, (2.0, 1.2)) if soft else "solid" for soft in estimated])
    return len(total)


def _own_readings(readings: Readings, n: int) -> list[np.ndarray]:
    """Start, stop, total of the readings of a series, and which are estimated.

    Those that interleave with others, and are therefore among the further measures, come last.
    """
    own = slice(readings.indptr[n], readings.indptr[n + 1])
    total = readings.total[own]
    soft = np.zeros(len(total), np.bool_) if readings.estimated is None else readings.estimated[own]
    found = [readings.start[own], readings.stop[own], total, soft]
    more = readings.further
    if more is None:
        return found
    places = more.intervals()
    places = places[more.set_series[more.set_ptr[more.piece_set[places]]] == n]
    rows = more.measure[places]
    others = [more.start[places], more.stop[places], more.total[rows], more.estimated[rows]]
    return [np.concatenate(pair) for pair in zip(found, others, strict=True)]


def _spread(part: Readings) -> np.ndarray:
    from unsum.recovering import recover

    values: np.ndarray = recover(part, "even").values[0]
    return values


def plot_profiles(recovery: Recovery, axes: Any) -> Figure:
    """The shared profiles over time, and by weekday or time of day; each relative to its mean."""
    shapes, labels = _find_shapes(recovery)
    calendar = recovery.readings.calendar
    rhythm = find_rhythm(calendar)
    columns = _arrange(axes, len(labels), with_rhythm=rhythm is not None)
    together = len(columns[0]) < len(labels)
    for k, (label, shape) in enumerate(zip(labels, shapes.T, strict=True)):
        ink = SEVERAL[k % len(SEVERAL)] if together else RECOVERED
        axis = columns[0][0 if together else k]
        _draw_shape(axis, calendar, shape, label, ink, together=together)
        if len(columns) > 1 and rhythm is not None:
            _draw_rhythm(columns[1][0 if together else k], *rhythm, shape, ink, first=k == 0)
    if together:
        add_legend(columns[0], alone=False)
    return figure_of(columns[0], alone=axes is None)


def _arrange(axes: Any, n_shapes: int, *, with_rhythm: bool) -> list[list[Axes]]:
    """The axes over time, and those of the rhythm where there are some."""
    if axes is None:
        ratios = [4, 1] if with_rhythm else [1]
        found = make_axes(
            n_shapes, 1.2, len(ratios), width_ratios=ratios, sharex="col", sharey="row"
        )
        return [found[k :: len(ratios)] for k in range(len(ratios))]
    given = check_axes(axes)
    if len(given) in (1, n_shapes):
        return [given]
    if len(given) in (2, 2 * n_shapes):
        return [given[::2], given[1::2]]
    raise ParameterError(
        f"{n_shapes} profiles are drawn on {n_shapes} axes, or all on one; or on twice as many, in "
        f"pairs, with the mean by weekday on the second of each; got {len(given)}."
    )


def _find_shapes(recovery: Recovery) -> tuple[np.ndarray, list[str]]:
    profiles, population = recovery.profiles, recovery.population
    if profiles is not None:
        return profiles, _name_profiles(profiles, recovery.weights)
    if population is not None:
        return population.mean[:, None], ["mean of the population"]
    raise ParameterError(
        f"a recovery by {recovery.method!r} of {recovery.readings.n_periods:,} periods has no "
        "shared profiles to draw; recover with method 'nmf', 'nmf-ar' or 'panel' (of up to 2,000 "
        "periods)."
    )


def _name_profiles(profiles: np.ndarray, weights: np.ndarray | None) -> list[str]:
    """Their numbers, and how much of all that was recovered each of them accounts for."""
    names = [f"profile {k + 1}" for k in range(profiles.shape[1])]
    largest = 0.0 if weights is None or not weights.size else float(weights.max())
    if weights is None or not largest:
        return names
    parts = (weights / largest).sum(axis=0) * profiles.sum(axis=0)
    shares = 100 * parts / parts.sum()
    return [f"{name}, {share:.0f} % of all" for name, share in zip(names, shares, strict=True)]


def _draw_shape(
    axis: Axes, calendar: Calendar, shape: np.ndarray, label: str, ink: str, *, together: bool
) -> None:
    times = edge_times(calendar)
    axis.plot(
        times[:-1] + np.diff(times) / 2, _relate(shape), color=ink, linewidth=1.2, label=label,
        marker="o" if len(shape) == 1 else "",
    )  # fmt: skip
    axis.set_ylabel("relative to mean")
    dress(axis, "" if together else label)
    dress_times(axis, calendar)


def _draw_rhythm(
    axis: Axes, title: str, place: np.ndarray, ticks: Sequence[str], shape: np.ndarray, ink: str,
    *, first: bool,
) -> None:  # fmt: skip
    """The mean of a profile at each place of a week or a day."""
    means = np.bincount(place, _relate(shape)) / np.bincount(place)
    few = len(means) == len(ticks)
    axis.plot(means, color=ink, linewidth=1.2, marker="o" if few else "", markersize=3)
    at = np.arange(len(ticks)) * len(means) / len(ticks)
    axis.set_xticks(at, labels=ticks)
    dress(axis, title if first else "")
    axis.margins(x=0.08)


def _relate(shape: np.ndarray) -> np.ndarray:
    mean = float(shape.mean())
    return shape / mean if mean > 0 else shape


def find_rhythm(calendar: Calendar) -> tuple[str, np.ndarray, Sequence[str]] | None:
    """How the periods of a calendar go round: a title, the place of each, and names of places.

    Days go round by weekday, shorter steps by the time of day; others do not.
    """
    step, walls = calendar.frequency.step, calendar.walls[:-1]
    if step == DAY and calendar.n_periods >= 14:
        return "mean by weekday", (walls // DAY + 3) % 7, WEEKDAYS
    if 0 < step < DAY and walls[-1] - walls[0] >= 2 * DAY - step:
        return "mean by hour", walls % DAY // step, ("0", "6", "12", "18")
    return None


def plot_totals(recovery: Recovery, rule: Any, by: Any, axes: Any) -> Figure:
    """Totals as bars, with their intervals where they are known; an axes per group or series."""
    readings = recovery.readings
    cuts = cut_points(readings.calendar, rule)
    given = None if axes is None else check_axes(axes)
    if by is None:
        _require_few(readings.n_series, given, "series")
    table = recovery.totals(rule, by=by, backend="pyarrow")
    n_groups = len(table) // (len(cuts) - 1)
    _require_few(n_groups, given, "series" if by is None else "groups")
    columns = {
        name: np.asarray(table[name]).reshape(n_groups, -1)
        for name in ("total", "lower", "upper") if name in table.column_names
    }  # fmt: skip
    what = "series" if by is None else "group"
    names = [write_title(name, what) for name in table.column(0).to_pylist()[:: len(cuts) - 1]]
    if isinstance(by, str):
        names = [f"all {readings.n_series:,} series"]
    level = f", {100 * (recovery.interval or 0):g} % intervals" if "lower" in columns else ""
    if given is None:
        given = make_axes(n_groups, 2.2, sharex=True)
    edges = edge_times(readings.calendar)[cuts]
    for k, (axis, name) in enumerate(zip(given, names, strict=False)):
        _draw_totals(axis, edges, {key: column[k] for key, column in columns.items()})
        dress(axis, name + level)
        dress_times(axis, readings.calendar)
    return figure_of(given, alone=axes is None)


def _draw_totals(axis: Axes, edges: np.ndarray, sums: dict[str, np.ndarray]) -> None:
    """Bars as wide as what they are the total of, less a little, and intervals as error bars."""
    width = np.diff(edges)
    total = sums["total"]
    axis.bar(
        edges[:-1] + width * 0.04, total, width * 0.92, align="edge", color=RECOVERED, alpha=0.4
    )
    if "lower" in sums:
        axis.errorbar(
            edges[:-1] + width / 2, total, [total - sums["lower"], sums["upper"] - total],
            fmt="none", ecolor=RECOVERED, elinewidth=1.4, capsize=3, capthick=1.4,
        )  # fmt: skip
    axis.set_ylabel("total")


def _require_few(count: int, axes: list[Axes] | None, what: str) -> None:
    most = MAX_AXES if axes is None else len(axes)
    if count > most:
        raise ParameterError(
            f"totals of {count:,} {what} need as many axes, and there are at most {most}; sum them "
            "up by fewer groups, or with by='all'."
        )


def choose_series(readings: Readings, count: int) -> np.ndarray:
    """A large, a middling and a small series, or as many as asked for; those with most to recover.

    The same readings always give the same ones.
    """
    places = readings.read
    if not len(places):
        return np.arange(min(count, readings.n_series))
    heads, length = readings.indptr[:-1][places], readings.stop - readings.start
    level = np.maximum.reduceat(readings.total / length, heads)
    useful = (np.maximum.reduceat(length, heads) > 1) & (level > 0)
    if useful.sum() >= min(count, len(places)):
        places, level = places[useful], level[useful]
    order = places[np.argsort(-level, kind="stable")]
    chosen = (np.arange(count) + 0.5) / count * len(order)
    return np.asarray(order[np.unique(chosen.astype(np.int64))])


def find_series(readings: Readings, series: Any) -> np.ndarray:
    """The places of series by their names, or an error with the names that come closest."""
    import pyarrow as pa
    import pyarrow.compute as pc

    alone = isinstance(series, str) or not isinstance(series, Iterable)
    wanted = [str(name) for name in ([series] if alone else series)]
    if not 0 < len(wanted) <= MAX_AXES:
        raise ParameterError(
            f"series must be a name, or 1 to {MAX_AXES} names; got {len(wanted):,} of them."
        )
    names = readings.names.cast(pa.string())
    places = pc.index_in(pa.array(wanted, pa.string()), value_set=names)
    if places.null_count:
        missing = wanted[places.to_pylist().index(None)]
        raise ParameterError(f"no series is called {missing!r}; {_suggest(names, missing)}.")
    return np.asarray(places, np.int64)


def _suggest(names: Any, missing: str) -> str:
    import pyarrow.compute as pc

    first = 0
    if len(names) > MAX_SEARCHED:  # names are sorted: similar ones stand together
        before = pc.sum(pc.less(names, missing)).as_py()
        first = min(max(0, before - MAX_SEARCHED // 2), len(names) - MAX_SEARCHED)
    near = get_close_matches(missing, names[first : first + MAX_SEARCHED].to_pylist())
    if near:
        return f"close to it are {', '.join(map(repr, near))}"
    return f"there are {len(names):,}, from {names[0].as_py()!r} to {names[-1].as_py()!r}"
