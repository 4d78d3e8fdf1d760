"""The methods of recovery, one file each, and the names they go by.

A method is an object with its settings; `fit` learns what the series share and returns an object
that fills in values for any part of the readings. What it fills in need not be exact: `Recovery`
makes every method nonnegative and exact in the same last step, and checks it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
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
