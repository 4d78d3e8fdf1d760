"""Cumulative reads: the index of a meter at a date. What two reads differ by is a reading."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from unsum.errors import ParameterError
from unsum.findings import MAX_DETAILS
from unsum.tables.importers.asked import Asked, number_or_column
from unsum.tables.importers.chains import Reads, subtract
from unsum.tables.importers.clock import Clock, read_clock
from unsum.tables.importers.imported import Draft, Imported, finish
from unsum.tables.importers.reading import number_groups, read_sheet
from unsum.tables.importers.repeats import settle_repeats
from unsum.tables.importers.sheet import Sheet
from unsum.tables.importers.units import multiply
from unsum.tables.ledger import count

REQUIRED = ("series", "time", "index")
OPTIONAL = ("quality", "unit", "serial", "register", "multiplier", "digits")
MOST_DIGITS = 15


def import_registers(
    asked: Asked,
    *,
    multiplier: float | str | None = None,
    digits: int | str | None = None,
    add_registers: bool = False,
    keep_negative: bool = False,
) -> Imported:
    """Reads of cumulative registers; each two that follow one another make a reading."""
    asked.check_roles(REQUIRED + OPTIONAL)
    fixed = {}
    for role, given in (("multiplier", multiplier), ("digits", digits)):
        fixed[role], column = number_or_column(role, given)
        if column is not None:
            asked = replace(asked, columns={**asked.columns, role: column})
    optional = tuple(role for role in OPTIONAL if fixed.get(role) is None)
    sheet = read_sheet(asked, asked.open_table(), REQUIRED, optional)
    sheet.judge((*REQUIRED, *({"multiplier"} & set(sheet.columns))))
    size = _register_size(sheet, fixed["digits"])
    constant = _constants(sheet, fixed["multiplier"])
    clock, moments = read_clock(sheet, ("time",))
    scale = sheet.scale("index")
    estimated = sheet.estimated()

    reads = _gather(sheet, clock, moments["time"], size, constant)
    keep = settle_repeats(
        sheet.ledger, reads.position, reads.chain, reads.moment, reads.index,
        lambda i: f"{reads.name(i)!r}, {clock.text(reads.moment[i])}",
        remedy="keep the right one of each, or name the column of serial numbers (--serial)",
        estimated=None if estimated is None else estimated[reads.position],
    )  # fmt: skip
    reads = reads.take(keep)
    pairs, amount = subtract(reads, keep_negative=keep_negative)
    first, last = reads.position[pairs], reads.position[pairs + 1]
    draft = Draft(
        series=pa.array(reads.names, pa.string()).take(pa.array(reads.register[pairs])),
        start=reads.moment[pairs],
        end=reads.moment[pairs + 1],
        total=multiply(multiply(amount, constant[last]), scale.factor[last]),
        estimated=None if estimated is None else estimated[first] | estimated[last],
        unit=scale.unit,
    )
    if add_registers and "register" in sheet.labels:
        draft = _add_up(sheet, draft, first, last)
    return finish(asked, draft, clock, sheet.ledger, sheet.notes)


def _register_size(sheet: Sheet, fixed: float | None) -> np.ndarray:
    """Where each row's register begins again at zero: a power of ten, or never."""
    if fixed is not None and not (fixed.is_integer() and 1 <= fixed <= MOST_DIGITS):
        raise ParameterError(f"digits must be whole, 1 to {MOST_DIGITS}; got {fixed:g}.")
    digits = np.full(len(sheet), np.nan if fixed is None else fixed)
    if "digits" in sheet.numbers:
        digits = sheet.numbers["digits"]
        bad = ~np.isnan(digits) & ~(
            (np.floor(digits) == digits) & (digits >= 1) & (digits <= MOST_DIGITS)
        )
        _refuse(sheet, "digits", bad, f"whole numbers of digits, 1 to {MOST_DIGITS}")
        digits = np.where(bad, np.nan, digits)
    size = np.where(np.isnan(digits), np.inf, 10.0 ** np.nan_to_num(digits))
    too_large = np.abs(sheet.numbers["index"]) >= size
    _refuse(sheet, "index", too_large, "reads that fit in the digits of their register")
    return size


def _constants(sheet: Sheet, fixed: float | None) -> np.ndarray:
    """What each row's index is multiplied by."""
    if "multiplier" not in sheet.numbers:
        return np.full(len(sheet), 1.0 if fixed is None else fixed)
    constant = sheet.numbers["multiplier"]
    _refuse(sheet, "multiplier", ~(constant > 0) & ~np.isnan(constant), "positive numbers")
    return constant


