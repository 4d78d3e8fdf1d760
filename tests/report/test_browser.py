"""The page as people meet it."""

import re

import pytest

import unsum
from unsum.experiments.town import simulate_town
from unsum.report import write_report

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """The page of a town in which one customer has a hostile name, and its recovery."""
    bills = simulate_town(40, n_days=240).bills.to_pydict()
    bills["series"] = [HOSTILE if name == "C0007" else name for name in bills["series"]]
    recovery = unsum.recover(unsum.Readings.from_frame(bills, drop_bad=True), interval=0.9)
    path = tmp_path_factory.mktemp("page") / "town.html"
    write_report(recovery, path, HOSTILE)
    return path, recovery


def opened(visit, town, **options):
    page = visit(town[0].as_uri(), **options)
    page.wait_for_selector("html[data-ready=yes]")
    return page


def test_it_loads_without_complaints_and_without_the_net(visit, town):
    page = opened(visit, town)
    page.wait_for_timeout(300)
    assert page.complaints == []
    assert page.requests == [town[0].as_uri()]
    for figure in ("series-figure", "totals-figure", "profiles", "coverage", "lengths"):
        assert page.locator(f"#{figure} canvas").count() > 0, figure
    assert page.locator("h1").inner_text() == HOSTILE


def test_search_finds_a_hostile_name_and_shows_it_as_text(visit, town):
    page = opened(visit, town)
    assert page.locator("#list button").count() == 40
    page.fill("#search", "alert")
    assert page.locator("#list button").count() == 1
    assert page.locator("#count").inner_text() == "1 series"
    assert page.locator("#shown").inner_text() == HOSTILE
    shown = page.evaluate(
        "Bokeh.documents.map(d => d.get_model_by_name('values')).find(m => m).data.y[9]"
    )
    place = town[1].readings.names.to_pylist().index(HOSTILE)
    assert shown == pytest.approx(town[1].values[place, 9], rel=1e-3)
    assert page.complaints == []


def test_series_are_ordered_and_chosen_by_click_or_keyboard(visit, town):
    page = opened(visit, town)
    page.select_option("#order", "level")
    level = town[1].values.mean(axis=1)
    names = town[1].readings.names.to_pylist()
    listed = page.locator("#list button span:first-child").all_inner_texts()
    assert listed == [names[n] for n in sorted(range(40), key=lambda n: -level[n])]
    page.locator("#list button").nth(3).click()
    assert page.locator("#shown").inner_text() == listed[3]
    page.locator("#list button").nth(4).press("Enter")
    assert page.locator("#shown").inner_text() == listed[4]
    assert page.locator("#list button[aria-pressed=true]").count() == 1


def test_hovering_tells_dates_and_values(visit, town):
    page = opened(visit, town)
    figure = page.locator("#series-figure")
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    for step in (0, 5):
        page.mouse.move(box["x"] + box["width"] / 2 + step, box["y"] + box["height"] / 2)
    tip = page.locator(".bk-tooltip-content").first
    tip.wait_for(state="visible", timeout=5000)
    text = " ".join(tip.inner_text().split())
    assert re.search(r"time: 2023-0[45]-\d\d recovered: [\d.]+ interval: [\d.]+ to [\d.]+", text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_both_schemes(visit, town, scheme):
    page = opened(visit, town, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    assert page.complaints == []
