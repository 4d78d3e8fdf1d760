"""What notebooks show: the facts, as text whatever it holds, and nothing that takes time."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import unsum
from tests.problems import random_readings
from tests.test_package import loaded_by
from unsum.aggregation import Periodic, aggregate
from unsum.experiments.town import simulate_town
from unsum.findings import Finding, Findings
from unsum.panel import Panel
from unsum.readings import Readings
from unsum.recovering import recover

HOSTILE = '</script><script>alert(1)</script>"onload="x'
TAGS = {"div", "table", "tr", "th", "td", "b"}


class Page(HTMLParser):
    """The text of a page, which must be made of harmless tags that all close."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text = [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS
        assert {name for name, _ in attributes} <= {"style"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def shown(thing):
    return " ".join(" ".join(Page(thing._repr_html_()).text).split())


@pytest.fixture(scope="module")
def bills():
    return simulate_town(16).bills


def test_readings_show_counts_range_coverage_findings_and_first_rows(bills):
    readings = Readings.from_frame(bills, drop_bad=True)
    text = shown(readings)
    assert f"readings {readings.n_readings:,}" in text
    assert "range 2023-01-03 to 2024-02-22 periods 415 of 'D'" in text
    assert "of all periods are covered" in text
    assert "dropped missing-total : 1 row without a total" in text
    assert "warning negative-total" in text
    rows = readings.to_arrow().slice(0, 5).to_pylist()
    for row in rows:
        assert f"{row['series']} {row['start']} {row['end']} {row['total']:,.6g}" in text
    assert f"5 of {readings.n_readings:,} rows" in text


def test_findings_show_severity_rows_and_what_is_done(bills):
    findings = unsum.check(bills)
    text = shown(findings)
    assert (
        f"{findings.rows_read:,} read = {findings.rows_used:,} used + {findings.rows_set_aside:,} "
        "set aside"
    ) in text
    for finding in findings:
        assert f"{finding.severity} {finding.code} : {finding.sentence}" in text
        assert f"recover {finding.action}" in text
        assert all(detail in text for detail in finding.details)
    assert "nothing to remark" in shown(Findings())


def test_recoveries_show_method_reason_error_and_first_rows(bills):
    readings = Readings.from_frame(bills, range_end="2023-05-01", drop_bad=True)
    recovery = recover(readings, folds=1, interval=0.9)
    text = shown(recovery)
    assert f"method {recovery.method} why {recovery.why}" in text
    assert f"expected error {recovery.expected_error:.3f} (mean-normalised)" in text
    assert "intervals 90 %" in text
    for row in recovery.to_arrow().slice(0, 5).to_pylist():
        numbers = " ".join(f"{row[name]:,.6g}" for name in ("lower", "upper"))
        covered = "yes" if row["covered"] else "no"
        start = f"{row['series']} {row['time']} {row['value']:,.6g} {covered} {numbers}"
        assert start in text


def test_whatever_names_and_sentences_hold_is_text():
    readings = Readings.from_arrays(
        [0, 0], [0, 2], [2, 4], [1.0, 2.0], n_series=1, n_periods=5, names=[HOSTILE]
    )
    bad = Finding("gap", f"a gap of {HOSTILE}", series=(HOSTILE,), details=(HOSTILE,))
    readings = replace(readings, findings=Findings((bad,), rows_read=2))
    recovery = replace(recover(readings, "even"), why=HOSTILE, method=HOSTILE)
    for thing in (readings, readings.findings, recovery):
        assert HOSTILE in shown(thing)
        assert "<script" not in thing._repr_html_()
        assert '"onload' not in thing._repr_html_()


def test_endless_names_and_many_findings_stay_small():
    readings = Readings.from_arrays(
        [0], [0], [2], [1.0], n_series=1, n_periods=5, names=["x" * 1_000_000]
    )
    many = tuple(Finding("gap", "y" * 100_000) for _ in range(40))
    readings = replace(readings, findings=Findings(many))
    assert len(readings._repr_html_()) < 20_000
    assert "and 35 more in .findings" in shown(readings)
    assert len(recover(readings, "even")._repr_html_()) < 20_000


def test_errors_come_first():
    items = (Finding("blank-row", "a note"), Finding("gap", "a warning"), Finding("overlap", "bad"))
    text = shown(replace(random_readings(0), findings=Findings(items)))
    assert text.index("overlap") < text.index("gap") < text.index("blank-row")


def test_numbered_periods_zones_and_zeros_are_shown():
    text = shown(random_readings(3))
    assert "0 to 40" in text
    table = {"series": [7], "start": ["2024-01-01"], "end": ["2024-01-03"], "total": [0]}
    assert "48 of 'h' in Europe/Paris" in shown(Readings.from_frame(table, "h", tz="Europe/Paris"))


def test_showing_a_recovery_fills_in_one_series_at_most():
    recovery = recover(random_readings(1, n_series=50), "nmf", rank=2, max_iter=2)
    filled = []

    class Watched:
        def __getattr__(self, name):
            return getattr(recovery.fit, name)

        def fill(self, first, part, values):
            filled.append(part.n_series)
            recovery.fit.fill(first, part, values)

    watched = replace(recovery, fit=Watched())
    shown(watched)
    assert filled == [1]
    assert "values" not in watched.__dict__


def test_totals_of_groups_are_not_met_only_to_be_shown():
    truth = Panel.from_values(np.random.default_rng(1).gamma(3, 1, (3, 12)), list("abc"))
    readings = aggregate(truth, Periodic(4, offset=0))
    loads = {"group": ["g"], "start": [0], "end": [12], "total": [truth.values.sum()]}
    recovery = recover(readings, "denton", groups={"g": list("abc")}, group_totals=loads)
    before = shown(recovery)
    assert "further totals 1" in before
    assert "_joined" not in recovery.__dict__
    assert "covered" in shown(recovery.readings)
    value = recovery.values[0, 0]
    assert f"a 0 {value:,.6g} yes" not in before
    assert f"a 0 {value:,.6g} yes" in shown(recovery)


def test_showing_findings_and_readings_loads_nothing_heavy(tmp_path):
    path = tmp_path / "bills.csv"
    path.write_text("series,start,end,total\na,2024-01-01,2024-01-03,2\n")
    loaded = loaded_by(
        f"import unsum\nunsum.check({str(path)!r})._repr_html_()\n"
        f"unsum.read_readings({str(path)!r})._repr_html_()"
    )
    assert not any(name in loaded for name in ("numba", "matplotlib", "rich"))
