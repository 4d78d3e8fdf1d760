"""The one entry point: readings in, a recovery out."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum.engine import one_blas_thread
from unsum.errors import ParameterError
from unsum.indicators import Indicators, make_indicators
from unsum.joining import add_teachers, choose_pupils, inform_fit, teach_traits
from unsum.linear import LinearReadings
from unsum.measures import Measures
from unsum.methods import Method, Progress, label_method, make_method
from unsum.methods.nmf import NMF
from unsum.methods.panel import MAX_PERIODS, PanelModel
from unsum.reading import read_readings
from unsum.readings import Readings
from unsum.recovery import Recovery, require_interval, require_own_readings
from unsum.traits import Traits, make_traits

if TYPE_CHECKING:
    from unsum.factorization.crew import Plan


def recover(
    readings: Readings | LinearReadings | str | Path | Any,
    method: str | Method = "auto",
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    interval: float | None = None,
    groups: Any = None,
    group_totals: Any = None,
    client: Any = None,
    plan: Plan | None = None,
    **settings: Any,
) -> Recovery:
    """Recover every series at the fine time step, nonnegative and exact on every reading.

    Parameters
    ----------
    readings
        A `Readings`, a `LinearReadings`, or a file or dataframe of daily readings.
    method
        `"auto"`, which tries others and takes the one that splits merged readings best; `"even"`,
        `"denton"`, `"panel"`, `"nmf"`, `"nmf-ar"`; or a method object.
    threads
        How many threads work on values; results do not depend on it. All cores by default.
    progress
        A function that is called with 1 after every iteration.
    interval
        Such as 0.9: tables of the result then have `lower` and `upper`, between which the truth
        lies nine times in ten. For `"auto"` and `"panel"`.
    groups, group_totals
        Which series belong to which group, and totals of groups; see `Readings.with_groups`.
    client
        A client of a Dask cluster, whose workers reach the same files: they do the iterations of
        `"nmf"` and `"nmf-ar"`, with the same bits. `Recovery.write` takes it as well.
    plan
        Who does the work of iterative methods, if neither threads of this process nor a client.
    settings
        Settings of the method, such as `rank` for `"nmf"`; its class says which there are.
    """
    if isinstance(readings, str | Path):
        readings = read_readings(readings)
    elif isinstance(readings, LinearReadings):
        readings = readings.to_readings()
    elif not isinstance(readings, Readings):
        readings = Readings.from_frame(readings)
    if (groups is None) != (group_totals is None):
        raise ParameterError("groups and group_totals go together; give both.")
    if groups is not None:
        readings = readings.with_groups(groups, group_totals)
    chosen = _with_sides(make_method(method, settings), readings)
    if interval is not None:
        require_interval(interval)
        _require_series(readings)
    traits, settings = getattr(chosen, "traits", None), _describe(chosen)
    pupils = learning = readings
    if readings.further is not None:
        places, pupils = choose_pupils(readings)
        if not pupils.n_series:
            raise ParameterError(
                "no series has readings or measures of its own to learn from; add some of at least "
                "one series."
            )
        learning = add_teachers(readings, pupils)
        chosen = _with_teachers(chosen, readings.further, places, learning)
    with ExitStack() as stack:
        if client is not None:
            from unsum.cluster import cluster_of

            plan = stack.enter_context(cluster_of(client)).plan()
        more = {"plan": plan} if isinstance(chosen, NMF) else {}
        stack.enter_context(one_blas_thread())
        fit = chosen.fit(learning, threads, progress, **more)
        uncertainty = getattr(fit, "uncertainty", None)
        if interval is not None and uncertainty is None:
            uncertainty = _assess(learning, chosen, fit, threads)
        if readings.further is not None:
            own = np.arange(pupils.n_series)
            fit, uncertainty = fit.take(own), None if uncertainty is None else uncertainty.take(own)
            fit = inform_fit(fit, pupils, readings.further.take(places), uncertainty)
    return Recovery(
        readings=readings,
        method=getattr(fit, "method", chosen.name),
        why=getattr(fit, "why", "as asked"),
        settings=settings,
        fit=fit,
        threads=threads,
        interval=interval,
        uncertainty=uncertainty if pupils.n_series == readings.n_series else None,
        traits=traits,
    )


def _with_sides(method: Method, readings: Readings) -> Method:
    """The method, with what is known about periods and series understood once and for all."""
    made: Any = method
    if getattr(method, "indicators", None) is not None:
        made = replace(made, indicators=make_indicators(made.indicators, readings.calendar))
    if getattr(method, "traits", None) is not None:
        made = replace(made, traits=make_traits(made.traits))
    chosen: Method = made
    return chosen


def _with_teachers(
    method: Method, measures: Measures, places: np.ndarray, learning: Readings
) -> Method:
    """The method, knowing what there is to know about groups that teach."""
    made: Any = method
    if learning.n_teachers and hasattr(method, "traits") and learning.n_periods <= MAX_PERIODS:
        made = replace(made, traits=teach_traits(made.traits, measures, places, learning))
    rho = getattr(method, "rho", None)
    if learning.n_teachers and isinstance(rho, list | tuple | np.ndarray) and np.ndim(rho) == 1:
        made = replace(made, rho=np.append(rho, np.full(learning.n_teachers, np.mean(rho))))
    chosen: Method = made
    return chosen


def _describe(method: Method) -> dict[str, Any]:
    """The settings of a method, as they are kept with its result."""
    described: dict[str, Any] = {}
    for name in getattr(method, "__dataclass_fields__", ()):
        value = getattr(method, name)
        if isinstance(value, Indicators):
            value = list(value.names)
        elif isinstance(value, Traits):
            value = list(value.columns)
        elif name == "start" and isinstance(value, np.ndarray):
            value = "given"
        elif name == "candidates" and value is not None:
            value = [each if isinstance(each, str) else label_method(each) for each in value]
        described[name] = value
    return described


def _require_series(readings: Readings) -> None:
    from unsum.intervals import FEWEST

    require_own_readings(readings)
    if readings.n_series < FEWEST:
        raise ParameterError(
            f"intervals are learned from how series differ, from {FEWEST} of them on; these are "
            f"{readings.n_series}."
        )


def _assess(readings: Readings, method: Method, fit: Any, threads: int | None) -> Any:
    from unsum.intervals import assess_panel

    if isinstance(method, PanelModel):
        return assess_panel(readings, method, fit, threads)
    why = f": {fit.why}" if getattr(fit, "why", None) else ", it has no model of what it misses"
    raise ParameterError(
        f"method {getattr(fit, 'method', method.name)!r} gives no intervals{why}; ask for them "
        "with method 'auto' or 'panel'."
    )
