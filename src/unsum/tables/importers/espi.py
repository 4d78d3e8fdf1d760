"""Green Button files (ESPI in an Atom feed), read element by element without keeping the tree.

Files come from anywhere: document types and entities are refused, and so are files that are too
large or too deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
import pyarrow as pa

from unsum.errors import TableError
from unsum.tables.source import BATCH_ROWS, Source

MOST_BYTES = 1 << 28
MOST_DEPTH = 64
MOST_TEXT = 4096  # characters of one field
MOST_CODES = 64  # characters of the qualities of one reading
CHUNK = 1 << 16
RESOURCES = ("UsagePoint", "MeterReading", "ReadingType", "IntervalBlock", "LocalTimeParameters")
_READING = {("timePeriod", "start"), ("timePeriod", "duration"), ("IntervalReading", "value"),
            ("ReadingQuality", "quality")}  # fmt: skip


@dataclass
class Entry:
    """One entry of the feed: what it is, its links, its fields, and its interval readings."""

    kind: str = ""
    own: str = ""  # the address of the entry itself
    up: str = ""
    related: list[str] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    first: int = 0  # its interval readings, in the order of the file
    stop: int = 0


@dataclass
class Feed:
    """The entries of a file, and the texts of all interval readings: start, duration, value."""

    path: Path
    entries: list[Entry] = field(default_factory=list)
    start: list[str] = field(default_factory=list)
    duration: list[str] = field(default_factory=list)
    value: list[str] = field(default_factory=list)
    quality: list[str] = field(default_factory=list)  # codes, separated by blanks

    def of_kind(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == kind]


class FeedSource(Source):
    """The interval readings of a file as a source; the first one is 1."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(feed.path.name, ["start", "duration", "value", "quality"], first_row=1)
        self.feed = feed

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        for low in range(0, max(len(self.feed.start), 1), BATCH_ROWS):
            parts = [getattr(self.feed, name)[low : low + BATCH_ROWS] for name in columns]
            arrays = [pa.array(part, pa.string()) for part in parts]
            yield pa.RecordBatch.from_arrays(arrays, columns)

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        return positions + 1

    @property
    def row_origin(self) -> str:
        return "interval readings of the file, the first is 1"


def read_feed(path: Path) -> Feed:
    """Read a Green Button file; whatever else it is becomes a sentence."""
    from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
    from defusedxml.ElementTree import (  # type: ignore[import-untyped]
        DefusedXMLParser,
        ParseError,
    )

    if path.stat().st_size > MOST_BYTES:
        raise TableError(f"{path} is larger than {MOST_BYTES >> 20} MB; split it.")
    builder = _Builder(Feed(path))
    parser = DefusedXMLParser(target=builder, forbid_dtd=True)
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                parser.feed(chunk)
        parser.close()
    except DefusedXmlException as error:
        raise TableError(
            f"{path} declares a document type or entities, which Green Button files never need and "
            "which can be harmful; it was not read."
        ) from error
    except (ParseError, UnicodeError, LookupError, ValueError) as error:
        raise TableError(f"{path} is not well-formed XML, or is cut off: {error}.") from error
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from error
    if not builder.feed.of_kind("IntervalBlock"):
        raise TableError(
            f"{path} holds no IntervalBlock, so that it is no Green Button file with usage; its "
            f"root is {builder.root[:40]!r}."
        )
    return builder.feed


class _Builder:
    """What the parser calls: collects entries and readings, and forgets the rest."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.root = ""
        self.path: list[str] = []
        self.entry = Entry()
        self.text: list[str] = []
        self.size = 0
        self.reading: dict[str, str] = {}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        self.root = self.root or name
        self.path.append(name)
        if len(self.path) > MOST_DEPTH:
            raise TableError(f"{self.feed.path} is nested too deeply for a Green Button file.")
        self.text, self.size = [], 0
        if name == "entry":
            self._close()
        elif name == "link":
            self._link(attributes.get("rel", ""), attributes.get("href", ""))
        elif name in RESOURCES and (len(self.path) < 2 or self.path[-2] not in RESOURCES):
            if self.entry.kind not in ("", name):  # resources without an entry of their own
                self._close()
            self.entry.kind = name
        elif name == "IntervalReading":
            self.reading = {}

    def data(self, text: str) -> None:
        self.size += len(text)
        if self.size <= MOST_TEXT:
            self.text.append(text)

    def end(self, tag: str) -> None:  # noqa: ARG002
        name = self.path.pop()
        parent = self.path[-1] if self.path else ""
        text = "".join(self.text).strip()
        self.text, self.size = [], 0
        if (parent, name) in _READING:
            if name == "quality":  # there may be several
                text = f"{self.reading.get('quality', '')} {text}".strip()[:MOST_CODES]
            self.reading[name] = text
        elif name == "IntervalReading":
            self.feed.start.append(self.reading.get("start", ""))
            self.feed.value.append(self.reading.get("value", ""))
            self.feed.duration.append(intern(self.reading.get("duration", "")))
            self.feed.quality.append(intern(self.reading.get("quality", "")))
        elif name == "entry":
            self._close()
        elif parent in ("entry", *RESOURCES):
            self.entry.fields.setdefault(name, text)

    def close(self) -> Any:
        self._close()

    def _link(self, relation: str, address: str) -> None:
        address = address[:MOST_TEXT]
        if relation == "self":
            self.entry.own = address
        elif relation == "up":
            self.entry.up = address
        elif relation == "related":
            self.entry.related.append(address)

    def _close(self) -> None:
        """Keep the entry, if it is of a known kind, and begin the next one."""
        self.entry.stop = len(self.feed.start)
        if self.entry.kind:
            self.feed.entries.append(self.entry)
        self.entry = Entry(first=len(self.feed.start))
