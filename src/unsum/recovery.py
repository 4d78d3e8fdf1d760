"""The result: values that are nonnegative and add up to every reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum import __version__
from unsum.engine import map_blocks
from unsum.errors import ParameterError, UnsumError
from unsum.findings import Finding
from unsum.methods import Fit
from unsum.panel import Panel, cut_points
from unsum.readings import Readings

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from unsum.intervals import Bounds, Uncertainty
    from unsum.measures import Measures
    from unsum.model import Model
    from unsum.population.long import LongDoubtful
    from unsum.population.model import Population
    from unsum.population.uncertainty import Doubtful
    from unsum.projection import Projected
    from unsum.traits import Traits
    from unsum.updating import Update

TOLERANCE = 1e-9
ROUNDING = 1e-4  # of the largest total: what is smaller is checked against that


@dataclass(frozen=True)
class Block:
    """Some series, from `first` on: their readings, values, and intervals if there are any."""

    first: int
    part: Readings
    values: np.ndarray
    bounds: Bounds | None = None


@dataclass(frozen=True, eq=False)
class Recovery:
    """Recovered series. Values are made block by block, when they are first asked for."""

    readings: Readings
    method: str
    why: str
    settings: dict[str, Any]
    fit: Fit = field(repr=False)
    threads: int | None = None
    interval: float | None = None
    uncertainty: Uncertainty | None = field(default=None, repr=False)
    traits: Traits | None = field(default=None, repr=False)
    learned_from: dict[str, Any] | None = field(default=None, repr=False)  # where not from these

    @property
    def profiles(self) -> np.ndarray | None:
        """The shared shapes (n_periods, rank), or None where the method has none."""
        return self.fit.profiles

    @property
    def weights(self) -> np.ndarray | None:
        """How much of each profile a series has (n_series, rank), or None."""
        return self.fit.weights

    @property
    def history(self) -> dict[str, np.ndarray]:
        """Objective and KKT residual by iteration; empty for direct methods."""
        return self.fit.history

    @property
    def stop_reason(self) -> str:
        """Why the fit ended, as a sentence."""
        return self.fit.stop_reason

    @property
    def expected_error(self) -> float | None:
        """The mean-normalised error to expect over covered periods, where `auto` can tell."""
        error: float | None = getattr(self.fit, "expected_error", None)
        return error

    @property
    def hides_a_rhythm(self) -> bool:
        """Whether the dates of the readings hide a shape, so that errors may be larger than said.

        Finely read series, where there are some, show it all the same.
        """
        codes = {"no-weekly-shape", "no-daily-shape", "hidden-rhythm"}
        return bool(codes & {finding.code for finding in self.findings})

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """What `auto` tried: score and standard error of each candidate, best first."""
        return list(getattr(self.fit, "candidates", ()))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in the readings, and what the method had to adjust."""
        found = self.readings.findings.items + tuple(getattr(self.fit, "findings", ()))
        if self.readings.further is None:
            return found
        from unsum.joining import gaps_finding

        return found + gaps_finding(self.binding_further(), self._joined)

    @cached_property
    def values(self) -> np.ndarray:
        """The recovered series as an array (n_series, n_periods)."""
        if self.readings.further is not None:
            self._check_own_measures()
            return self._check(self.readings, self._joined.values)
        values = np.empty((self.readings.n_series, self.readings.n_periods))
        for first, part, block in map_blocks(self.values_of, self.readings, self.threads):
            values[first : first + part.n_series] = block
        return values

    def blocks(self) -> Iterator[Block]:
        """Parts of the readings and their values, in order, without holding all values."""
        for _, _, block in map_blocks(self.make, self.readings, self.threads):
            yield block

    def make(self, first: int, part: Readings) -> Block:
        """Values of a part that begins at series `first`, with intervals if they were asked for."""
        values = self.values_of(first, part)
        if self.interval is None:
            return Block(first, part, values)
        bounds = self.bound(first, part, np.arange(part.n_periods + 1), values)
        return Block(first, part, values, bounds)

    def values_of(self, first: int, part: Readings) -> np.ndarray:
        """Values of a part: the method's, made exact, and checked."""
        if "values" in self.__dict__ or self.readings.further is not None:
            return self.values[first : first + part.n_series]
        return self._check(part, self.fill_own(first, part))

    def fill_own(self, first: int, part: Readings) -> np.ndarray:
        """Values of a part that meet its own readings."""
        from unsum.kernels.totals import meet_totals

        values = np.empty((part.n_series, part.n_periods))
        self.fit.fill(first, part, values)
        meet_totals(*self.binding(part).arrays, part.active, values)
        return values

    def _check(self, part: Readings, values: np.ndarray) -> np.ndarray:
        check_values(self.binding(part), values)
        return values

    def _check_own_measures(self) -> None:
        """Readings among the further measures bind as the others do."""
        measures, joined = self.binding_further(), self._joined
        missed = measures.own & (np.abs(joined.gaps) > TOLERANCE * measures.total)
        if missed.any():
            worst = int(np.argmax(np.where(missed, np.abs(joined.gaps), 0.0)))
            raise UnsumError(
                f"{measures.labels[worst]}: the total {measures.total[worst]:g} is missed by "
                f"{joined.gaps[worst]:g} because of the readings that it interleaves with; check "
                "these readings, or set it aside."
            )

    @cached_property
    def _joined(self) -> Projected:
        from unsum.joining import join

        return join(self)

    def check_further(self, found: np.ndarray) -> None:
        """Refuse sums that differ from those found for totals beyond single series."""
        total = self.binding_further().total
        apart = np.abs(total - self._joined.gaps - found)
        if not np.all(apart <= TOLERANCE * np.maximum(total, found.max(initial=0.0) * ROUNDING)):
            raise UnsumError(
                f"totals beyond single series fail the check, by {apart.max():.3g}; this is a bug "
                "in unsum, please report it with the readings that cause it."
            )

    def gaps(self, backend: str | None = None) -> Any:
        """How totals beyond single series are met: a table with label, total, recovered, gap."""
        import pyarrow as pa

        from unsum.tables.frames import to_native

        binding, gaps = self.binding_further(), self._joined.gaps
        columns = {"total": binding.total, "recovered": binding.total - gaps, "gap": gaps}
        table = pa.table({"label": list(binding.labels), **columns})
        return to_native(table, backend or self.readings.backend)

    def binding(self, part: Readings) -> Readings:
        """The readings that values must meet: all, or those not estimated where the method can."""
        return part.binding() if getattr(self.fit, "soft", False) else part

    def binding_further(self) -> Measures:
        """The totals beyond single series that values must meet, if that can be.

        Estimates among them inform some methods; for the others, those of groups bind.
        """
        measures = self.readings.further
        if measures is None:
            raise ParameterError("these readings have no totals beyond single series.")
        if getattr(self.fit, "soft", False):
            return measures.binding()
        return measures.keep(~(measures.estimated & measures.own))

    def bound(
        self, first: int, part: Readings, cuts: np.ndarray, sums: np.ndarray
    ) -> Bounds | None:
        """Intervals of sums of a part between cuts, where they were asked for."""
        if self.interval is None or self.uncertainty is None:
            return None
        return self.uncertainty.bound(first, part, cuts, sums, self.interval)

    def panel(self) -> Panel:
        """The values with their names and calendar."""
        readings = self.readings
        return Panel(readings.names, readings.calendar, self.values, readings.covered())

    def to_arrow(self) -> pa.Table:
        """The long table: series, time, value, covered (and lower, upper with an interval)."""
        import pyarrow as pa

        from unsum.tables.write import long_table

        return pa.concat_tables(
            long_table(block.part, block.values, block.bounds) for block in self.blocks()
        )

    def to_frame(self, backend: str | None = None) -> Any:
        """The long table in the dataframe library the readings came from, or in `backend`."""
        from unsum.tables.frames import to_native

        return to_native(self.to_arrow(), backend or self.readings.backend)

    def totals(
        self, rule: str | Sequence[Any], *, by: Any = None, backend: str | None = None
    ) -> Any:
        """Totals by calendar months (`"MS"`), weeks (`"W"`), quarters (`"QS"`), or given cuts.

        A table with series, start, end, total, and `covered`, the share of its periods that
        readings cover; with an interval also lower and upper. What lies at both ends of the range
        is cut off at the range.

        Parameters
        ----------
        rule
            A step, or a list of cuts.
        by
            Sums over series: `"all"`, or the group of each series as a mapping from names, or as a
            sequence in the order of `readings.names`. The table then has `group` for `series`.
        backend
            The dataframe library of the table, if not that of the readings.
        """
        from unsum.tables.frames import to_native
        from unsum.tables.sums import sum_groups, sum_series

        cuts = cut_points(self.readings.calendar, rule)
        table = sum_series(self, cuts) if by is None else sum_groups(self, cuts, by)
        return to_native(table, backend or self.readings.backend)

    def plot(self, series: Any = None, *, axes: Any = None, even: bool = True) -> Figure:
        """Draw series by name (by default a few): readings, recovered values, and intervals.

        Parameters
        ----------
        series
            A name, or several.
        axes
            Matplotlib axes to draw on, one for each series, in place of a new figure.
        even
            Whether even spreading is shown behind.
        """
        from unsum.plotting import plot_series

        return plot_series(self, series, axes, even=even)

    def plot_profiles(self, *, axes: Any = None) -> Figure:
        """Draw the shared profiles, or the mean of the population, over time and by weekday."""
        from unsum.plotting import plot_profiles

        return plot_profiles(self, axes)

    def plot_totals(
        self, rule: str | Sequence[Any] = "MS", *, by: Any = "all", axes: Any = None
    ) -> Figure:
        """Draw what `totals` gives, with intervals as error bars; an axes for each group."""
        from unsum.plotting import plot_totals

        return plot_totals(self, rule, by, axes)

    def diagnosis(self, backend: str | None = None) -> Any:
        """Where the answer comes from, for every series.

        What its dates show: `readings`, the share of periods `covered`, the `longest` reading, and
        `hides`: a rhythm that repeats after so many periods is in none of its readings (1: none
        is). Then shares of the variance: `own` is what its readings tell if nothing is known about
        dates, `panel` what the other series add, `open` what stays unknown. Where a rhythm is
        hidden, `open` is what the model takes for it. For recoveries by `auto` or with intervals.
        """
        from unsum.tables.frames import to_native
        from unsum.tables.sums import tell_sources

        return to_native(tell_sources(self), backend or self.readings.backend)

    @property
    def population(self) -> Population | None:
        """What was learned of all series, where the method has one population of all periods."""
        known = self.fit if self.uncertainty is None else self.uncertainty.doubtful
        return getattr(known, "population", None)

    @property
    def doubtful(self) -> Doubtful | LongDoubtful | None:
        """What was learned of all series, and how sure of it the method is, where it can tell."""
        from unsum.methods.panel import PanelFit, StagedFit

        if self.uncertainty is not None:
            return self.uncertainty.doubtful
        return self.fit.doubtful() if isinstance(self.fit, PanelFit | StagedFit) else None

    def predict(self, backend: str | None = None) -> Any:
        """The long table of the series that have traits but no reading."""
        from unsum.tables.frames import to_native
        from unsum.tables.predicted import predict_series

        return to_native(predict_series(self), backend or self.readings.backend)

    def with_interval(self, interval: float | None) -> Recovery:
        """The same recovery with other intervals, or with none."""
        if interval is not None:
            require_interval(interval)
            if self.uncertainty is None:
                raise ParameterError(
                    f"this recovery by {self.method!r} knows no intervals; recover with method "
                    "'auto' or 'panel', and an interval."
                )
        return replace(self, interval=interval)

    @property
    def tails(self) -> int:
        """How many series are not read to the end of the range, or of their activity."""
        return int(np.sum(self.readings.ends() < self.readings.active[:, 1]))

    def unbilled(self, *, by: str | None = None, backend: str | None = None) -> Any:
        """What follows the last reading of every series that is not read to the end.

        A table with series, start, end, total, and with an interval lower and upper; with
        `by="all"` one row for the sum over series.
        """
        from unsum.tables.frames import to_native
        from unsum.tables.sums import sum_tails

        if by not in (None, "all"):
            raise ParameterError(f"by must be 'all' or nothing; got {by!r}.")
        return to_native(sum_tails(self, together=by == "all"), backend or self.readings.backend)

    @property
    def model(self) -> Model:
        """What was learned, without anything of a single series."""
        from unsum.model import Model

        return Model.of(self)

    def apply(self, readings: Any, **options: Any) -> Recovery:
        """Recover other series with what was learned here; see `Model.apply`."""
        return self.model.apply(readings, **options)

    def update(
        self, readings: Any, *, learn: bool = False, replace: bool = False, **reading: Any
    ) -> Update:
        """The same with new readings: the series they touch are recovered again, others stay.

        Parameters
        ----------
        readings
            New readings of known or of new series: a `Readings`, a file, or a dataframe. They take
            the place of estimated readings that they overlap.
        learn
            Learn again from all readings, starting from what was learned; new readings may then lie
            beyond the dates of the old ones.
        replace
            New readings also take the place of actual ones that they overlap.
        reading
            How a table is read: the options of `read_readings`.
        """
        from unsum.updating import read_news, update

        news = read_news(self, readings, learn=learn, **reading)
        return update(self, news, learn=learn, replace_old=replace)

    def save(self, path: str | Path, *, profiles_only: bool = False) -> None:
        """Write readings, fit and uncertainty to a file that `unsum.load` reads; no pickle.

        With `profiles_only`, the `model` alone: nothing of a single series is in the file.
        """
        from unsum.saving import save

        if profiles_only:
            self.model.save(path)
        else:
            save(self, path)

    def write(self, path: str | Path, *, client: Any = None) -> dict[str, Any]:
        """Write the long table to a file (.csv, .parquet), or to a folder of Parquet files.

        It is read back and checked before it takes its name. The files of a folder, which has a
        manifest, are written by the workers of a Dask cluster where its `client` is given. Returns
        the checks.
        """
        from unsum.tables.folders import check_folder_destination, write_folder
        from unsum.tables.write import write_recovery

        path = Path(path)
        if path.suffix:
            if client is not None:
                raise ParameterError(f"a cluster writes folders; name one, not {path.name}.")
            return write_recovery(self, path)
        check_folder_destination(path)
        if client is None:
            return write_folder(self, path)
        from unsum.cluster import cluster_of

        with cluster_of(client, path.resolve().parent) as cluster:
            return write_folder(self, path, write_parts=cluster.write_parts)

    def report(self, path: str | Path, *, title: str | None = None) -> None:
        """Write a page about this recovery: one HTML file that needs nothing else."""
        from unsum.report import write_report
        from unsum.tables.write import check_page_destination

        check_page_destination(Path(path))
        write_report(self, Path(path), title or "Recovered series")

    def provenance(self) -> dict[str, Any]:
        """How the values came to be: version, method, settings, fingerprint of the readings."""
        return {
            "unsum": __version__,
            "method": self.method,
            "settings": self.settings,
            "seed": self.settings.get("seed"),
            "stop_reason": self.stop_reason,
            "expected_error": self.expected_error,
            "hides_a_rhythm": self.hides_a_rhythm,
            "interval": self.interval,
            "candidates": self.candidates,
            "readings": self.readings.describe() | {"sha256": self.readings.fingerprint()},
        }

    def __repr__(self) -> str:
        return (
            f"Recovery(method={self.method!r}, {self.readings.n_series:,} series x "
            f"{self.readings.n_periods:,} periods, from {self.readings.n_readings:,} readings)"
        )

    def _repr_html_(self) -> str:
        from unsum.notebook import show_recovery

        return show_recovery(self)


def require_interval(interval: float) -> None:
    if not isinstance(interval, float | int) or not 0 < interval < 1:
        raise ParameterError(
            f"interval must lie between 0 and 1, such as 0.9 for nine times in ten; "
            f"got {interval!r}."
        )


def require_own_readings(readings: Readings) -> None:
    if len(readings.read) < readings.n_series:
        raise ParameterError(
            "intervals are not given where some series have no readings of their own."
        )


def check_values(part: Readings, values: np.ndarray) -> float:
    """Refuse values that are negative, not finite, or miss a reading; return the worst gap."""
    from unsum.kernels.totals import check_totals

    worst, sound = check_totals(*part.arrays, values)
    if not sound or worst > TOLERANCE:
        raise UnsumError(
            f"the values of series {part.names[0].as_py()!r} to {part.names[-1].as_py()!r} fail "
            f"the check (worst relative gap {worst:.3g}, nonnegative and finite: {sound}); this is "
            "a bug in unsum, please report it with the readings that cause it."
        )
    return float(worst)
