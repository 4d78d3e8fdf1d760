"""Units: names, conversions, and tables of several."""

import numpy as np
import pytest

from tests.tables.importers.helpers import found, load
from unsum.errors import ParameterError, ReadingsError
from unsum.tables.importers.units import convert_factor, find_unit, multiply, split_unit


def bill(total, **more):
    n = len(total)
    return {
        "account": [f"a{i}" for i in range(n)],
        "start": ["2024-01-01"] * n,
        "end": ["2024-02-01"] * n,
        "usage": total,
        **more,
    }


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("KWH", "kWh"), ("kW.h", "kWh"), ("kilowatt hours", "kWh"), ("m³", "m3"), ("CCF", "ccf"),
        ("Therms", "therm"), ("cubic feet", "ft3"), ("mwh", "MWh"), ("KVARH", "KVARH"),
        (" visits ", "visits"), ("L", "L"),
    ],
)  # fmt: skip
def test_names_of_units(text, unit):
    assert find_unit(text) == unit


@pytest.mark.parametrize(
    ("column", "rest", "unit"),
    [
        ("Usage (kWh)", "Usage", "kWh"), ("usage_mwh", "usage", "MWh"), ("kWh", "", "kWh"),
        ("Consumption [m3]", "Consumption", "m3"), ("total", "total", None),
        ("annual", "annual", None), ("row", "row", None), ("w", "w", None),
    ],
)  # fmt: skip
def test_units_at_the_end_of_names(column, rest, unit):
    assert split_unit(column) == (rest, unit)


def test_conversions_agree_with_each_other():
    assert convert_factor("MWh", "kWh", None) == 1000
    assert convert_factor("therm", "kWh", None) == pytest.approx(29.3071, rel=1e-6)
    assert convert_factor("therm", "MJ", None) == pytest.approx(105.505585262)
    assert convert_factor("GJ", "therm", None) == pytest.approx(9.47817, rel=1e-6)
    assert convert_factor("ccf", "m3", None) == pytest.approx(2.8316846592)
    assert convert_factor("m3", "kWh", None) is None
    assert convert_factor("m3", "kWh", 11.2) == 11.2
    assert convert_factor("ft3", "MJ", 11.2) == pytest.approx(0.028316846592 * 11.2 * 3.6)
    assert convert_factor("kWh", "m3", 11.2) is None


def test_a_thousandth_is_rounded_once():
    values = np.arange(1000.0)
    np.testing.assert_array_equal(multiply(values, 0.001), values / 1000)
    np.testing.assert_array_equal(multiply(values, 1000.0), values * 1000)


def test_units_are_carried_through_or_converted():
    table = bill([2.0, 500.0], unit=["MWh", "kwh"])
    with pytest.raises(ReadingsError, match=r"2 units: kWh, MWh|2 units: MWh, kWh"):
        load("bills", table)
    imported = load("bills", table, to="kwh")
    assert imported.table["total"].to_pylist() == [2000.0, 500.0]
    assert imported.table["unit"].to_pylist() == ["kWh", "kWh"]
    assert "MWh became kWh: multiplied by 1000." in imported.notes
    same = load("bills", bill([2.0, 3.0], unit=["m³", "cubic metres"]))
    assert same.table["unit"].to_pylist() == ["m3", "m3"]
    assert "unit" not in load("bills", bill([1.0])).table.column_names
    other = load("bills", bill([1.0]), unit="visits")
    assert other.table["unit"].to_pylist() == ["visits"]


def test_blank_units_are_those_of_the_file():
    table = bill([2.0, 500.0], unit=["MWh", None])
    with pytest.raises(ReadingsError, match="no unit"):
        load("bills", table)
    with pytest.raises(ReadingsError, match=r"without a unit.*--unit kWh"):
        load("bills", table, to="kWh")
    imported = load("bills", table, unit="kWh", to="kWh")
    assert imported.table["total"].to_pylist() == [2000.0, 500.0]


def test_gas_becomes_energy_only_when_told_how():
    table = bill([100.0], unit=["m3"])
    with pytest.raises(ReadingsError, match=r"--calorific 11\.2"):
        load("bills", table, to="kWh")
    assert load("bills", table, to="kWh", calorific=11).table["total"].to_pylist() == [1100.0]


def test_rows_in_other_units_can_be_set_aside():
    imported = load("bills", bill([1.0, 2.0], unit=["kWh", "km"]), to="kWh", drop_bad=True)
    assert found(imported) == {"unknown-unit": [1]}
    power = bill([1.0], unit=["kW"])
    with pytest.raises(ReadingsError, match="only fine values"):
        load("bills", power, to="kWh")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "parsec"}, "to must be one of J, MJ"),
        ({"calorific": 11}, "calorific goes with an energy"),
        ({"to": "m3", "calorific": 11}, "calorific goes with an energy"),
        ({"to": "kWh", "calorific": -1}, "kWh in a cubic metre"),
    ],
)
def test_conversions_that_make_no_sense(options, message):
    with pytest.raises(ParameterError, match=message):
        load("bills", bill([1.0]), **options)


def test_totals_that_overflow_are_refused():
    with pytest.raises(ReadingsError, match="too large once they are converted"):
        load("bills", bill([1e304], unit=["GWh"]), to="J")
