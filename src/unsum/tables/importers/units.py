"""Units of totals: their names, and conversions that were asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from unsum.errors import ParameterError
from unsum.findings import MAX_DETAILS
from unsum.tables.importers.joined import find_row
from unsum.tables.ledger import Ledger, count

ENERGY = {  # in kWh; a BTU is that of the International Table, a therm 100,000 of them
    "J": 1 / 3.6e6, "MJ": 1 / 3.6, "GJ": 1000 / 3.6, "Wh": 0.001, "kWh": 1.0, "MWh": 1000.0,
    "GWh": 1e6, "BTU": 1055.05585262 / 3.6e6, "MMBTU": 1055.05585262 / 3.6,
    "therm": 105.505585262 / 3.6,
}  # fmt: skip
VOLUME = {  # in cubic metres; a gallon is the US one
    "m3": 1.0, "L": 0.001, "ft3": 0.028316846592, "ccf": 2.8316846592, "Mcf": 28.316846592,
    "gal": 0.003785411784,
}  # fmt: skip
POWER = {"W": "Wh", "kW": "kWh", "MW": "MWh"}  # and what an hour of each is

_OTHER_NAMES = {
    "kwhr": "kWh", "kwhrs": "kWh", "kwhs": "kWh", "kilowatthour": "kWh", "kilowatthours": "kWh",
    "watthour": "Wh", "watthours": "Wh", "megawatthour": "MWh", "megawatthours": "MWh",
    "therms": "therm", "thm": "therm", "joule": "J", "joules": "J", "megajoule": "MJ",
    "megajoules": "MJ", "gigajoules": "GJ", "btus": "BTU",
    "m³": "m3", "cubicmetre": "m3", "cubicmetres": "m3", "cubicmeter": "m3", "cubicmeters": "m3",
    "cbm": "m3", "cum": "m3", "litre": "L", "litres": "L", "liter": "L", "liters": "L",
    "ft³": "ft3", "cf": "ft3", "cubicfoot": "ft3", "cubicfeet": "ft3", "cuft": "ft3",
    "hcf": "ccf", "gallon": "gal", "gallons": "gal", "kilowatt": "kW", "kilowatts": "kW",
    "watt": "W", "watts": "W",
}  # fmt: skip
_NAMES = {each.lower(): each for each in (*ENERGY, *VOLUME, *POWER)} | _OTHER_NAMES
_AT_END = re.compile(r"(.*?)[\s_\-]*[(\[]?\s*([^\s_\-()\[\]]+)\s*[)\]]?\s*")


def find_unit(text: str) -> str:
    """The usual name of a unit; one that is not known stays as it is written."""
    plain = re.sub(r"[\s._\-]", "", text).lower()
    return _NAMES.get(plain, text.strip())


def split_unit(name: str) -> tuple[str, str | None]:
    """A column name without the unit at its end, and that unit: 'usage (kWh)', 'kwh'."""
    match = _AT_END.fullmatch(name)
    if match and match[2].lower() in _NAMES and match[2].lower() not in ("j", "l", "w"):
        return match[1], _NAMES[match[2].lower()]
    return name, None


def check_conversion(to: str | None, calorific: float | None) -> None:
    """Refuse early what nothing can be converted to."""
    if to is not None and find_unit(to) not in {**ENERGY, **VOLUME}:
        raise ParameterError(f"to must be one of {', '.join([*ENERGY, *VOLUME])}; got {to!r}.")
    if calorific is None:
        return
    if to is None or find_unit(to) not in ENERGY:
        raise ParameterError("calorific goes with an energy to convert to: to='kWh' (--to kWh).")
    if isinstance(calorific, bool) or not 0 < float(calorific) < 1e6:
        raise ParameterError(
            f"calorific must be the kWh in a cubic metre, such as 11.2; got {calorific!r}."
        )


def convert_factor(unit: str, to: str, calorific: float | None) -> float | None:
    """What a total is multiplied by; None when the one unit does not become the other."""
    for family in (ENERGY, VOLUME):
        if unit in family and to in family:
            return 1.0 if unit == to else family[unit] / family[to]
    if unit in VOLUME and to in ENERGY and calorific is not None:
        return VOLUME[unit] * float(calorific) / ENERGY[to]
    return None


def multiply(values: np.ndarray, factor: np.ndarray | float) -> np.ndarray:
    """Products; by a thousandth and its like, quotients, which are rounded as people expect."""
    over = np.round(1.0 / np.asarray(factor))
    whole = (over > 1) & (np.abs(over * factor - 1.0) < 1e-15)
    with np.errstate(over="ignore"):  # what is too large is judged at the end
        return np.where(whole, values / np.where(whole, over, 1.0), values * factor)


@dataclass(frozen=True)
class Scale:
    """The unit that totals are written in, and what each row is multiplied by."""

    unit: str | None
    factor: np.ndarray  # one for each row
    notes: tuple[str, ...] = ()


def settle_units(
    codes: np.ndarray,
    units: list[str | None],
    ledger: Ledger,
    to: str | None,
    calorific: float | None = None,
) -> Scale:
    """One unit for all rows still in use; rows that cannot have it are findings.

    `codes` is the place of each row's unit in `units`; None there is a row that names none.
    """
    factor = np.ones(len(codes))
    present = np.unique(codes[ledger.in_use])
    if to is None:
        names = {units[code] for code in present}
        if len(names) > 1:
            _judge_mixed(codes, units, ledger)
        return Scale(next(iter(names), None), factor)
    target = find_unit(to)
    notes = []
    for code in present:
        unit = units[code]
        times = None if unit is None else convert_factor(unit, target, calorific)
        rows = np.flatnonzero((codes == code) & ledger.in_use)
        if times is None:
            _judge_unknown(unit, target, rows, ledger)
        elif unit != target:
            factor[rows] = times
            notes.append(f"{unit} became {target}: multiplied by {times:.6g}.")
    return Scale(target, factor, tuple(dict.fromkeys(notes)))


def _judge_mixed(codes: np.ndarray, units: list[str | None], ledger: Ledger) -> None:
    used = np.flatnonzero(ledger.in_use)
    first: dict[str, int] = {}
    for position in used[np.unique(codes[used], return_index=True)[1]]:
        first.setdefault(units[codes[position]] or "no unit", int(position))
    ledger.stop(
        "mixed-units",
        f"totals are in {len(first)} units: {', '.join(first)}; say which one to convert them to: "
        "to='kWh' (--to kWh); with drop_bad=True (--drop-bad) what cannot be converted is set "
        "aside.",
        positions=np.array(sorted(first.values())),
        details=(f"{find_row(ledger.source, i)} is in {unit}" for unit, i in first.items()),
    )


def _judge_unknown(unit: str | None, to: str, rows: np.ndarray, ledger: Ledger) -> None:
    if unit is None:
        remedy = "name the unit of the file: unit='kWh' (--unit kWh)"
        sentence = f"{count(len(rows), 'row')} without a unit, which cannot become {to}; {remedy}."
    else:
        remedy = "leave the rows out"
        if unit in VOLUME and to in ENERGY:
            remedy = "give the kWh in a cubic metre: calorific=11.2 (--calorific 11.2)"
        elif unit in POWER:
            remedy = "only fine values in it can be converted"
        sentence = (
            f"{count(len(rows), 'row')} in {unit[:40]!r}, which cannot become {to}; {remedy}."
        )
    ledger.add(
        "unknown-unit",
        sentence,
        rows,
        details=(find_row(ledger.source, int(i)) for i in rows[:MAX_DETAILS]),
        set_aside=rows,
    )
