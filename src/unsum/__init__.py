"""unsum undoes sums: fine nonnegative series from totals over time intervals, exactly."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "AtRandom": "unsum.aggregation",
    "Calendar": "unsum.calendar",
    "Finding": "unsum.findings",
    "Findings": "unsum.findings",
    "LinearReadings": "unsum.linear",
    "Model": "unsum.model",
    "Panel": "unsum.panel",
    "ParameterError": "unsum.errors",
    "Periodic": "unsum.aggregation",
    "Readings": "unsum.readings",
    "ReadingsError": "unsum.errors",
    "Recovery": "unsum.recovery",
    "TableError": "unsum.errors",
    "UnsumError": "unsum.errors",
    "aggregate": "unsum.aggregation",
    "project_autocorrelation": "unsum.factorization.autocorrelation",
    "check": "unsum.reading",
    "import_readings": "unsum.tables.importers",
    "load": "unsum.saving",
    "read_panel": "unsum.tables.panels",
    "read_readings": "unsum.reading",
    "recover": "unsum.recovering",
}

__all__ = [*_HOMES, "__version__"]

if TYPE_CHECKING:
    from unsum.aggregation import AtRandom, Periodic, aggregate
    from unsum.calendar import Calendar
    from unsum.errors import ParameterError, ReadingsError, TableError, UnsumError
    from unsum.factorization.autocorrelation import project_autocorrelation
    from unsum.findings import Finding, Findings
    from unsum.linear import LinearReadings
    from unsum.model import Model
    from unsum.panel import Panel
    from unsum.reading import check, read_readings
    from unsum.readings import Readings
    from unsum.recovering import recover
    from unsum.recovery import Recovery
    from unsum.saving import load
    from unsum.tables.importers import import_readings
    from unsum.tables.panels import read_panel


def __getattr__(name: str) -> Any:
    """Public names are imported when first used, so that `import unsum` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'unsum' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
