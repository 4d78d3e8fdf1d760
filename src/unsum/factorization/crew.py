"""Who advances the chunks: threads of this process here; others take their place elsewhere.

Chunks are fixed ranges of series, and what they contribute is added up in their order. So the
result has the same bits, whoever does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from unsum.engine import chunk_bounds, count_threads, one_blas_thread
from unsum.factorization.chunk import Reduction, Step
from unsum.factorization.chunk_aligned import make_chunk
from unsum.readings import Readings

State = dict[str, np.ndarray]


def flatten(states: list[State]) -> dict[str, Any]:
    """The states of chunks as arrays with names of their own, as files hold them."""
    return {
        f"chunk {k} {name}": array
        for k, state in enumerate(states)
        for name, array in state.items()
    }


def unflatten(arrays: Mapping[str, np.ndarray]) -> list[State]:
    """The states again; other arrays are left aside."""
    states: dict[int, State] = {}
    for key, array in arrays.items():
        if key.startswith("chunk "):
            _, number, name = key.split(" ", 2)
            states.setdefault(int(number), {})[name] = array
    return [states[k] for k in sorted(states)]


class Block(Protocol):
    """A chunk of series that can be advanced by an iteration."""

    def advance(self, step: Step) -> Reduction: ...

    def keep(self) -> State: ...

    def resume(self, state: State) -> None: ...


class Kind(Protocol):
    """How chunks are made; for a range of series, `of` holds what concerns these alone."""

    def of(self, own: slice) -> Kind: ...

    def make(self, part: Readings, scale: np.ndarray, weights: np.ndarray) -> Block: ...


@dataclass(frozen=True)
class Plain:
    """Chunks of Algorithm 1."""

    accelerate: bool = False

    def of(self, own: slice) -> Plain:  # noqa: ARG002
        return self

    def make(self, part: Readings, scale: np.ndarray, weights: np.ndarray) -> Block:
        return make_chunk(part, scale, weights, accelerate=self.accelerate)


class Crew(Protocol):
    """Chunks of all series, in their order."""

    def sweep(self, step: Step) -> Iterable[Reduction]:
        """Advance every chunk."""

    def spread(self, function: Callable[[int], None], items: Iterable[int]) -> None:
        """Call a function for each of some numbers."""

    def weights(self) -> np.ndarray:
        """The weights of all series."""

    def keep(self) -> Any:
        """What it takes to go on from here."""

    def resume(self, kept: Any) -> None:
        """Go on from what was kept."""


class Keeper(Protocol):
    """Puts the state of a descent aside now and then, where it survives the process."""

    def load(self) -> dict[str, Any] | None: ...

    def save(self, make: Callable[[], dict[str, Any]]) -> None: ...


class Threads:
    """Threads of this process; every chunk holds a view of the weights of all."""

    def __init__(
        self,
        readings: Readings,
        scale: np.ndarray,
        H: np.ndarray,
        kind: Kind,
        threads: int | None = None,
    ) -> None:
        self.H = np.ascontiguousarray(H, dtype=np.float64).copy()
        parts = [slice(*own) for own in chunk_bounds(readings)]
        self.chunks: Sequence[Block] = [
            kind.of(own).make(readings[own], scale[own], self.H[own]) for own in parts
        ]
        self.pool = ThreadPoolExecutor(count_threads(threads))
        self.alone = one_blas_thread()

    def __enter__(self) -> Threads:
        self.alone.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()
        self.alone.__exit__(None, None, None)

    def sweep(self, step: Step) -> Iterator[Reduction]:
        return self.pool.map(lambda chunk: chunk.advance(step), self.chunks)

    def spread(self, function: Callable[[int], None], items: Iterable[int]) -> None:
        list(self.pool.map(function, items))

    def weights(self) -> np.ndarray:
        return self.H

    def keep(self) -> list[State]:
        return [chunk.keep() for chunk in self.chunks]

    def resume(self, kept: list[State]) -> None:
        for chunk, state in zip(self.chunks, kept, strict=True):
            chunk.resume(state)


@dataclass(frozen=True)
class Plan:
    """Who does the work of a fit, and where its state is kept."""

    hire: Callable[
        [Readings, np.ndarray, np.ndarray, Kind, int | None], AbstractContextManager[Crew]
    ] = Threads
    keeper: Keeper | None = None
