"""A recovery as one HTML file that asks nothing of anywhere."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from unsum import __version__
from unsum.errors import UnsumError
from unsum.recovery import Recovery
from unsum.report.choosing import choose_series, pack_series
from unsum.report.shapes import Group, Shape, describe_profiles, group_series
from unsum.report.sparks import spark_bars, spark_line
from unsum.report.survey import look_at
from unsum.report.words import count, sum_all, tell, tell_tails

USUAL_INTERVAL = 0.9
INKS = ("#1f5fa8", "#d9822b", "#3a923a", "#8c4bb0", "#b5413a", "#5b7c99")
MOST_CURVES = len(INKS)  # in one figure


def make_report(recovery: Recovery, title: str = "Recovered series") -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("unsum.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    # Bokeh's JSON refers to what came before, so it keeps its order
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    templates = files("unsum.report") / "templates"
    script = (templates / "page.js").read_text(encoding="utf-8")
    library = _library()
    return environment.get_template("page.html").render(
        title=title,
        version=__version__,
        style=(templates / "page.css").read_text(encoding="utf-8"),
        script=script,
        library=library,
        policy=_policy(library, script),
        **gather(recovery),
    )


def gather(recovery: Recovery) -> dict[str, Any]:
    """Everything that the page shows, as plain data."""
    from unsum.report import figures

    interval = recovery.interval
    if interval is None and recovery.uncertainty is not None:
        interval = USUAL_INTERVAL
    recovery = recovery.with_interval(interval)
    readings, survey = recovery.readings, look_at(recovery)
    shapes, groups = describe_profiles(survey), group_series(survey)
    by, totals = sum_all(recovery)
    chosen = choose_series(survey, interval)
    axis = figures.Axis(readings.calendar)
    items = [
        figures.draw_coverage(readings, axis),
        figures.draw_lengths(readings),
        figures.draw_totals(totals),
        figures.draw_series(axis, bounded=interval is not None),
    ]
    if shapes:
        curves = [(shape.title, shape.curve, ink) for shape, ink in zip(shapes, INKS, strict=False)]
        items.append(figures.draw_profiles(curves, axis))
    convergence = figures.draw_convergence(recovery.history)
    if convergence is not None:
        items.append(convergence)
    return {
        "tiles": count(recovery),
        "words": tell(recovery),
        "findings": recovery.findings,
        "candidates": recovery.candidates,
        "history": convergence is not None,
        "stop_reason": recovery.stop_reason,
        "shapes": [_draw_shape(k, shape) for k, shape in enumerate(shapes)],
        "groups": [_draw_group(group) for group in groups],
        "method": recovery.method,
        "interval": interval,
        "by": by,
        "totals": totals,
        "tails": tell_tails(recovery),
        "n_series": readings.n_series,
        "n_chosen": len(chosen),
        "judged": recovery.uncertainty is not None,
        "data": {
            "judged": recovery.uncertainty is not None,
            "items": items,
            "series": pack_series(survey, chosen, interval),
            "edges": axis.edges.tolist(),
            "texts": readings.calendar.texts(slice(None)),
        },
    }


def _draw_shape(k: int, shape: Shape) -> dict[str, Any]:
    return {
        "title": shape.title,
        "ink": INKS[k] if k < MOST_CURVES else None,
        "note": shape.note,
        "line": spark_line(shape.curve),
        "rhythms": [
            {"name": rhythm.name, "bars": spark_bars(means, rhythm.labels)}
            for rhythm, means in shape.rhythms
        ],
        "members": shape.members,
    }


def _draw_group(group: Group) -> dict[str, Any]:
    rhythms = [group.rhythm] if group.rhythm else []
    return {
        "title": group.title,
        "ink": None,
        "note": f"{group.n_series:,} series, {group.share:.0%} of the total",
        "line": spark_line(group.curve),
        "rhythms": [
            {"name": rhythm.name, "bars": spark_bars(means, rhythm.labels)}
            for rhythm, means in rhythms
        ],
        "members": group.members,
    }


def _library() -> str:
    """BokehJS, as it came with Bokeh."""
    from bokeh.resources import Resources

    text: str = Resources("inline", components=["bokeh"]).js_raw[0]
    if "</script" in text.lower():
        raise UnsumError("this version of Bokeh cannot be put into a page; install another.")
    return text


def _policy(*scripts: str) -> str:
    """Only these scripts run, and nothing is fetched from anywhere."""
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def write_report(recovery: Recovery, path: Path, title: str = "Recovered series") -> None:
    """The page as a file, whole or not at all."""
    from unsum.tables.write import whole_file

    page = make_report(recovery, title)
    with whole_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
