"""What is asked of an importer, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unsum.errors import ParameterError, TableError, require_choice
from unsum.tables.importers.joined import Joined
from unsum.tables.importers.units import check_conversion
from unsum.tables.rows import Options
from unsum.tables.source import Source, open_source


@dataclass(frozen=True)
class Asked:
    """The options that all formats share."""

    format: str
    sources: tuple[Any, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    unit: str | None = None
    to: str | None = None
    calorific: float | None = None
    tz: str | None = None
    date_format: str | None = None
    decimal: str = "."
    drop_bad: bool = False

    def __post_init__(self) -> None:
        if self.tz is not None:
            object.__setattr__(self, "tz", str(self.tz))  # a ZoneInfo gives its name
        Options(tz=self.tz, date_format=self.date_format, decimal=self.decimal)  # checks them
        check_conversion(self.to, self.calorific)

    def refuse(self, *names: str) -> None:
        """Refuse options that say nothing about this format."""
        for name in names:
            if getattr(self, name) not in (None, {}):
                raise ParameterError(f"{name} has no meaning for format {self.format!r}.")

    def check_roles(self, roles: tuple[str, ...]) -> None:
        """Refuse columns for roles that this format does not have."""
        for role in self.columns:
            require_choice(f"columns of format {self.format!r}: a key", role, roles)

    def open_table(self) -> Source:
        """The table, or several tables one after the other."""
        opened = [open_source(with_index(each)) for each in self.sources]
        return opened[0] if len(opened) == 1 else Joined(opened)

    def paths(self) -> list[Path]:
        """The files, for formats that are no tables."""
        paths = []
        for each in self.sources:
            if not isinstance(each, str | Path):
                raise ParameterError(
                    f"format {self.format!r} is read from files; give a path, not a "
                    f"{type(each).__name__}."
                )
            path = Path(each)
            if not path.is_file():
                what = "is a folder; give a file" if path.is_dir() else "does not exist"
                raise TableError(f"{path} {what}; check the name and the folder.")
            paths.append(path)
        return paths


def with_index(source: Any) -> Any:
    """A frame of pandas whose index holds times, or has a name, with that index as columns."""
    if not hasattr(source, "reset_index"):
        return source
    index = source.index
    named = any(name is not None for name in index.names)
    return source.reset_index() if named or type(index).__name__ == "DatetimeIndex" else source


def number_or_column(name: str, given: float | str | None) -> tuple[float | None, str | None]:
    """An option that is a number for all rows, or the name of a column."""
    if given is None:
        return None, None
    try:
        number = float(given)
    except (TypeError, ValueError):
        if not isinstance(given, str):
            raise ParameterError(
                f"{name} must be a number or the name of a column; got {given!r}."
            ) from None
        return None, given
    if not (np.isfinite(number) and number > 0):
        raise ParameterError(f"{name} must be positive; got {given!r}.")
    return number, None
