"""What the tests of importers share."""

from pathlib import Path

from tests.tables.helpers import assert_accounted
from unsum.tables.importers import import_readings

SAMPLES = Path(__file__).parent / "samples"


def load(kind, source, **options):
    """Import a sample by its name, or any source, and check that no row is lost."""
    source = SAMPLES / source if isinstance(source, str) else source
    imported = import_readings(kind, source, **options)
    assert_accounted(imported.findings)
    assert imported.table.column_names[:4] == ["series", "start", "end", "total"]
    return imported


def rows(imported):
    """The readings as tuples of texts and numbers."""
    names = ("series", "start", "end", "total")
    return [
        (row["series"], str(row["start"]), str(row["end"]), row["total"])
        for row in imported.table.select(names).to_pylist()
    ]


def found(imported_or_error):
    return {each.code: each.rows.tolist() for each in imported_or_error.findings}
