"""Recoveries and models on disk: one file of plain arrays and JSON, no pickle, versioned.

Of a recovery, what is saved are readings, fit and uncertainty; values are made again from them, bit
for bit. So a loaded recovery can be added up in any way, with its intervals.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unsum.errors import TableError
from unsum.model import Model
from unsum.recovery import Recovery
from unsum.tables.write import whole_file

FORMAT = "unsum"
VERSION = 3
SUFFIX = ".unsum"
DAMAGE = (ValueError, KeyError, TypeError, EOFError, NotImplementedError, RecursionError)

# What a file may hold, by name. Nothing else is made from one.
_HOMES = {
    "AutoFit": "unsum.methods.auto",
    "Calendar": "unsum.calendar",
    "Calibration": "unsum.selection.calibrating",
    "DentonFit": "unsum.methods.denton",
    "Doubtful": "unsum.population.uncertainty",
    "EvenFit": "unsum.methods.even",
    "Finding": "unsum.findings",
    "Findings": "unsum.findings",
    "Frequency": "unsum.calendar",
    "Informed": "unsum.population.informing",
    "LongDoubtful": "unsum.population.long",
    "Measures": "unsum.measures",
    "Model": "unsum.model",
    "NMFARFit": "unsum.methods.nmf_ar",
    "NMFFit": "unsum.methods.nmf",
    "PanelFit": "unsum.methods.panel",
    "Population": "unsum.population.model",
    "Readings": "unsum.readings",
    "Recovery": "unsum.recovery",
    "StagedFit": "unsum.methods.panel",
    "Stages": "unsum.population.stages",
    "Traits": "unsum.traits",
    "Uncertainty": "unsum.intervals",
}
_LEFT_OUT = ("sample", "threads")  # not needed any more


def save(content: Recovery | Model, path: str | Path) -> None:
    """Write a recovery or a model to a file that `unsum.load` reads."""
    save_tree(content, Path(path))


def load(path: str | Path) -> Recovery | Model:
    """Read what `save` of a recovery or a model wrote; both can be applied to other readings."""
    content = load_tree(Path(path))
    if not isinstance(content, Recovery | Model):
        raise TableError(f"{path} holds neither a recovery nor a model.")
    return content


def save_tree(content: Any, path: Path) -> None:
    """Write anything that the format knows."""
    arrays: dict[str, np.ndarray] = {}
    tree = _pack(content, arrays)
    header = json.dumps({"format": FORMAT, "version": VERSION, "content": tree})
    with whole_file(path) as temporary, temporary.open("wb") as file:
        columns: dict[str, Any] = {"header": np.frombuffer(header.encode(), np.uint8), **arrays}
        np.savez_compressed(file, **columns)


def load_tree(path: Path) -> Any:
    """Read what `save_tree` wrote."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop("header")))
        known = header["format"] == FORMAT
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        raise TableError(
            f"{path} is not a saved recovery or model, or it is damaged; save it again."
        ) from error
    if not known or header.get("version") != VERSION:
        raise TableError(
            f"{path} has format {header.get('format')!r} version {header.get('version')!r}; this "
            f"is {FORMAT!r} version {VERSION}. Save it again with this version of unsum."
        )
    try:
        return _unpack(header["content"], arrays)
    except (*DAMAGE, AttributeError, pa.ArrowException) as error:
        raise TableError(f"{path} is damaged: {error}; save it again.") from error


def _pack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON; arrays are put aside under a name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": _keep(np.ascontiguousarray(value), arrays)}
    if isinstance(value, pa.Array | pa.ChunkedArray):
        sink = pa.BufferOutputStream()
        table = pa.table({"names": value})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return {"names": _keep(np.frombuffer(sink.getvalue(), np.uint8), arrays)}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_pack(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_pack(key, arrays), _pack(item, arrays)] for key, item in value.items()]}
    name = type(value).__name__
    if is_dataclass(value) and name in _HOMES:
        kept = [item.name for item in fields(value) if item.init and item.name not in _LEFT_OUT]
        return {"object": name, "fields": {key: _pack(getattr(value, key), arrays) for key in kept}}
    raise TableError(f"a {name} cannot be saved; methods of your own have no place in the format.")


def _keep(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    for name, other in arrays.items():
        if other is array:
            return name
    name = f"a{len(arrays)}"
    arrays[name] = array
    return name


def _unpack(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "names" in tree:
        with pa.ipc.open_stream(arrays[tree["names"]].tobytes()) as reader:
            return reader.read_all()["names"].combine_chunks()
    if "tuple" in tree:
        return tuple(_unpack(item, arrays) for item in tree["tuple"])
    if "list" in tree:
        return [_unpack(item, arrays) for item in tree["list"]]
    if "dict" in tree:
        return {_unpack(key, arrays): _unpack(item, arrays) for key, item in tree["dict"]}
    kind = getattr(import_module(_HOMES[tree["object"]]), tree["object"])
    return kind(**{key: _unpack(item, arrays) for key, item in tree["fields"].items()})
