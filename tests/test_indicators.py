"""What is known about periods: tables of indicators, and what they add."""

import numpy as np
import pandas as pd
import pytest

import unsum
from unsum.aggregation import Periodic, aggregate
from unsum.calendar import Calendar
from unsum.errors import ParameterError, TableError
from unsum.experiments.compare import measure_recovery
from unsum.indicators import make_indicators
from unsum.panel import Panel
from unsum.population.dates import average_dates
from unsum.population.learn import Aim
from unsum.recovering import recover

DAYS = 150


def heated(seed=0, n_series=80):
    """Series that follow the weather, more or less, on days of 2024; and the temperatures."""
    rng = np.random.default_rng(seed)
    season = 10 + 8 * np.sin(np.arange(DAYS) * 2 * np.pi / 365)
    weather = np.convolve(rng.normal(0, 3, DAYS + 4), np.ones(5) / 2.2, "valid")
    effect = np.abs(rng.normal(0.05, 0.02, (n_series, 1)))
    own = 0.1 * rng.normal(0, 1, (n_series, DAYS))
    values = np.maximum(1 + effect * (18 - season - weather) + own, 0.02)
    values *= rng.lognormal(0, 1, (n_series, 1))
    edges = np.arange(DAYS + 1) * 86_400_000_000 + 1_704_067_200_000_000
    calendar = Calendar(unsum.calendar.Frequency.parse("D"), None, edges)
    return Panel.from_values(values, [f"s{n:03}" for n in range(n_series)], calendar), (
        season + weather
    )


@pytest.fixture(scope="module")
def case():
    truth, temperature = heated()
    return truth, temperature, aggregate(truth, Periodic(15))


def error_of(case, **settings):
    truth, _, readings = case
    recovery = recover(readings, **settings)
    return measure_recovery(truth, readings, recovery.values).normalised_covered, recovery


def test_the_weather_helps_and_noise_does_no_harm(case):
    without, _ = error_of(case)
    with_weather, recovery = error_of(case, indicators=case[1])
    assert with_weather < 0.8 * without
    assert "indicators" in recovery.candidates[0]["candidate"]
    assert recovery.settings["indicators"] == ["indicator 1"]
    noise = np.random.default_rng(1).normal(0, 1, (DAYS, 2))
    assert error_of(case, indicators=noise)[0] < 1.03 * without


def test_tables_files_and_arrays_are_the_same(case, tmp_path):
    _, temperature, readings = case
    days = pd.date_range("2023-12-20", periods=DAYS + 30)
    longer = np.concatenate([np.zeros(12), temperature - 20, np.zeros(18)])
    frame = pd.DataFrame({"time": days, "temperature": longer})
    frame.to_csv(tmp_path / "weather.csv", index=False)
    expected = make_indicators(temperature - 20, readings.calendar).values
    for source in (frame, tmp_path / "weather.csv", str(tmp_path / "weather.csv")):
        found = make_indicators(source, readings.calendar)
        assert found.names == ("temperature",)
        np.testing.assert_allclose(found.values, expected)
    assert repr(found) == "Indicators(temperature)"


def test_calendar_indicators_are_weekdays_and_hours():
    truth, _ = heated(n_series=2)
    days = make_indicators("calendar", truth.calendar)
    assert days.names[-1] == "sunday"
    first_sunday = int(np.flatnonzero(days.values[:, -1])[0])
    assert truth.calendar.text(first_sunday) == "2024-01-07"
    assert days.directions.shape == (DAYS, 6)
    np.testing.assert_allclose(days.directions.T @ days.directions, np.eye(6), atol=1e-12)
    edges = np.arange(24 * 14 + 1) * 3_600_000_000 + 1_704_067_200_000_000
    hours = Calendar(unsum.calendar.Frequency.parse("h"), None, edges)
    found = make_indicators("calendar", hours)
    assert len(found.names) == 6 + 2 * 23
    assert found.values[:, found.names.index("hour 8 of a day off")].sum() == 4
    with pytest.raises(ParameterError, match="calendar indicators need days"):
        make_indicators("calendar", Calendar.numbered(30))


def test_holidays_are_those_of_a_country_or_a_part_of_it():
    edges = np.arange(367) * 86_400_000_000 + 1_704_067_200_000_000
    year = Calendar(unsum.calendar.Frequency.parse("D"), None, edges)
    for country, expected in (
        ("pt", {"2024-01-01", "2024-03-29", "2024-04-25", "2024-12-25"}),
        ("DE-BY", {"2024-01-01", "2024-05-30"}),  # Corpus Christi is one in Bavaria
    ):
        found = make_indicators(f"calendar:{country}", year)
        assert found.names[-1] == "holiday"
        days = {year.text(int(day)) for day in np.flatnonzero(found.values[:, -1])}
        assert expected <= days
        assert "2024-01-06" not in days  # a Saturday
    hours = Calendar(
        unsum.calendar.Frequency.parse("h"), None,
        np.arange(24 * 7 + 1) * 3_600_000_000 + 1_704_067_200_000_000,
    )  # fmt: skip
    found = make_indicators("calendar:PT", hours)  # a Monday, and the first of January
    assert found.values[8, found.names.index("hour 8 of a day off")] == 1
    with pytest.raises(ParameterError, match=r"no holidays are known for 'XX'.*ISO 3166"):
        make_indicators("calendar:XX", year)
    with pytest.raises(ParameterError, match="no holidays are known for 'US-ZZ'"):
        make_indicators("calendar:US-ZZ", year)


def test_wrong_indicators_are_named(case, tmp_path):
    _, temperature, readings = case
    frame = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=40), "t": temperature[:40]})
    holes = temperature.copy()
    holes[7] = np.nan
    for source, kind, message in (
        (frame, TableError, "has no row for 2024-02-10"),
        (temperature[:9], ParameterError, "have 9 rows, the readings 150 periods"),
        (holes, ParameterError, "has no number at 2024-01-08"),
        (np.random.default_rng(1).random((DAYS, 101)), ParameterError, "101 indicators are more"),
        (tmp_path / "none.csv", TableError, "none.csv"),
    ):
        with pytest.raises(kind, match=message):
            recover(readings, indicators=source)
    with pytest.raises(ParameterError, match="method 'nmf' has no setting 'indicators'"):
        recover(readings, "nmf", indicators=temperature)


def test_shrinkage_keeps_what_lies_along_indicators():
    rng = np.random.default_rng(3)
    root = rng.normal(0, 1, (20, 6))
    covariance = root @ root.T
    directions = np.linalg.qr(rng.normal(0, 1, (20, 2)))[0]
    shrunk = Aim(1.0, 1, directions).shrink(covariance)
    along = directions @ directions.T
    rest = np.eye(20) - along
    expected = along @ covariance @ along + average_dates(rest @ covariance @ rest)
    np.testing.assert_allclose(shrunk, expected, atol=1e-10)
    assert np.linalg.eigvalsh(shrunk)[0] > -1e-10
    assert np.array_equal(Aim(0.0, 4, directions).shrink(covariance), covariance)
