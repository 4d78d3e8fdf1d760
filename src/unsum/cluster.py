"""The same work on a Dask cluster: chunks advanced and files written by its workers.

Workers make their state from files in a folder that all of them reach; nothing is scattered. Tasks
are pure functions of their inputs, so that what a lost worker held is made again, with the same
bits; every few iterations the state goes to files, and what came before is forgotten.
"""

from __future__ import annotations

import copy
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from unsum.engine import chunk_bounds, one_blas_thread
from unsum.errors import ParameterError, UnsumError
from unsum.factorization.chunk import Reduction, Step
from unsum.factorization.crew import Block, Keeper, Kind, Plan, State, flatten, unflatten
from unsum.readings import Readings
from unsum.recovery import Recovery
from unsum.saving import load_tree, save_tree
from unsum.tables.folders import write_part
from unsum.tables.store import StoreWriter, open_store
from unsum.tables.write import whole_file

CUT = 10  # iterations after which state goes to files
PATIENCE = 10  # seconds, until a cluster answers
STANDSTILL = 30.0  # seconds without a result, after which it is asked whether anyone works
DESERTED = 4  # times that there may be no worker at all


class Cluster:
    """A client of a cluster, and a folder that its workers and this process reach."""

    def __init__(self, client: Any, folder: Path) -> None:
        self.client, self.folder = client, folder.resolve()

    def plan(self, keeper: Keeper | None = None) -> Plan:
        """Fits of iterative methods are done by the workers."""
        return Plan(self._hire, keeper)

    def _hire(
        self,
        readings: Readings,
        scale: np.ndarray,
        H: np.ndarray,
        kind: Kind,
        threads: int | None,  # noqa: ARG002 (workers have their own)
    ) -> DaskCrew:
        return DaskCrew(self, readings, scale, H, kind)

    def store(self, readings: Readings) -> Path:
        """Readings where workers find them."""
        folder = self.folder / f"readings-{readings.fingerprint()[:16]}"
        if not (folder / "store.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            writer = StoreWriter(folder)
            for low, high in chunk_bounds(readings):
                writer.append(readings[low:high])
            writer.close(readings.calendar, readings.backend)
        return folder

    def write_parts(
        self, recovery: Recovery, bounds: list[tuple[int, int]], work: Path
    ) -> Iterator[dict[str, Any]]:
        """Files of a result, written by the workers; their records in order."""
        if recovery.readings.further is not None:
            raise ParameterError(
                "totals beyond single series are solved in one process; write without a cluster."
            )
        store = self.store(recovery.readings)
        fit = self.folder / f"fit-{recovery.readings.fingerprint()[:16]}.npz"
        save_tree(replace(recovery, readings=recovery.readings[:0]), fit)
        with understood():
            futures = self.client.map(
                _write_part, bounds, store=str(store), fit=str(fit), work=str(work.resolve()),
                pure=False,
            )  # fmt: skip
            for future in futures:
                yield _patiently(self.client, [future])[0]
                future.release()


class DaskCrew:
    """Chunks in groups, each group the result of a task; see `unsum.factorization.crew`."""

    def __init__(
        self, cluster: Cluster, readings: Readings, scale: np.ndarray, H: np.ndarray, kind: Kind
    ) -> None:
        self.client, self.sweeps = cluster.client, 0
        self.folder = cluster.folder / "fit"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.rank, self.n_series = H.shape[1], len(H)
        bounds = chunk_bounds(readings)
        per = -(-len(bounds) // min(len(bounds), max(1, len(_workers(self.client)))))
        self.groups = [bounds[k : k + per] for k in range(0, len(bounds), per)]
        for k, group in enumerate(self.groups):
            own = slice(group[0][0], group[-1][1])
            np.savez(self.folder / f"start-{k}.npz", scale=scale[own], H=H[own])
        self.kind, self.store = kind, cluster.store(readings)
        self.futures: list[Any] = []
        self.steps: list[Step] = []
        self._begin_from([None] * len(self.groups))

    def __enter__(self) -> DaskCrew:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self.futures:
            future.release()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sweep(self, step: Step) -> Iterator[Reduction]:
        with understood():
            self.steps.append(step)
            self.sweeps += 1
            for reductions in _patiently(self.client, self._advance(step), self._renew):
                for reduction in reductions:
                    yield replace(reduction, **_aligned(vars(reduction)))
            if self.sweeps % CUT == 0:
                self._cut()

    def _advance(self, step: Step) -> list[Any]:
        """All groups one step on, and what they contribute."""
        shared = self.client.submit(_same, step, pure=False)
        self.futures = [
            self.client.submit(_advance, future, shared, pure=False) for future in self.futures
        ]
        return [self.client.submit(_reductions, each, pure=False) for each in self.futures]

    def _renew(self) -> list[Any]:
        """The work since the last files, given anew."""
        steps, wanted = self.steps, []
        self._begin_from(self.base)
        self.steps = steps
        for step in steps:
            wanted = self._advance(step)
        return wanted

    def _cut(self) -> None:
        """State to files, and on from there."""
        files = [
            self.client.submit(
                _keep_group, future, str(self.folder / f"state-{k}-{self.sweeps}.npz"), pure=False
            )
            for k, future in enumerate(self.futures)
        ]
        paths: list[str | None] = _patiently(self.client, files)
        self._begin_from(paths)
        old = set(self.folder.glob("state-*.npz")) - {Path(str(path)) for path in paths}
        for path in old:
            path.unlink(missing_ok=True)

    def _begin_from(self, paths: list[str | None]) -> None:
        """Groups of chunks, made from files.

        They go where the scheduler puts them: what is tied to a worker, even loosely, is not given
        to others when all workers were lost.
        """
        self.base, self.steps = paths, []
        self.futures = []
        for k, (group, path) in enumerate(zip(self.groups, paths, strict=True)):
            start = str(self.folder / f"start-{k}.npz")
            kind = self.kind.of(slice(group[0][0], group[-1][1]))
            self.futures.append(
                self.client.submit(
                    _begin_group,
                    str(self.store),
                    group,
                    start,
                    kind,
                    path,
                    pure=False,
                )
            )

    def spread(self, function: Callable[[int], None], items: Iterable[int]) -> None:
        for item in items:
            function(item)

    def weights(self) -> np.ndarray:
        H = np.empty((self.n_series, self.rank))
        for state, (low, high) in zip(self.keep(), self._bounds(), strict=True):
            H[low:high] = state["weights"]
        return H

    def _bounds(self) -> list[tuple[int, int]]:
        return [own for group in self.groups for own in group]

    def keep(self) -> list[State]:
        with understood():
            wanted = [self.client.submit(_states, each, pure=False) for each in self.futures]
            return [state for each in _patiently(self.client, wanted) for state in each]

    def resume(self, kept: list[State]) -> None:
        left = list(kept)
        paths: list[str | None] = []
        for k, group in enumerate(self.groups):
            path = self.folder / f"state-{k}-0.npz"
            _write_states([left.pop(0) for _ in group], path)
            paths.append(str(path))
        self._begin_from(paths)


def _workers(client: Any) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


def _patiently(
    client: Any, wanted: list[Any], renew: Callable[[], list[Any]] | None = None
) -> list[Any]:
    """Results, once they are there.

    Where all workers stand idle, the work is given anew; where there have been none for long, that
    is told.
    """
    from dask.distributed import wait

    idle = alone = 0
    while True:
        with suppress(TimeoutError):
            wait(wanted, timeout=STANDSTILL)
            return list(client.gather(wanted))
        idle = 0 if any(client.processing().values()) else idle + 1
        alone = 0 if _workers(client) else alone + 1
        if alone == DESERTED:
            raise UnsumError(
                f"the cluster has had no worker for {DESERTED * STANDSTILL:g} s; start some, and "
                "run the same command: with a checkpoint it goes on from there."
            )
        if idle >= 2 and not alone and renew is not None:
            wanted, idle = renew(), 0


@contextmanager
def understood() -> Iterator[None]:
    """What a cluster can suffer, as a sentence."""
    from dask.distributed import CancelledError, KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise UnsumError(
            f"workers of the cluster died again and again on the same task ({error.task}); give "
            "them more memory, and run the same command again."
        ) from error
    except Exception as error:
        of_dask = type(error).__module__.startswith("distributed")
        if not of_dask and not isinstance(error, CancelledError | TimeoutError | OSError):
            raise
        raise UnsumError(
            f"the cluster was lost ({type(error).__name__}); start it again, and run the same "
            "command: with a checkpoint it goes on from there."
        ) from error


_SPARE: WeakKeyDictionary[Any, State] = WeakKeyDictionary()


def _same(step: Step) -> Step:
    return step


def _begin_group(
    store: str, group: list[tuple[int, int]], start: str, kind: Kind, state: str | None
) -> tuple[list[Block], list[Reduction]]:
    """Chunks made from files, as they were in the beginning or when their state was kept."""
    readings = _open(store)
    with np.load(start) as file:
        scale, H = file["scale"], file["H"]
    first = group[0][0]
    chunks = []
    for low, high in group:
        own = slice(low - first, high - first)
        chunks.append(kind.of(own).make(readings[low:high], scale[own], H[own].copy()))
    if state is not None:
        for chunk, kept in zip(chunks, _read_states(Path(state)), strict=True):
            chunk.resume(kept)
    return chunks, []


def _advance(
    held: tuple[list[Block], list[Reduction]], step: Step
) -> tuple[list[Block], list[Reduction]]:
    """New chunks, one step on; those given stay as they are."""
    chunks = [_renew(chunk) for chunk in held[0]]
    step = replace(step, **_aligned(vars(step)))
    with one_blas_thread():
        return chunks, [chunk.advance(step) for chunk in chunks]


def _renew(chunk: Any) -> Any:
    """A copy, in the memory of the one before last, which nobody needs any more."""
    fresh = copy.copy(chunk)
    vars(fresh).update(_aligned(vars(chunk)))
    state = {name: getattr(chunk, name) for name in chunk.STATE}
    spare = _SPARE.pop(chunk, {})
    for name, array in state.items():
        room = spare.get(name)
        if room is None or room.shape != array.shape or not room.flags.aligned:
            room = np.empty(array.shape, array.dtype)
        np.copyto(room, array)
        setattr(fresh, name, room)
    _SPARE[fresh] = state
    return fresh


def _aligned(fields: dict[str, Any]) -> dict[str, Any]:
    """Copies of the arrays that came over a wire to odd addresses: BLAS treats them otherwise.

    What was for reading alone stays so: compiled loops are other ones for such arrays, with other
    last bits.
    """
    moved = {}
    for name, value in fields.items():
        if isinstance(value, np.ndarray) and not value.flags.aligned:
            moved[name] = np.array(value)
            moved[name].flags.writeable = value.flags.writeable
    return moved


def _reductions(held: tuple[list[Block], list[Reduction]]) -> list[Reduction]:
    return held[1]


def _states(held: tuple[list[Block], list[Reduction]]) -> list[State]:
    return [chunk.keep() for chunk in held[0]]


def _keep_group(held: tuple[list[Block], list[Reduction]], path: str) -> str:
    _write_states(_states(held), Path(path))
    return path


def _write_states(states: list[State], path: Path) -> None:
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **flatten(states))


def _read_states(path: Path) -> list[State]:
    with np.load(path) as file:
        return unflatten({name: file[name] for name in file.files})


@lru_cache(maxsize=2)
def _open(store: str) -> Readings:
    return open_store(Path(store))


@lru_cache(maxsize=2)
def _load(fit: str, store: str) -> Recovery:
    recovery: Recovery = load_tree(Path(fit))
    return replace(recovery, readings=_open(store), threads=1)


def _write_part(own: tuple[int, int], store: str, fit: str, work: str) -> dict[str, Any]:
    with one_blas_thread():
        return write_part(_load(fit, store), own, Path(work))


@contextmanager
def cluster_of(client: Any, folder: Path | None = None) -> Iterator[Cluster]:
    """The cluster of a client, with a folder of its own in one that all of it reaches."""
    with TemporaryDirectory(prefix=".unsum-", dir=folder or Path.cwd()) as own:
        yield Cluster(client, Path(own))


@contextmanager
def join_cluster(address: str, folder: Path) -> Iterator[Cluster]:
    """`tcp://host:port`, or `local:4` for so many processes of one thread on this machine."""
    try:
        import dask
        from dask.distributed import Client, LocalCluster
    except ModuleNotFoundError:
        raise UnsumError("--dask needs Dask; install it: pip install 'unsum[dask]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # we tell it in a sentence
    if not address.startswith("local"):
        try:
            client = Client(address, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise UnsumError(f"no cluster answers at {address}: {error}.") from error
        with client:
            yield Cluster(client, folder)
        return
    count = address.removeprefix("local").removeprefix(":") or "2"
    if not count.isdigit() or int(count) < 1:
        raise ParameterError(f"--dask must be like tcp://host:8786 or local:4; got {address!r}.")
    with (
        # Or it gives up workers that take longer than 15 s to start again.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(
            n_workers=int(count), threads_per_worker=1, dashboard_address="127.0.0.1:0",
            local_directory=str(folder), silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield Cluster(client, folder)