def _refuse(sheet: Sheet, role: str, bad: np.ndarray, what: str) -> None:
    where = np.flatnonzero(bad & sheet.ledger.in_use)
    if len(where):
        sheet.ledger.add(
            "unreadable-value",
            f"{count(len(where), 'row')} where column {sheet.columns[role]!r} should hold {what}; "
            "correct it.",
            where,
            details=(
                f"{sheet.where(i)}: {sheet.numbers[role][i]:.15g}" for i in where[:MAX_DETAILS]
            ),
            set_aside=where,
        )


def _gather(
    sheet: Sheet, clock: Clock, moments: np.ndarray, size: np.ndarray, constant: np.ndarray
) -> Reads:
    """Reads in use. A chain is one register of one meter, with one constant and one unit."""
    names, register = _name_registers(sheet)
    position = np.flatnonzero(sheet.ledger.in_use)
    parts = [register[position], constant[position]]
    if "serial" in sheet.labels:
        parts.append(_serials(sheet, register, moments)[position])
    if "unit" in sheet.labels:
        parts.append(sheet.labels["unit"].codes[position])
    chain = number_groups(*parts)
    return Reads(
        names, clock, sheet.ledger, position, register[position], chain, moments[position],
        sheet.numbers["index"][position], size[position],
    )  # fmt: skip


def _name_registers(sheet: Sheet) -> tuple[list[str], np.ndarray]:
    """The name of every register, and the number of each row's: the meter's, or meter/register."""
    meters = sheet.labels["series"]
    if "register" not in sheet.labels:
        return meters.names, meters.codes
    labels = sheet.labels["register"]
    both = meters.codes.astype(np.int64) * (len(labels.names) + 1) + labels.codes + 1
    distinct, codes = np.unique(both, return_inverse=True)
    names = []
    for each in distinct:
        meter, register = divmod(int(each), len(labels.names) + 1)
        name = meters.names[meter] if meters.names else ""
        names.append(f"{name}/{labels.names[register - 1]}" if register else name)
    return names, codes.ravel()


def _serials(sheet: Sheet, register: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Serial numbers; a row without one has that of the read before it, or of the next."""
    codes = sheet.labels["serial"].codes.copy()
    places = np.arange(len(codes))
    order = np.lexsort((places, moments, register))
    for way in (order, order[::-1]):
        latest = np.maximum.accumulate(np.where(codes[way] >= 0, places, 0))
        alike = register[way][latest] == register[way]
        codes[way] = np.where(alike, codes[way][latest], codes[way])
    return codes


def _add_up(sheet: Sheet, draft: Draft, before: np.ndarray, rows: np.ndarray) -> Draft:
    """One reading of a meter for those of all its registers over the same time.

    `before` and `rows` are the rows of the reads that each reading lies between.
    """
    meters, labels = sheet.labels["series"], sheet.labels["register"]
    owner = meters.codes[rows]
    pairs = np.unique(owner.astype(np.int64) * (len(labels.names) + 1) + labels.codes[rows])
    wanted = np.bincount(pairs // (len(labels.names) + 1), minlength=len(meters.names))
    group = number_groups(owner, draft.start, draft.end)
    first = np.unique(group, return_index=True)[1]
    whole = np.bincount(group) == wanted[owner[first]]
    apart, joined = np.flatnonzero(~whole[group]), np.flatnonzero(whole[group])
    if len(apart):
        sheet.ledger.add(
            "unmatched-registers",
            f"{count(len(apart), 'reading')} over a time for which not all registers of the meter "
            "have one; import each register as a series of its own, without add_registers "
            "(--add-registers).",
            rows[apart],
            details=(
                f"{sheet.name(rows[i])!r}, register {labels.of(rows[i])!r}, "
                f"up to {sheet.where(rows[i])}"
                for i in apart[:MAX_DETAILS]
            ),
            set_aside=np.setdiff1d([before[apart], rows[apart]], [before[joined], rows[joined]]),
        )
    sheet.notes.append("The registers of a meter were added up.")
    soft = draft.estimated
    return replace(
        draft,
        series=pa.array(meters.names, pa.string()).take(pa.array(owner[first[whole]])),
        start=draft.start[first[whole]],
        end=draft.end[first[whole]],
        total=np.bincount(group, draft.total)[whole],
        estimated=None if soft is None else np.bincount(group, soft)[whole] > 0,
    )
