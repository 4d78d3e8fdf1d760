"""The exceptions of unsum. Every message is a sentence that names the value and the remedy."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unsum.findings import Findings


class UnsumError(Exception):
    """Root of everything that unsum raises on purpose."""


class ParameterError(UnsumError, ValueError):
    """An argument or option has a value that cannot be used."""


class TableError(UnsumError):
    """A file or table cannot be read or written at all."""


class ReadingsError(UnsumError):
    """The rows of a table cannot be used as they are; `findings` says which and why."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        super().__init__(findings.error_text())


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the choices, in a sentence."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(f"{name} must be one of {listed}; got {value!r}.")


def require_count(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}; got {value!r}.")
