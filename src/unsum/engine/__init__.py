"""Work by chunks of series, in this process.

A chunk is a fixed range of series in canonical order, whatever the number of threads, so that
results never depend on how work was shared out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from os import cpu_count
from pathlib import Path
from typing import Any, TypeVar

from unsum.errors import ParameterError
from unsum.readings import Readings

CHUNK = 256
CHUNK_READINGS = 16_384
MIN_CHUNKS, MAX_CHUNKS = 4, 64
BLOCK_VALUES = 1 << 20

Result = TypeVar("Result")


def chunk_bounds(readings: Readings) -> list[tuple[int, int]]:
    """The chunks whose sums are formed one by one, and then added in order.

    Multiples of 256 series, with so many readings that the rest of a chunk's work is small. They
    depend on the numbers of series, readings and periods alone.
    """
    enough = max(CHUNK_READINGS, 4 * readings.n_periods)
    most = min(MAX_CHUNKS, max(MIN_CHUNKS, readings.n_readings // enough))
    size = CHUNK * max(1, -(-readings.n_series // (CHUNK * most)))
    return [(low, min(low + size, readings.n_series)) for low in range(0, readings.n_series, size)]


def block_size(n_periods: int) -> int:
    """How many series, in whole chunks, make about a million values."""
    return CHUNK * max(1, BLOCK_VALUES // (CHUNK * n_periods))


def one_blas_thread() -> AbstractContextManager[Any]:
    """BLAS works alone: sums that it shares out have other bits for other numbers of cores."""
    import scipy.linalg  # noqa: F401 (it brings a BLAS of its own, which must be there by now)
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limits


def map_blocks(
    function: Callable[[int, Readings], Result], readings: Readings, threads: int | None = None
) -> Iterator[tuple[int, Readings, Result]]:
    """Apply a function to blocks of series, a few ahead of the reader, in their order."""
    size = block_size(readings.n_periods)
    workers = count_threads(threads)
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        ahead: deque[tuple[int, Readings, Future[Result]]] = deque()
        try:
            for first in range(0, readings.n_series, size):
                part = readings[first : first + size]
                ahead.append((first, part, pool.submit(function, first, part)))
                if len(ahead) > workers:
                    first, part, future = ahead.popleft()
                    yield first, part, future.result()
            while ahead:
                first, part, future = ahead.popleft()
                yield first, part, future.result()
        finally:
            for _, _, future in ahead:
                future.cancel()


def announce_compilation(method: str, say: Callable[[str], None]) -> None:
    """Say that kernels are about to be compiled, the first time on a machine."""
    from unsum import kernels

    needed = {
        "even": "totals.meet_totals", "denton": "smooth.smooth_series",
        "nmf": "passes.pass_chunk", "nmf-ar": "autocorrelated.smooth_rows",
    }  # fmt: skip
    kernel = needed.get(method, "gaussian.explain_rows")
    cache = Path(kernels.__file__).parent / "__pycache__"
    if not any(cache.glob(f"{kernel}-*.nbi")):
        say("compiling numerical kernels, once on this machine; this takes up to half a minute")


def count_threads(threads: int | None) -> int:
    if threads is None:
        return cpu_count() or 1
    if not isinstance(threads, int) or threads < 1:
        raise ParameterError(f"threads must be at least 1; got {threads!r}.")
    return threads
