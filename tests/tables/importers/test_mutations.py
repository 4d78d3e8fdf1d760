"""Damaged files end in a sentence or in a table whose rows are accounted for, never otherwise."""

import random
from contextlib import suppress

import numpy as np
import pytest

from tests.tables.importers.helpers import SAMPLES, load
from unsum.errors import UnsumError

CASES = [
    ("registers", "registers.csv", {"digits": 5}),
    ("registers", "registers_bad.csv", {}),
    ("registers", "registers_day_night.csv",
     {"date_format": "%d/%m/%Y", "decimal": ",", "add_registers": True}),
    ("bills", "bills.csv", {"end": "inclusive"}),
    ("bills", "opower.tsv", {}),
    ("bills", "bills_ends.csv", {"from_previous": True}),
    ("opendsm", "opendsm.csv", {}),
    ("nixtla", "nixtla.csv", {}),
    ("wide", "wide.csv", {"tz": "Europe/Berlin"}),
    ("end-stamped", "hdf.csv", {"tz": "Europe/Dublin"}),
    ("nem12", "nem12.csv", {}),
    ("nem13", "nem13.csv", {}),
    ("green-button", "green_button.xml", {"to": "kWh"}),
]  # fmt: skip
PIECES = [
    b"", b",", b'"', b"\n", b"9" * 30, b"-5", b"nan", b"inf", b"1e300", b"<", b"&", b"\xff", b"\0",
    b"2024-13-45", b"9999-12-31", b"+01:00", b"</entry>", b"<entry>", b"V", b"200,", b"kW", b" ",
]  # fmt: skip


def mutate(data, rng):
    """Cut, repeat, replace or insert a few pieces."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        low = rng.randrange(len(data) + 1)
        high = min(len(data), low + rng.choice([0, 1, 2, 10, 100]))
        middle = rng.choice([b"", data[low:high] * 2, rng.choice(PIECES)])
        data = data[:low] + middle + data[high:]
    return data


@pytest.mark.parametrize(("kind", "sample", "options"), CASES, ids=lambda each: str(each)[:20])
def test_damaged_files(tmp_path, kind, sample, options):
    rng = random.Random(f"{kind} {sample}")
    path = tmp_path / sample
    whole = (SAMPLES / sample).read_bytes()
    for _ in range(40):
        path.write_bytes(mutate(whole, rng))
        with suppress(UnsumError):
            imported = load(kind, path, drop_bad=rng.random() < 0.7, **options)
            assert np.isfinite(imported.table["total"].to_numpy()).all()
            imported.write(tmp_path / "out.csv")
