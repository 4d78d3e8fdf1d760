"""The result object: values, tables, totals, provenance."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unsum
from tests.problems import random_readings
from unsum.errors import ParameterError, UnsumError
from unsum.methods import DirectFit
from unsum.recovering import recover

BILLS = pd.DataFrame(
    {
        "series": ["a", "a", "b"],
        "start": ["2024-01-10", "2024-02-20", "2024-01-15"],
        "end": ["2024-02-10", "2024-03-10", "2024-03-10"],
        "total": [310.0, 190.0, 55.0],
    }
)


def test_the_long_table_has_series_time_value_covered():
    frame = unsum.recover(BILLS, method="even").to_frame()
    assert list(frame.columns) == ["series", "time", "value", "covered"]
    assert len(frame) == 2 * 60
    assert frame["time"].iloc[0].isoformat() == "2024-01-10"
    assert frame.groupby("series")["covered"].sum().to_dict() == {"a": 31 + 19, "b": 55}
    assert frame.query("series == 'a' and not covered")["value"].nunique() == 1


def test_totals_by_month_sum_to_the_whole_and_say_what_is_covered():
    recovery = unsum.recover(BILLS)
    months = recovery.totals("MS")
    assert list(months.columns) == ["series", "start", "end", "total", "covered"]
    sums = months.groupby("series")["total"].sum()
    np.testing.assert_allclose(sums, recovery.values.sum(axis=1))
    february = months[(months["series"] == "a") & (months["start"].astype(str) == "2024-02-01")]
    assert february["covered"].iloc[0] == pytest.approx(19 / 29)


def test_totals_between_given_dates():
    recovery = unsum.recover(BILLS)
    table = recovery.totals(["2024-01-10", "2024-02-10", "2024-03-10"])
    first = table[table["series"] == "a"]["total"].to_numpy()
    assert first[0] == pytest.approx(310.0)
    with pytest.raises(ParameterError, match="not between two periods"):
        recovery.totals(["2024-01-10", "2024-01-20T05:00"])


def test_blocks_and_values_agree_bit_for_bit():
    readings = random_readings(1, n_series=40)
    recovery = recover(readings)
    before = np.concatenate([block.values for block in recovery.blocks()])
    assert np.array_equal(before, recovery.values)
    after = np.concatenate([block.values for block in recovery.blocks()])
    assert np.array_equal(after, recovery.values)


def test_files_and_dataframes_are_recovered_directly(tmp_path):
    path = tmp_path / "bills.parquet"
    pq.write_table(pa.Table.from_pandas(BILLS), path)
    assert np.array_equal(unsum.recover(path).values, unsum.recover(BILLS).values)
    assert np.array_equal(unsum.recover(str(path)).values, unsum.recover(BILLS).values)


def test_provenance_names_version_method_and_input():
    recovery = unsum.recover(BILLS)
    provenance = recovery.provenance()
    assert provenance["unsum"] == unsum.__version__
    assert provenance["method"] == "denton"
    assert provenance["readings"]["sha256"] == recovery.readings.fingerprint()
    assert "denton" in repr(recovery)


def test_a_method_that_returns_nonsense_is_caught():
    class Nonsense:
        name = "nonsense"

        def fit(self, readings, threads=None, progress=None):
            fit = DirectFit("nothing was done")
            fit.fill = lambda first, part, values: values.fill(np.inf)
            return fit

    with pytest.raises(UnsumError, match="fail the check"):
        _ = recover(random_readings(2), Nonsense()).values


def test_a_method_that_misses_the_totals_is_made_exact():
    class Ones:
        name = "ones"

        def fit(self, readings, threads=None, progress=None):
            fit = DirectFit("ones everywhere")
            fit.fill = lambda first, part, values: values.fill(1.0)
            return fit

    readings = random_readings(3)
    even = recover(readings, "even").values
    covered = readings.covered()
    values = recover(readings, Ones()).values
    np.testing.assert_allclose(values[covered], even[covered], rtol=1e-12)
