"""Compiled loops. They take plain arrays and import nothing of ours.

Readings of a partition arrive as `indptr, start, stop, total`: series n owns the readings
`indptr[n]` to `indptr[n + 1]`, each the total over the periods `start` to `stop` (excluded),
disjoint and in order of time.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def drop_stale_cache(folder: Path) -> bool:
    """Remove compiled kernels that are older than any source here; say whether there were some.

    Numba notices when a kernel's own file changes, but not when a file it calls into does.
    """
    compiled = list(folder.glob("__pycache__/*.nb[ic]"))
    newest = max(path.stat().st_mtime for path in folder.glob("*.py"))
    if all(path.stat().st_mtime >= newest for path in compiled):
        return False
    for path in compiled:
        path.unlink(missing_ok=True)
    return True


with suppress(OSError):  # a folder that cannot be written holds no cache of ours
    drop_stale_cache(Path(__file__).parent)
