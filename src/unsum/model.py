"""What was learned from readings, without the series themselves; it serves other series."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unsum import __version__
from unsum.calendar import Calendar
from unsum.errors import ParameterError
from unsum.joining import choose_pupils, inform_fit
from unsum.linear import LinearReadings
from unsum.methods import Fit
from unsum.methods.nmf import levels
from unsum.readings import Readings
from unsum.recovery import Recovery, require_interval, require_own_readings
from unsum.traits import FEWEST_TO_SHARE, Traits, add_size

if TYPE_CHECKING:
    from unsum.intervals import Uncertainty


@dataclass(frozen=True, eq=False)
class Model:
    """Profiles, or a population, on the calendar they were learned on."""

    calendar: Calendar
    method: str
    settings: dict[str, Any]
    fit: Fit = field(repr=False)
    learned_from: dict[str, Any]  # version, counts and dates of the readings
    uncertainty: Uncertainty | None = field(default=None, repr=False)

    @classmethod
    def of(cls, recovery: Recovery) -> Model:
        """What a recovery learned, without anything of a single series."""
        uncertainty = recovery.uncertainty
        settings = {
            name: value
            for name, value in recovery.settings.items()
            if value is None or isinstance(value, bool | int | float | str)
        }
        return cls(
            calendar=recovery.readings.calendar,
            method=recovery.method,
            settings=settings,
            fit=recovery.fit.forget(),
            learned_from=recovery.learned_from
            or {"unsum": __version__}
            | recovery.readings.describe()
            | {"n_series": len(recovery.readings.read)},
            uncertainty=None if uncertainty is None else uncertainty.forget(),
        )

    @property
    def profiles(self) -> np.ndarray | None:
        """The shared shapes (n_periods, rank), or None where the method has none."""
        return self.fit.profiles

    @property
    def traits(self) -> Traits | None:
        """What the model knows about traits of series, if anything."""
        traits: Traits | None = getattr(self.fit, "traits", None)
        if traits is None and self.uncertainty is not None:
            traits = self.uncertainty.doubtful.traits
        return traits

    def apply(
        self,
        readings: Readings | str | Path | Any,
        *,
        interval: float | None = None,
        traits: Any = None,
        threads: int | None = None,
    ) -> Recovery:
        """Recover other series, or other readings of the same ones, without learning again.

        Parameters
        ----------
        readings
            A `Readings` within the dates of the model, or a file or dataframe with the canonical
            columns. They are all that is used: readings that the model was learned from are not.
        interval
            Such as 0.9: tables then have `lower` and `upper`.
        traits
            A file or dataframe with the traits of the new series, where the model was learned with
            some.
        threads
            How many threads work on values.
        """
        if interval is not None:
            require_interval(interval)
            if self.uncertainty is None:
                raise ParameterError(
                    f"this model by {self.method!r} knows no intervals; learn it with method "
                    "'auto', or with 'panel' and an interval."
                )
        placed = self._place(readings)
        places, pupils = choose_pupils(placed)
        if interval is not None:
            require_own_readings(placed)
        known = self._read_traits(traits, pupils)
        fit = self.fit.apply(pupils, known, threads)
        uncertainty = None
        if self.uncertainty is not None:
            uncertainty = self.uncertainty.apply(pupils, known)
        if placed.further is not None:
            fit = inform_fit(fit, pupils, placed.further.take(places), uncertainty)
        return Recovery(
            readings=placed,
            method=self.method,
            why=f"as learned from {self.learned_from['n_series']:,} series",
            settings=self.settings,
            fit=fit,
            threads=threads,
            interval=interval,
            uncertainty=uncertainty if pupils.n_series == placed.n_series else None,
            learned_from=self.learned_from,
        )

    def _place(self, readings: Any) -> Readings:
        if isinstance(readings, LinearReadings):
            readings = readings.to_readings()
        if isinstance(readings, Readings):
            return readings.on(self.calendar)
        from unsum.tables.intake import take_in
        from unsum.tables.rows import Options

        source = Path(readings) if isinstance(readings, str) else readings
        return take_in(source, Options.on(self.calendar)).readings(drop_bad=False)

    def _read_traits(self, source: Any, pupils: Readings) -> Traits | None:
        given = None if self.traits is None else self.traits.without_size()
        if given is None and source is not None:
            raise ParameterError("this model was learned without traits; give none.")
        if given is not None and source is None:
            raise ParameterError(
                f"this model was learned with traits ({', '.join(given.columns)}); give "
                "those of the new series: traits=..., or --traits on the command line."
            )
        read = None if given is None else given.read(source)
        if self.traits is None or not self.traits.sized:
            return read
        return add_size(read, pupils.names, levels(pupils), self.traits)

    def save(self, path: str | Path) -> None:
        """Write the model to a file that `unsum.load` reads; no pickle."""
        from unsum.saving import save

        self.require_many()
        save(self, path)

    def require_many(self) -> None:
        """Refuse to share what was learned from so few series that it shows them."""
        n_series = self.learned_from["n_series"]
        if n_series < FEWEST_TO_SHARE:
            raise ParameterError(
                f"what is learned from {n_series} series shows them; profiles are saved alone from "
                f"{FEWEST_TO_SHARE} series on."
            )
        rare = [] if self.traits is None else self.traits.rare
        if rare:
            raise ParameterError(
                f"the trait {rare[0]!r} has fewer than {FEWEST_TO_SHARE} series, which it would "
                "show; join rare kinds together, or save the recovery as a whole."
            )

    def __repr__(self) -> str:
        learned = self.learned_from
        return (
            f"Model(method={self.method!r}, {self.calendar.n_periods:,} periods from "
            f"{learned['first']} to {learned['end']}, learned from {learned['n_series']:,} series)"
        )
