"""Settings shared by all tests: reproducible, without a clock, and on fresh kernels."""

from pathlib import Path

from hypothesis import settings

import unsum

settings.register_profile("unsum", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("unsum")


def drop_stale_kernels():
    """Numba notices when a kernel's own file changes, not when a file it calls into does."""
    kernels = Path(unsum.__file__).parent / "kernels"
    newest = max(path.stat().st_mtime for path in kernels.glob("*.py"))
    for compiled in kernels.glob("__pycache__/*.nb[ic]"):
        if compiled.stat().st_mtime < newest:
            compiled.unlink()


drop_stale_kernels()
