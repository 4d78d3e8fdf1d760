"""Readings on disk, as flat arrays that are mapped into memory and read where they are needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unsum.calendar import Calendar, Frequency
from unsum.findings import Findings
from unsum.readings import Readings

TYPES = {
    "sizes": np.int64, "start": np.int32, "stop": np.int32, "total": np.float64,
    "estimated": np.bool_, "active": np.int32, "bounded": np.bool_,
}  # fmt: skip


class StoreWriter:
    """Takes readings part by part, series in the order of their names."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._files: dict[str, Any] = {}
        self._names: Any = None

    def append(self, part: Readings) -> None:
        columns: dict[str, np.ndarray | None] = {
            "sizes": np.diff(part.indptr), "start": part.start, "stop": part.stop,
            "total": part.total, "estimated": part.estimated, "active": part.active,
            "bounded": part.bounded,
        }  # fmt: skip
        for name, column in columns.items():
            if column is not None:
                if name not in self._files:
                    self._files[name] = (self.folder / f"{name}.bin").open("wb")
                self._files[name].write(np.ascontiguousarray(column, TYPES[name]).data)
        if self._names is None:
            schema = pa.schema([("names", part.names.type)])
            self._names = pa.ipc.new_file(str(self.folder / "names.arrow"), schema)
        self._names.write_batch(pa.record_batch([part.names], ["names"]))

    def close(self, calendar: Calendar, backend: str | None = None) -> None:
        """Without this, there is no store: what describes it comes last."""
        for file in self._files.values():
            file.close()
        if self._names is not None:
            self._names.close()
        np.save(self.folder / "edges.npy", calendar.edges)
        told = {
            "freq": calendar.frequency.text, "tz": calendar.tz, "backend": backend,
            "columns": sorted(self._files),
        }  # fmt: skip
        (self.folder / "store.json").write_text(json.dumps(told), encoding="utf-8")


def open_store(folder: Path, findings: Findings | None = None) -> Readings:
    """The readings of a store; their arrays stay on disk until they are looked at."""
    told = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    columns = {
        name: np.asarray(np.memmap(folder / f"{name}.bin", TYPES[name], "r"))
        for name in told["columns"]
    }
    with pa.memory_map(str(folder / "names.arrow")) as file:
        names = pa.ipc.open_file(file).read_all()["names"].combine_chunks()
    bounded = columns.get("bounded")
    return Readings(
        names=names,
        calendar=Calendar(Frequency.parse(told["freq"]), told["tz"], np.load(folder / "edges.npy")),
        indptr=np.concatenate([[0], np.cumsum(columns["sizes"])]),
        start=columns["start"],
        stop=columns["stop"],
        total=columns["total"],
        active=columns["active"].reshape(-1, 2),
        estimated=columns.get("estimated"),
        bounded=None if bounded is None else bounded.reshape(-1, 2),
        backend=told["backend"],
        findings=Findings() if findings is None else findings,
    )
