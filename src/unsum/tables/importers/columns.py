"""Which column holds what: the usual names, and an error where they do not tell."""

from __future__ import annotations

import re
from collections.abc import Iterable

from unsum.errors import TableError
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.units import POWER, split_unit
from unsum.tables.source import Source

# For each role the names that are sure, then those that serve when no sure one is there.
USUAL: dict[str, tuple[str, ...]] = {
    "series": (
        "series", "series id", "account", "account id", "account number", "account no", "customer",
        "customer id", "customer number", "meter", "meter id", "meter number", "meter no",
        "meter point", "metering point", "service point", "service point id", "usage point",
        "usage point id", "supply point", "premise", "premise id", "site", "site id", "mprn",
        "mpan", "mpxn", "nmi", "esiid", "esi id", "ean", "pod", "pdl", "prm", "cups",
        "unique id", "client", "client id", "household", "household id", "lclid", "project id",
    ),
    "start": (
        "start", "start date", "start time", "start datetime", "date from", "from", "from date",
        "period start", "billing start", "bill start", "bill start date", "billing start date",
        "service start", "service start date", "usage start", "usage start date", "interval start",
        "begin", "begin date", "valid from",
    ),
    "end": (
        "end", "end date", "end time", "end datetime", "date to", "to", "to date", "period end",
        "billing end", "bill end", "bill end date", "billing end date", "service end",
        "service end date", "usage end", "usage end date", "interval end", "valid to",
    ),
    "duration": (
        "duration", "days", "number of days", "billing days", "bill days", "days billed",
        "days in period", "usage days", "duration days",
    ),
    "total": (
        "total", "usage", "usage value", "consumption", "energy", "quantity", "value", "volume",
        "billed usage", "total usage", "energy used", "energy consumption", "usage amount", "",
    ),
    "index": (
        "index", "register read", "register reading", "meter reading", "meter read", "reading",
        "read", "read value", "reading value", "cumulative", "dial", "counter", "value", "",
    ),
    "value": (
        "value", "y", "read value", "usage", "usage value", "consumption", "energy", "power",
        "load", "demand", "observed", "total", "",
    ),
    "time": (
        "time", "date", "datetime", "timestamp", "ds", "read date", "reading date", "read time",
        "read datetime", "read date and end time", "read at", "date time", "date read", "day",
    ),
    "quality": (
        "quality", "read type", "reading type", "read quality", "reading quality", "quality flag",
        "estimated", "is estimated", "estimate", "is estimate", "estimation", "read status",
        "actual or estimated", "bill type",
    ),
    "unit": ("unit", "units", "uom", "unit of measure", "unit of measurement", "usage unit"),
    "serial": (
        "serial", "serial number", "serial no", "meter serial", "meter serial number", "msn",
        "device", "device id", "device number",
    ),
    "register": (
        "register", "register id", "register name", "register number", "tariff register", "rate",
        "tou", "tou code", "dial id",
    ),
    "multiplier": (
        "multiplier", "register constant", "meter constant", "constant", "meter multiplier",
        "ct ratio", "register multiplier",
    ),
    "digits": ("digits", "number of digits", "register digits", "dials", "number of dials"),
    "kind": ("read type", "kind"),
}  # fmt: skip
SECOND: dict[str, tuple[str, ...]] = {
    "series": ("id", "name", "meter serial number"),
    "end": ("bill date", "statement date", "read date", "reading date", "date"),
    "time": ("end", "start", "index", "unnamed: 0", ""),
}
_MONEY = re.compile(r"cost|charge|amount|price|\bbill total|[$€£]", re.IGNORECASE)


def find_columns(
    source: Source, asked: Asked, needed: Iterable[str], optional: Iterable[str] = ()
) -> dict[str, str]:
    """The column of every role, as named or as guessed; an optional role may have none."""
    found: dict[str, str] = {}
    required = [role for role in needed if not (role == "series" and asked.name is not None)]
    roles = {*required, *optional}
    for role in (*required, *(role for role in optional if role not in required)):
        given = asked.columns.get(role)
        if given is not None and given not in source.columns:
            raise TableError(f"{source.label} has no column {given!r}; {list_columns(source)}.")
        taken = {*asked.columns.values(), *found.values()}
        taken |= {name for name in source.columns if _squash(name) in roles - {role}}
        column = given if given is not None else guess_column(source, role, taken)
        if column is not None:
            found[role] = column
        elif role in required:
            raise TableError(
                f"{source.label} has no column that is known to hold the {role}; "
                f"{list_columns(source)}. {_remedy(role)}"
            )
    return found


def guess_column(source: Source, role: str, taken: set[str]) -> str | None:
    """The column of a usual name, where one alone has one."""
    for names in (USUAL[role], SECOND.get(role, ())):
        matches = [
            column
            for column in source.columns
            if column not in taken and _plain(column, role) in {_squash(name) for name in names}
        ]
        exact = [column for column in matches if _squash(column) == role]
        if len(matches) > 1 and len(exact) != 1:
            raise TableError(
                f"{source.label} has {len(matches)} columns that could hold the {role}: "
                f"{', '.join(map(repr, matches[:8]))}. {_remedy(role, matches[0])}"
            )
        if matches:
            return (exact or matches)[0]
    return None


def _plain(column: str, role: str) -> str:
    """A name without case, spaces and marks; amounts also without the unit at the end."""
    if role not in ("total", "index", "value"):
        return _squash(column)
    rest, unit = split_unit(column)
    if unit is None or (unit in POWER and role != "value"):  # peak demand is no total
        return _squash(column) or "?"
    return _squash(rest)


def _squash(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def unit_in_name(column: str) -> str | None:
    """The unit that a column's name ends in."""
    return split_unit(column)[1]


def ignored_money(source: Source, used: Iterable[str]) -> list[str]:
    """Columns of money, which have no part in readings."""
    return [name for name in source.columns if _MONEY.search(name) and name not in set(used)]


def list_columns(source: Source) -> str:
    """The columns of a table, for a sentence."""
    names = ", ".join(map(repr, source.columns[:12]))
    more = f" and {len(source.columns) - 12:,} more" if len(source.columns) > 12 else ""
    return f"its columns are {names}{more}"


def _remedy(role: str, example: str = "...") -> str:
    option = "unit-column" if role == "unit" else role
    text = f"Say which one it is: columns={{{role!r}: {example!r}}}, or --{option}."
    if role == "series" and example == "...":
        text += " A table of one series needs none: name='home', or --name home."
    return text


def is_called(column: str, name: str) -> bool:
    """Whether a column has this name, whatever its case and marks."""
    return _squash(column) == _squash(name)
