"""Arrow tables to the dataframe library of the user."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from unsum.errors import ParameterError


def to_native(table: pa.Table, backend: str | None) -> Any:
    """The table as a dataframe of `backend` (pandas, polars, pyarrow); pyarrow when None."""
    import narwhals as nw

    if backend in (None, "pyarrow", "duckdb"):
        return table
    try:
        return nw.from_arrow(table, backend=backend).to_native()  # type: ignore[arg-type]
    except (ValueError, ImportError, ModuleNotFoundError) as error:
        raise ParameterError(
            f"backend {backend!r} cannot be used: {error}. Use 'pandas', 'polars' or 'pyarrow', "
            "and install it."
        ) from None
