"""What the page holds, whatever was recovered."""

import base64
import json
import re

import numpy as np
import pytest

import unsum
from unsum.errors import ParameterError
from unsum.experiments.town import simulate_town
from unsum.report import make_report
from unsum.report.choosing import choose_series, pack_series
from unsum.report.page import gather
from unsum.report.shapes import describe_profiles, group_series
from unsum.report.survey import even_steps, look_at, rhythms_of
from unsum.report.words import sum_all

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def town():
    bills = simulate_town(40, n_days=240).bills
    return unsum.recover(unsum.Readings.from_frame(bills, drop_bad=True), interval=0.9)


def numbered(n_series=12, n_periods=60, method="even", **settings):
    rng = np.random.default_rng(0)
    panel = unsum.Panel.from_values(rng.gamma(2.0, size=(n_series, n_periods)))
    return unsum.recover(unsum.aggregate(panel, unsum.AtRandom(7, seed=1)), method, **settings)


def data_of(page):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[
        1
    ]
    return json.loads(text)


def unpack(series):
    return [
        np.frombuffer(base64.b64decode(row), "<u2") / 65535 * series["unit"]
        for row in series["rows"]
    ]


def test_series_on_the_page_are_those_recovered(town):
    data = gather(town)["data"]
    names = town.readings.names.to_pylist()
    bounds = next(town.blocks()).bounds
    assert [series["name"] for series in data["series"]] == names
    for n in (0, 17, 39):
        series = data["series"][n]
        values, lower, upper = unpack(series)
        for told, true in (
            (values, town.values[n]),
            (lower, bounds.lower[n]),
            (upper, bounds.upper[n]),
        ):
            assert np.abs(told - true).max() <= series["unit"] / 65535
        own = slice(town.readings.indptr[n], town.readings.indptr[n + 1])
        assert series["start"] == town.readings.start[own].tolist()
        assert np.allclose(series["total"], town.readings.total[own], rtol=1e-5)


def test_the_words_at_the_top_give_counts_choice_and_what_was_set_aside(town):
    words = dict(gather(town)["words"])
    found = town.readings.findings
    assert f"{town.readings.n_readings:,} readings of 40 series" in words["Readings"]
    assert words["Method"].startswith("panel: ")
    assert "it split merged readings" in words["Method"]
    assert f"{town.expected_error:.0%}" in words["Expected error"]
    assert f"{found.rows_set_aside} set aside" in words["Rows"]
    assert "1 for negative-total" in words["Rows"]


def test_totals_by_month_are_those_of_the_recovery(town):
    name, rows = sum_all(town)
    table = town.totals("MS", by="all", backend="pyarrow")
    assert name == "calendar month"
    for column in ("total", "lower", "upper"):
        assert [row[column] for row in rows] == table[column].to_pylist()


@pytest.mark.parametrize(
    ("method", "settings", "n_shapes"),
    [("even", {}, 0), ("denton", {}, 0), ("nmf", {"rank": 3}, 3), ("nmf-ar", {"rank": 2}, 2)],
)
def test_every_method_has_a_page(method, settings, n_shapes):
    recovery = numbered(method=method, **settings)
    content = gather(recovery)
    assert len(content["shapes"]) == n_shapes
    assert content["history"] == (n_shapes > 0)
    assert content["by"] == "part of the range"
    assert len(content["data"]["series"][0]["rows"]) == 1  # these know no intervals
    assert "part of the range" in make_report(recovery)


def test_a_page_is_made_of_one_series_of_zeros_and_of_groups():
    zero = {"series": ["a"], "start": ["2024-01-01"], "end": ["2024-01-08"], "total": [0.0]}
    assert "a" in make_report(unsum.recover(unsum.Readings.from_frame(zero), "even"))
    feeder = {"group": ["f"] * 2, "start": [0, 3], "end": [3, 6], "total": [7.0, 9.0]}
    own = {"series": ["a", "b"], "start": [0, 0], "end": [6, 6], "total": [6.0, 8.0]}
    readings = unsum.Readings.from_frame(own, freq="period")
    readings = readings.with_groups({"f": ["a", "b", "c"]}, feeder)
    data = data_of(make_report(unsum.recover(readings, "even")))
    assert [series["name"] for series in data["series"]] == ["a", "b", "c"]
    assert data["series"][2]["total"] == []


