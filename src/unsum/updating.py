"""New readings for a recovery: the series they touch are recovered again, the others stay.

What was learned of all series stays as well, unless it is to be learned again; then that begins
where it ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.calendar import Calendar
from unsum.errors import ParameterError, ReadingsError
from unsum.findings import Finding, Findings
from unsum.intervals import Uncertainty
from unsum.methods.auto import AutoFit
from unsum.methods.nmf import NMFFit
from unsum.methods.nmf_ar import NMFARFit
from unsum.methods.panel import PanelFit, StagedFit
from unsum.panel import cut_points, sum_between
from unsum.readings import Readings
from unsum.recovering import recover
from unsum.recovery import Recovery
from unsum.tables.intake import take_in
from unsum.tables.rows import Options

HIDING = ("no-weekly-shape", "no-daily-shape", "hidden-rhythm")  # what dates do not show
OF_SERIES: dict[type, tuple[str, ...]] = {  # arrays with a row for each series
    PanelFit: ("levels",),
    NMFFit: ("H", "scale"),
    NMFARFit: ("H", "scale", "rho", "strength"),
    Uncertainty: ("levels", "missed"),
}


@dataclass(frozen=True)
class Update:
    """A recovery with new readings, and what they changed."""

    recovery: Recovery
    before: Recovery
    news: Readings  # the new readings, on the calendar of the recovery
    superseded: pa.Table  # older readings that they took the place of

    @property
    def touched(self) -> pa.Array:
        """The names of the series with new readings."""
        return self.news.names

    def values(self) -> pa.Table:
        """The long table of the touched series."""
        return _take(self.recovery, self.touched).to_arrow()

    def revisions(self, rule: Any = "MS") -> pa.Table:
        """What moved in touched series, by how much, and because of which reading.

        A row for each series and month (or other `rule`) whose total is not what it was: series,
        start, end, before, after, change, and the new reading nearest to it. `before` is null for
        what was not there before.
        """
        calendar = self.recovery.readings.calendar
        cuts = np.array([0, calendar.n_periods])
        if not calendar.frequency.numbered or not isinstance(rule, str):
            cuts = cut_points(calendar, rule)
        after = sum_between(_take(self.recovery, self.touched).values, cuts)
        known = self.before.readings.names
        places = np.asarray(pc.fill_null(pc.index_in(self.touched, value_set=known), -1))
        before = np.full(after.shape, np.nan)
        old = _take(self.before, self.touched.filter(pa.array(places >= 0)))
        first = int(calendar.locate(self.before.readings.calendar.edges[:1])[0][0])
        values = np.full((len(old.values), calendar.n_periods), np.nan)
        values[:, first : first + old.readings.n_periods] = old.values
        before[places >= 0] = np.add.reduceat(values, cuts[:-1], axis=1)
        moved = ~(np.abs(after - before) <= 1e-9 * np.maximum(np.abs(after), 1e-300))
        series, span = np.nonzero(moved)
        cause = self._causes(series, cuts[span], cuts[span + 1])
        label = calendar.label_edges
        was = before[series, span]
        return pa.table(
            {
                "series": self.touched.take(pa.array(series)),
                "start": label(cuts[span]),
                "end": label(cuts[span + 1]),
                "before": pa.array(was, mask=np.isnan(was)),
                "after": after[series, span],
                "change": pa.array(after[series, span] - was, mask=np.isnan(was)),
                "reading_start": label(self.news.start[cause]),
                "reading_end": label(self.news.stop[cause]),
                "reading_total": self.news.total[cause],
            }
        )

    def _causes(self, series: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """For each span of a series, the new reading that overlaps it most, or is nearest."""
        news = self.news
        causes = np.empty(len(series), np.int64)
        for i, (n, low, high) in enumerate(zip(series, first, last, strict=True)):
            own = slice(int(news.indptr[n]), int(news.indptr[n + 1]))
            shared = np.minimum(news.stop[own], high) - np.maximum(news.start[own], low)
            causes[i] = own.start + int(np.argmax(shared))
        return causes


def read_news(recovery: Recovery, source: Any, *, learn: bool, **reading: Any) -> Readings:
    """New readings, on the calendar of a recovery or, to learn from, on one of their own."""
    if isinstance(source, Readings):
        return source
    drop_bad = reading.pop("drop_bad", False)
    for name in ("freq", "tz", "range_start", "range_end"):
        if name in reading:
            raise ParameterError(f"{name} is that of the recovery; leave it out.")
    calendar = recovery.readings.calendar
    options = Options.on(calendar, **reading)
    if learn:
        options = Options(calendar.frequency.text, calendar.tz, **reading)
    intake = take_in(Path(source) if isinstance(source, str) else source, options)
    outside = [finding for finding in intake.findings if finding.code == "outside-range"]
    if outside and not learn:
        raise ParameterError(
            f"{outside[0].sentence} What was learned does not reach there; learn again "
            "(learn=True, --learn)."
        )
    return intake.readings(drop_bad=drop_bad)


def update(recovery: Recovery, news: Readings, *, learn: bool, replace_old: bool) -> Update:
    """A recovery with new readings beside its own; see `Recovery.update`."""
    if recovery.readings.further is not None or news.further is not None:
        raise ParameterError(
            "recoveries with totals beyond single series cannot be updated; recover them again."
        )
    calendar = recovery.readings.calendar
    if learn:
        calendar = _longer(calendar, news.calendar)
    own = recovery.readings.on(calendar)
    news = _same_names(news.on(calendar), own.names.type)
    names = news.names
    places = np.asarray(pc.fill_null(pc.index_in(names, value_set=own.names), -1))
    known = np.sort(places[places >= 0])
    merged, superseded = _merge(own.take(known), news, replace_old=replace_old)
    if learn:
        whole = _join_readings(own, known, merged)
        return Update(_learn_again(recovery, whole), recovery, news, superseded)
    model = recovery.model
    if model.traits is not None:
        raise ParameterError(
            "what was learned with traits, or with the sizes of series, cannot be updated; recover "
            "again, with all readings."
        )
    fresh = model.apply(merged, interval=recovery.interval, threads=recovery.threads)
    left = np.setdiff1d(np.arange(own.n_series), known)
    order = _order(own.names.take(pa.array(left)), merged.names)
    updated = replace(
        recovery,
        readings=_join_readings(own, known, merged),
        fit=_join(recovery.fit.take(left), fresh.fit, order),
        uncertainty=_join_doubts(recovery.uncertainty, fresh.uncertainty, left, places, order),
        learned_from=model.learned_from,
    )
    return Update(updated, recovery, news, superseded)


def _same_names(news: Readings, kind: pa.DataType) -> Readings:
    """New readings with names of the kind that the known ones have, in their order."""
    if news.names.type == kind:
        return news
    try:
        names = news.names.cast(kind)
    except pa.ArrowException:
        raise ParameterError(
            f"names of series are {news.names.type} in the new readings and {kind} in the known "
            f"ones, and {news.names[0].as_py()!r} is not such a name; write them alike."
        ) from None
    order = np.asarray(pc.sort_indices(names))
    sizes = np.diff(news.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    which = np.arange(indptr[-1]) + np.repeat(news.indptr[:-1][order] - indptr[:-1], sizes)
    return replace(
        news,
        names=names.take(pa.array(order)),
        indptr=indptr,
        start=news.start[which],
        stop=news.stop[which],
        total=news.total[which],
        active=news.active[order],
        estimated=None if news.estimated is None else news.estimated[which],
        bounded=None if news.bounded is None else news.bounded[order],
    )


def _longer(one: Calendar, other: Calendar) -> Calendar:
    """The calendar that covers both."""
    first = min(int(one.edges[0]), int(other.edges[0]))
    last = max(int(one.edges[-1]), int(other.edges[-1]))
    return Calendar.covering(one.frequency, one.tz, first, last, anchor=int(one.walls[0]))


def _merge(old: Readings, news: Readings, *, replace_old: bool) -> tuple[Readings, pa.Table]:
    """Old and new readings of the touched series; new ones take the place of estimates."""
    names = news.names
    home = np.asarray(pc.index_in(old.names, value_set=names), np.int64)
    series = home[old.series_of_readings()] if old.n_readings else np.empty(0, np.int64)
    hit, by = _overlapped(series, old, news)
    estimated = np.zeros(old.n_readings, bool) if old.estimated is None else old.estimated
    stuck = hit if replace_old else hit & ~estimated
    same = hit & ~estimated & _repeats(old, news, by)
    stuck = np.zeros(len(hit), bool) if replace_old else stuck & ~same
    if stuck.any():
        raise ReadingsError(_conflicts(old, news, np.flatnonzero(stuck), by))
    gone = hit & ~same if not replace_old else hit
    keep_new = np.ones(news.n_readings, bool)
    keep_new[by[same & ~gone]] = False  # told again, with the same total
    parts = [
        np.concatenate([series[~gone], news.series_of_readings()[keep_new]]),
        np.concatenate([old.start[~gone], news.start[keep_new]]),
        np.concatenate([old.stop[~gone], news.stop[keep_new]]),
        np.concatenate([old.total[~gone], news.total[keep_new]]),
    ]
    order = np.lexsort((parts[1], parts[0]))
    sizes = np.bincount(parts[0], minlength=len(names))
    soft = None
    if old.estimated is not None or news.estimated is not None:
        fresh = np.zeros(news.n_readings, bool) if news.estimated is None else news.estimated
        soft = np.concatenate([estimated[~gone], fresh[keep_new]])[order]
    active, bounded = news.active.copy(), _bounds(news)
    given = _bounds(old)
    active[home] = np.where(given, old.active, active[home])
    bounded[home] |= given
    _refuse_inactive(news, active)
    merged = replace(
        news,
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        start=parts[1][order].astype(np.int32),
        stop=parts[2][order].astype(np.int32),
        total=parts[3][order],
        estimated=soft,
        active=active,
        bounded=bounded,
    )
    return merged, old.keep(gone).to_arrow()


def _bounds(readings: Readings) -> np.ndarray:
    """Which active times were given."""
    if readings.bounded is None:
        return np.zeros(readings.active.shape, np.bool_)
    return np.array(readings.bounded)


def _refuse_inactive(news: Readings, active: np.ndarray) -> None:
    """A new reading beyond the time in which its series is known to be active is a mistake."""
    owner = news.series_of_readings()
    bad = np.flatnonzero((news.start < active[owner, 0]) | (news.stop > active[owner, 1]))
    if len(bad):
        i = int(bad[0])
        text = news.calendar.text
        raise ParameterError(
            f"{len(bad):,} new readings reach beyond the active time of their series; the first is "
            f"of series {news.names[int(owner[i])].as_py()!r}, {text(int(news.start[i]))} to "
            f"{text(int(news.stop[i]))}. Correct it, or recover again with other active times."
        )


def _overlapped(series: np.ndarray, old: Readings, news: Readings) -> tuple[np.ndarray, np.ndarray]:
    """Which old readings a new one of the same series overlaps, and which one."""
    width = old.n_periods + 1
    ends = news.series_of_readings().astype(np.int64) * width + news.stop
    by = np.searchsorted(ends, series * width + old.start, side="right")
    inside = np.minimum(by, max(news.n_readings - 1, 0))
    hit = (
        (by < news.n_readings)
        & (news.series_of_readings()[inside] == series)
        & (news.start[inside] < old.stop)
    )
    return hit, inside


def _repeats(old: Readings, news: Readings, by: np.ndarray) -> np.ndarray:
    close = np.abs(news.total[by] - old.total) <= 1e-9 * np.abs(old.total)
    return np.asarray((news.start[by] == old.start) & (news.stop[by] == old.stop) & close)


def _conflicts(old: Readings, news: Readings, where: np.ndarray, by: np.ndarray) -> Findings:
    text = news.calendar.text
    owner = news.series_of_readings()
    details = []
    for i in where[:5]:
        j = int(by[i])
        name = news.names[int(owner[j])].as_py()
        details.append(
            f"series {name!r}: {news.total[j]:g} from {text(int(news.start[j]))} to "
            f"{text(int(news.stop[j]))}, but {old.total[i]:g} from {text(int(old.start[i]))} to "
            f"{text(int(old.stop[i]))} is known"
        )
    sentence = (
        f"{len(where):,} known readings overlap new ones; correct these, or let the new ones take "
        "their place (replace=True, --replace)."
    )
    return Findings((Finding("overlap", sentence, details=tuple(details)),))


def _order(left: pa.Array, fresh: pa.Array) -> np.ndarray:
    """The places of two lists of names, one after the other, by the order of names."""
    return np.asarray(pc.sort_indices(pa.concat_arrays([left, fresh])))


def _join_readings(own: Readings, known: np.ndarray, merged: Readings) -> Readings:
    """All series, those given anew among them."""
    left = own.take(np.setdiff1d(np.arange(own.n_series), known))
    order = _order(left.names, merged.names)
    sizes = np.concatenate([np.diff(left.indptr), np.diff(merged.indptr)])
    heads = np.concatenate([left.indptr[:-1], merged.indptr[:-1] + left.n_readings])
    indptr = np.concatenate([[0], np.cumsum(sizes[order])])
    which = np.arange(indptr[-1]) + np.repeat(heads[order] - indptr[:-1], sizes[order])
    soft = None
    if left.estimated is not None or merged.estimated is not None:
        soft = np.concatenate(
            [
                np.zeros(each.n_readings, bool) if each.estimated is None else each.estimated
                for each in (left, merged)
            ]
        )[which]
    return replace(
        own,
        names=pa.concat_arrays([left.names, merged.names]).take(pa.array(order)),
        indptr=indptr,
        start=np.concatenate([left.start, merged.start])[which],
        stop=np.concatenate([left.stop, merged.stop])[which],
        total=np.concatenate([left.total, merged.total])[which],
        active=np.concatenate([left.active, merged.active])[order],
        estimated=soft,
        bounded=np.concatenate([_bounds(left), _bounds(merged)])[order],
        findings=Findings(
            tuple(finding for finding in own.findings if finding.code in HIDING),
        ),
    )


def _join_doubts(
    old: Uncertainty | None,
    fresh: Uncertainty | None,
    left: np.ndarray,
    places: np.ndarray,
    order: np.ndarray,
) -> Uncertainty | None:
    """Of series that are left as they were, and of those at `places` that are given anew.

    How far series were missed is not forgotten; a place below zero is that of a new series.
    """
    if old is None or fresh is None:
        return None
    missed = np.where(places < 0, fresh.missed, old.missed[places])
    joined: Uncertainty = _join(old.take(left), replace(fresh, missed=missed), order)
    return joined


def _join(old: Any, fresh: Any, order: np.ndarray) -> Any:
    """What is known of two lots of series, in the order of their names."""
    if isinstance(old, AutoFit):
        sure = None
        if old.uncertainty is not None and fresh.uncertainty is not None:
            sure = _join(old.uncertainty, fresh.uncertainty, order)
        return replace(old, fit=_join(old.fit, fresh.fit, order), uncertainty=sure)
    if isinstance(old, StagedFit):
        return replace(old, blocks=_join(old.blocks, fresh.blocks, order))
    joined = {
        name: np.concatenate([getattr(old, name), getattr(fresh, name)])[order]
        for name in OF_SERIES.get(type(old), ())
    }
    return replace(old, **joined) if joined else old


def _learn_again(recovery: Recovery, readings: Readings) -> Recovery:
    """The same method, from where it ended, on all readings."""
    settings = {
        name: value
        for name, value in recovery.settings.items()
        if name not in ("name", "traits", "indicators") and value not in (None, "given")
    }
    if any(recovery.settings.get(name) is not None for name in ("traits", "indicators")):
        raise ParameterError(
            "what was learned with traits or indicators is learned again by recover, with those of "
            "all series and periods."
        )
    method = recovery.settings.get("name", recovery.method)
    if isinstance(recovery.fit, NMFFit) and len(recovery.fit.W) == readings.n_periods:
        settings["start"] = recovery.fit.W
    return recover(
        readings, method, threads=recovery.threads, interval=recovery.interval, **settings
    )


def _take(recovery: Recovery, names: pa.Array) -> Recovery:
    """The recovery of some series, by their names."""
    known = recovery.readings.names
    places = np.sort(np.asarray(pc.index_in(names, value_set=known)).astype(np.int64))
    sure = recovery.uncertainty
    return replace(
        recovery,
        readings=recovery.readings.take(places),
        fit=recovery.fit.take(places),
        uncertainty=None if sure is None else sure.take(places),
    )
