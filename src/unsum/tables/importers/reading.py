"""Tables to sheets: the columns that matter, found and parsed."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unsum.errors import TableError
from unsum.findings import MAX_DETAILS
from unsum.tables.importers.asked import Asked
from unsum.tables.importers.columns import find_columns, ignored_money
from unsum.tables.importers.sheet import Labels, Sheet
from unsum.tables.ledger import Ledger
from unsum.tables.moments import NAIVE, MomentParser, Moments
from unsum.tables.rows import (
    DATE_ONLY,
    MISSING,
    UNREADABLE,
    MomentColumn,
    parse_totals,
    plain_column,
)
from unsum.tables.source import Source, cell_text

MOMENTS = ("start", "end", "time")
LABELS = ("series", "serial", "register", "quality", "unit", "kind")


def read_sheet(
    asked: Asked,
    source: Source,
    required: tuple[str, ...],
    optional: tuple[str, ...] = (),
    *,
    columns: dict[str, str] | None = None,
    date_format: str | None = None,
    numbered: bool = False,
) -> Sheet:
    """Find the columns, read them, and say which they are."""
    found = find_columns(source, asked, required, optional) if columns is None else columns
    sheet = _read(asked, source, found, asked.date_format or date_format, numbered=numbered)
    if not len(sheet) and not source.skipped:
        raise TableError(f"{source.label} has a header but no rows; add readings to it.")
    taken = ", ".join(f"{role} from {column!r}" for role, column in list(found.items())[:12])
    sheet.notes.append(f"Columns: {taken}.")
    money = ignored_money(source, found.values())
    if money:
        sheet.notes.append(f"Ignored: {', '.join(map(repr, money))}.")
    if "series" not in found:
        path = getattr(source, "path", None)
        name = asked.name or (path.stem if path is not None else "series")
        sheet.labels["series"] = Labels(np.zeros(len(sheet), np.int32), [name])
        sheet.notes.append(f"All rows are of one series, {name!r}.")
    return sheet


def number_groups(*columns: np.ndarray) -> np.ndarray:
    """The number of each row's group: rows that are alike in all columns, in their order."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = np.unique(column, return_inverse=True)[1].ravel()
        together = numbers * (int(codes.max(initial=0)) + 1) + codes
        numbers = np.unique(together, return_inverse=True)[1].ravel()
    return numbers


def _read(
    asked: Asked,
    source: Source,
    columns: dict[str, str],
    date_format: str | None,
    *,
    numbered: bool,
) -> Sheet:
    parser = MomentParser(date_format, numbered=numbered)
    parts: dict[str, list[pa.Array]] = defaultdict(list)
    moments: dict[str, list[Moments]] = defaultdict(list)
    numbers: dict[str, list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
    samples: dict[str, dict[int, str]] = defaultdict(dict)
    position = 0
    try:
        for batch in source.batches(list(dict.fromkeys(columns.values()))):
            for role, name in columns.items():
                column = plain_column(batch.column(name))
                bad = np.zeros(len(column), bool)
                if role in LABELS:
                    parts[role].append(_encode(column))
                elif role in MOMENTS:
                    parsed = parser.parse(column)
                    moments[role].append(parsed)
                    bad = parsed.unreadable
                else:
                    numbers[role].append(parse_totals(column, asked.decimal))
                    bad = (numbers[role][-1][1] & UNREADABLE) > 0
                for i in np.flatnonzero(bad)[: MAX_DETAILS - len(samples[role])]:
                    samples[role][position + int(i)] = cell_text(column, int(i))
            position += len(batch)
    except pa.ArrowException as error:
        raise TableError(
            f"{source.label} holds a column of a kind that cannot be understood: {error}"
        ) from error
    sheet = Sheet(asked, source, columns, Ledger(source, position), samples=dict(samples))
    for role in columns:
        if role in LABELS:
            sheet.labels[role] = _join_labels(parts[role])
        elif role in MOMENTS:
            sheet.moments[role] = _join_moments(moments[role], numbered=numbered)
        else:
            values = [each for each, _ in numbers[role]] or [np.empty(0)]
            flags = [each for _, each in numbers[role]] or [np.empty(0, np.uint8)]
            sheet.numbers[role] = np.concatenate(values)
            sheet.flags[role] = np.concatenate(flags)
    return sheet


def _encode(column: pa.Array) -> pa.Array:
    """Names as a dictionary of texts, blanks as nulls; whole numbers without a decimal point."""
    if pa.types.is_floating(column.type):
        with suppress(pa.ArrowInvalid):
            column = column.cast(pa.int64())
    text = column.cast(pa.string())
    blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(text), ""), False)
    return pc.dictionary_encode(pc.replace_with_mask(text, blank, pa.scalar(None, pa.string())))


def _join_labels(parts: list[pa.Array]) -> Labels:
    if not parts:
        return Labels(np.empty(0, np.int32), [])
    encoded = pa.chunked_array(parts).unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    names = encoded.dictionary
    order = np.asarray(pc.sort_indices(names))
    rank = np.append(np.argsort(order), -1).astype(np.int32)
    return Labels(
        rank[np.asarray(pc.fill_null(encoded.indices, -1))], names.take(order).to_pylist()
    )


def _join_moments(parts: list[Moments], *, numbered: bool) -> MomentColumn:
    def gather(arrays: list[np.ndarray], kind: type) -> np.ndarray:
        return np.concatenate(arrays) if arrays else np.empty(0, kind)

    flags = gather([each.missing for each in parts], bool) * MISSING
    flags = flags | gather([each.unreadable for each in parts], bool) * UNREADABLE
    flags = flags | gather([each.date_only for each in parts], bool) * DATE_ONLY
    offset = gather([each.offset for each in parts], np.int32)
    return MomentColumn(
        wall=gather([each.wall for each in parts], np.int64),
        flags=flags.astype(np.uint8),
        offset=None if (offset == NAIVE).all() else offset,
        tz=next((each.tz for each in parts if each.tz), None),
        numbered=numbered,
    )