def test_hostile_names_stay_data():
    rng = np.random.default_rng(1)
    values = rng.gamma(2.0, size=(8, 30))
    names = [HOSTILE, "<img src=x onerror=alert(1)>", "'\"&", "{{ 7 * 7 }}", "e", "f", "g", "h"]
    panel = unsum.Panel.from_values(values, names=names)
    recovery = unsum.recover(unsum.aggregate(panel, unsum.Periodic(5)), "nmf", rank=2)
    page = make_report(recovery, title=HOSTILE)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert sorted(series["name"] for series in data_of(page)["series"]) == sorted(names)
    assert page.lower().count("</script") == 3


def test_the_page_asks_nothing_of_anywhere(town):
    page = make_report(town)
    own = page[: page.index('<script type="application/json"')] + page[-6000:]
    assert not re.search(r'(src|href)="(?!#)', own)
    assert "http" not in re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]


def test_many_series_are_told_by_a_sample_that_has_the_extremes():
    recovery = numbered(n_series=1500, n_periods=400)
    survey = look_at(recovery)
    chosen = choose_series(survey, None)
    assert len(chosen) == 600
    assert np.argmax(survey.moved) in chosen
    assert np.argmax(survey.level) in chosen
    assert np.argmax(survey.hardness) in chosen
    assert len(json.dumps(pack_series(survey, chosen, None))) < 1_500_000


def test_what_lies_elsewhere_than_even_spreading_is_measured():
    readings = unsum.Readings.from_arrays(
        [0, 0, 1], [0, 2, 0], [2, 4, 4], [4.0, 2.0, 8.0], n_series=2, n_periods=4
    )
    assert even_steps(readings).tolist() == [[2, 2, 1, 1], [2, 2, 2, 2]]
    recovery = unsum.recover(readings, "denton")
    survey = look_at(recovery)
    apart = np.abs(recovery.values[0] - [2, 2, 1, 1]).sum() / 2 / 6
    assert survey.moved == pytest.approx([apart, 0.0], abs=1e-12)
    assert survey.level.tolist() == [1.5, 2.0]


def test_groups_hold_series_of_similar_shape():
    n_periods = 364
    season = 1 + 0.8 * np.cos(2 * np.pi * np.arange(n_periods) / n_periods)
    values = np.concatenate([np.tile(season, (20, 1)), np.tile(2 - season, (10, 1))])
    panel = unsum.Panel.from_values(values * np.arange(1, 31)[:, None])
    survey = look_at(unsum.recover(unsum.aggregate(panel, unsum.Periodic(7)), "even"))
    groups = group_series(survey)
    winter = [group for group in groups if group.curve[0] > 1]
    assert sum(group.n_series for group in winter) == 20
    assert sum(group.n_series for group in groups) == 30
    assert sum(group.share for group in groups) == pytest.approx(1)


def test_profiles_name_the_series_that_have_most_of_them():
    recovery = numbered(method="nmf", rank=2)
    shapes = describe_profiles(look_at(recovery))
    amounts = recovery.weights * recovery.profiles.sum(axis=0)
    first = np.argmax(amounts.sum(axis=0))
    share = amounts[:, first] / amounts.sum(axis=1)
    names = recovery.readings.names
    assert shapes[0].members[0] == str(names[int(np.argmax(share))].as_py())


def test_rhythms_follow_the_wall_clock():
    hours = unsum.Readings.from_frame(
        {"series": ["a"], "start": ["2024-03-25T00:00"], "end": ["2024-04-08T00:00"], "total": [1]},
        freq="h", tz="Europe/Paris",
    )  # fmt: skip
    day, week = rhythms_of(hours.calendar)
    assert day.places[:3].tolist() == [0, 1, 2]
    assert np.bincount(day.places)[2] == 13  # one night lacks this hour
    assert week.labels[week.places[0]] == "Mon"


def test_a_page_needs_a_name_for_browsers(town, tmp_path):
    with pytest.raises(ParameterError, match=r"must end in \.html"):
        town.report(tmp_path / "page.txt")
    town.report(tmp_path / "page.html", title="Town & country")
    assert "<h1>Town &amp; country</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")
