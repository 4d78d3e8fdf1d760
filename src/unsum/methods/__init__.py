"""The methods of recovery, one file each, and the names they go by.

A method is an object with its settings; `fit` learns what the series share and returns an object
that fills in values for any part of the readings. What it fills in need not be exact: `Recovery`
makes every method nonnegative and exact in the same last step, and checks it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any, Protocol, Self

import numpy as np

from unsum.errors import ParameterError, require_choice
from unsum.readings import Readings
from unsum.traits import Traits

Progress = Callable[[int], None]

METHODS = {
    "auto": "Auto",
    "even": "Even",
    "denton": "Denton",
    "nmf": "NMF",
    "nmf-ar": "NMFAR",
    "panel": "PanelModel",
}
MAIN_SETTINGS = {"nmf": "rank", "nmf-ar": "rank", "panel": "shrinkage"}


class Fit(Protocol):
    """What a method has learned."""

    @property
    def stop_reason(self) -> str: ...

    @property
    def profiles(self) -> np.ndarray | None: ...

    @property
    def weights(self) -> np.ndarray | None: ...

    @property
    def history(self) -> dict[str, np.ndarray]: ...

    def fill(self, first: int, part: Readings, values: np.ndarray) -> None:
        """Write the values of a part of the readings, which begins at series `first`."""

    def take(self, series: np.ndarray) -> Fit:
        """The same for some of the series, by their places."""

    def forget(self) -> Fit:
        """What was learned of all series, without anything of a single one."""

    def apply(self, readings: Readings, traits: Traits | None, threads: int | None) -> Fit:
        """The same profiles for other readings; each series is treated on its own."""


class Method(Protocol):
    """Settings, and how to learn from readings with them."""

    @property
    def name(self) -> str: ...

    def fit(
        self, readings: Readings, threads: int | None = None, progress: Progress | None = None
    ) -> Fit:
        """Learn from the readings; `progress` is told of every iteration."""


class Settings:
    """What all methods are: settings that never change, so that they are their own clone.

    `sklearn.base.clone` asks for it; nothing here needs scikit-learn.
    """

    def __sklearn_clone__(self) -> Self:
        return self


@dataclass
class DirectFit:
    """The fit of a method that treats every series on its own and learns nothing shared."""

    stop_reason: str
    profiles: None = None
    weights: None = None

    @property
    def history(self) -> dict[str, np.ndarray]:
        return {"objective": np.empty(0), "residual": np.empty(0)}

    def take(self, series: np.ndarray) -> Self:  # noqa: ARG002
        return self

    def forget(self) -> Self:
        return self

    def apply(self, readings: Readings, traits: Traits | None, threads: int | None) -> Self:  # noqa: ARG002
        return self


def make_method(method: str | Method, settings: dict[str, Any]) -> Method:
    """A method from its short name and settings, or the object itself."""
    if not isinstance(method, str):
        if not hasattr(method, "fit"):
            raise ParameterError(f"method must be a name or a method object; got {method!r}.")
        if settings:
            raise ParameterError(
                f"settings go into the method object; got {', '.join(settings)} beside it."
            )
        return method
    require_choice("method", method, tuple(METHODS))
    kind = getattr(import_module(f"unsum.methods.{method.replace('-', '_')}"), METHODS[method])
    known = [item.name for item in fields(kind)]
    for setting in settings:
        if setting not in known:
            choices = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ParameterError(f"method {method!r} has no setting {setting!r}; {choices}.")
    made: Method = kind(**settings)
    return made


def parse_method(text: str) -> Method:
    """A method from its short name; its main setting may stand behind a colon, as in `nmf:5`."""
    name, colon, value = text.strip().partition(":")
    if not colon:
        return make_method(name, {})
    if name not in MAIN_SETTINGS:
        known = ", ".join(
            f"{method}:{setting.upper()}" for method, setting in MAIN_SETTINGS.items()
        )
        raise ParameterError(f"what may stand behind a colon is {known}; got {text!r}.")
    setting = MAIN_SETTINGS[name]
    try:
        number = int(value) if value.isdecimal() else float(value)
    except ValueError:
        raise ParameterError(f"the {setting} of {name} must be a number; got {text!r}.") from None
    return make_method(name, {setting: number})


def label_method(method: Method) -> str:
    """Its name, and the settings that are not the usual ones."""
    known: tuple[Field[Any], ...] = fields(method) if is_dataclass(method) else ()
    told = []
    for item in known:
        value = getattr(method, item.name)
        if repr(value) != repr(item.default):
            plain = isinstance(value, bool | int | float | str)
            told.append(f"{item.name} {value if plain else 'given'}")
    return f"{method.name} ({', '.join(told)})" if told else method.name
