"""The command line as people meet it: real processes, exit codes, no tracebacks."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pv
import pytest

from unsum.experiments.town import simulate_town
from unsum.readings import Readings
from unsum.tables.panels import read_panel
from unsum.tables.write import write_table

HEADER = "series,start,end,total\n"


def run(*arguments, cwd=None):
    command = [sys.executable, "-m", "unsum", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert "Traceback" not in done.stderr
    assert "met a bug" not in done.stderr
    return done


def test_too_little_memory_is_a_sentence(monkeypatch, capsys):
    module = importlib.import_module("unsum.cli.app")

    def run_out():
        raise MemoryError

    monkeypatch.setattr(module, "app", run_out)
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 1
    assert "there is not enough memory; nothing was written" in capsys.readouterr().err


def test_check_tells_of_each_series(town, tmp_path):
    done = run("check", town / "bills.csv", "--each", tmp_path / "each.csv", "--json")
    shares = json.loads(done.stdout)["sources"]
    assert sum(shares.values()) == pytest.approx(1.0)
    table = pd.read_csv(tmp_path / "each.csv")
    bills = pd.read_csv(town / "bills.csv")
    assert set(table["series"]) <= set(bills["series"])
    assert (table["longest"] >= table["hides"]).all()
    np.testing.assert_allclose(table[["own", "panel", "open"]].sum(axis=1), 1.0)
    (tmp_path / "one.csv").write_text(HEADER + "a,2024-01-01,2024-02-01,31\n")
    done = run("check", tmp_path / "one.csv", "--each", tmp_path / "one-each.csv")
    assert done.returncode == 2
    assert "--each needs 5 series or more" in done.stderr
    assert not (tmp_path / "one-each.csv").exists()
    done = run("check", town / "bills.csv", "--each", town / "bills.csv")
    assert done.returncode == 2
    assert "is the input" in done.stderr


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A small town: its bills as CSV, its truth as Parquet."""
    folder = tmp_path_factory.mktemp("town")
    made = simulate_town(40, seed=1, n_days=180)
    write_table(made.bills, folder / "bills.csv")
    labels = made.truth.calendar.labels()
    columns = dict(zip(made.truth.names.to_pylist(), made.truth.values, strict=True))
    write_table(pa.table({"time": labels, **columns}), folder / "truth.parquet")
    return folder


def test_check_names_everything_and_fails(town):
    done = run("check", town / "bills.csv")
    assert done.returncode == 1
    for code in ("missing-total", "start-not-before-end", "overlap", "negative-total"):
        assert code in done.stdout
    assert "recover stops here; --drop-bad sets the bad rows aside" in done.stdout
    machine = json.loads(run("check", town / "bills.csv", "--json").stdout)
    assert machine["rows_read"] == machine["rows_used"] + machine["rows_set_aside"]
    assert {finding["code"] for finding in machine["findings"]} >= {"overlap", "negative-total"}


def test_check_passes_a_clean_file(tmp_path):
    path = tmp_path / "bills.csv"
    path.write_text(HEADER + "a,2024-01-01,2024-02-01,31\n")
    done = run("check", path)
    assert done.returncode == 0
    assert "nothing stops recover" in done.stdout


def test_recover_stops_on_bad_rows_and_writes_nothing(town, tmp_path):
    done = run("recover", town / "bills.csv", "-o", tmp_path / "daily.csv")
    assert done.returncode == 1
    assert "Nothing was written" in done.stderr
    assert list(tmp_path.iterdir()) == []
    machine = run("recover", town / "bills.csv", "-o", tmp_path / "daily.csv", "--json")
    assert "overlap" in json.loads(machine.stdout)["error"]
    assert machine.returncode == 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_recover_writes_an_exact_table_and_accounts_for_every_row(town, tmp_path, suffix):
    out = tmp_path / f"daily{suffix}"
    done = run("recover", town / "bills.csv", "-o", out, "--drop-bad", "--json")
    assert done.returncode == 0
    summary = json.loads(done.stdout)
    assert summary["rows_read"] == summary["rows_used"] + summary["rows_set_aside"]
    assert summary["checks"]["verified"]
    assert summary["checks"]["worst_relative_gap"] < 1e-9
    assert summary["provenance"]["method"] == "panel"
    assert summary["provenance"]["candidates"][0]["candidate"].startswith("panel")
    assert 0 < summary["provenance"]["expected_error"] < 1
    assert set(summary["seconds"]) == {"reading", "fitting", "writing"}
    aside = pv.read_csv(tmp_path / "daily.set-aside.csv")
    assert len(aside) == summary["rows_set_aside"]
    assert set(aside["reason"].to_pylist()) <= {item["code"] for item in summary["findings"]}
    panel = read_panel(out)
    assert panel.values.min() >= 0
    bills = pv.read_csv(town / "bills.csv")
    first = bills.slice(0, 1).to_pylist()[0]
    name, total = first["series"], first["total"]
    days = [str(day) for day in panel.calendar.labels().to_pylist()]
    own = slice(days.index(str(first["start"])), days.index(str(first["end"])))
    place = panel.names.to_pylist().index(name)
    assert panel.values[place, own].sum() == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        ["--method", "nmf", "--rank", "3", "--update", "nenmf", "--max-iter", "20"],
        ["--method", "nmf", "--start-from", "random", "--seed", "7", "--tol", "1e-3"],
        ["--method", "nmf-ar", "--rank", "3", "--max-iter", "20", "--rho", "1"],
        ["--method", "nmf-ar", "--strength", "paper", "--max-iter", "20"],
    ],
)
def test_recover_with_profiles(town, tmp_path, options):
    out = tmp_path / "daily.parquet"
    done = run("recover", town / "bills.csv", "-o", out, "--drop-bad", "--json", *options)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["provenance"]["method"] == options[1]
    assert summary["checks"]["worst_relative_gap"] < 1e-9
    assert "iterations" in summary["provenance"]["stop_reason"]
    adjusted = [finding["code"] for finding in summary["adjustments"]]
    assert adjusted == (["adjusted"] if "--rho" in options else [])


def test_recover_chooses_among_given_candidates(town, tmp_path):
    out = tmp_path / "daily.parquet"
    more = ["--candidates", "even, nmf:2,nmf:3", "--drop-bad", "--json"]
    done = run("recover", town / "bills.csv", "-o", out, *more)
    assert done.returncode == 0, done.stderr
    provenance = json.loads(done.stdout)["provenance"]
    tried = {row["candidate"]: row["chosen"] for row in provenance["candidates"]}
    assert set(tried) == {"even", "nmf (rank 2)", "nmf (rank 3)"}
    (chosen,) = [label for label, taken in tried.items() if taken]
    assert chosen.startswith(provenance["method"])


def test_recover_wide_and_other_columns(tmp_path):
    path = tmp_path / "bills.csv"
    path.write_text(
        "account;from;till;kWh\nA;01/01/2024;31/01/2024;31,5\nB;01/01/2024;31/01/2024;62\n"
    )
    out = tmp_path / "days.csv"
    done = run(
        "recover", path, "-o", out, "--series", "account", "--start", "from", "--end", "till",
        "--total", "kWh", "--inclusive-end", "--date-format", "%d/%m/%Y", "--decimal", ",",
        "--wide", "--method", "even", "--to", "2024-02-03",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert out.read_text().splitlines()[0] == '"time","A","B"'
    assert read_panel(out).values.shape == (2, 33)
    np.testing.assert_allclose(read_panel(out).values[1], 2.0)


def test_aggregate_by_scheme_rule_and_dates(town, tmp_path):
    daily = tmp_path / "daily.parquet"
    run("recover", town / "bills.csv", "-o", daily, "--drop-bad", "--method", "denton")
    for options in (["--every", "30"], ["--every", "30", "--scheme", "random", "--ends"]):
        out = tmp_path / "readings.csv"
        assert run("aggregate", daily, "-o", out, *options).returncode == 0
        assert run("check", out).returncode == 0
    assert run("aggregate", daily, "-o", tmp_path / "months.csv", "--rule", "MS").returncode == 0
    clean = tmp_path / "clean.csv"
    run("aggregate", town / "truth.parquet", "-o", clean, "--every", "20", "--ends")
    again = tmp_path / "again.csv"
    fine = tmp_path / "fine.parquet"
    assert run("recover", clean, "-o", fine, "--method", "denton").returncode == 0
    done = run("aggregate", fine, "-o", again, "--dates", clean)
    assert done.returncode == 0, done.stderr
    expected, found = pv.read_csv(clean), pv.read_csv(again)
    assert expected.drop(["total"]).equals(found.drop(["total"]))
    np.testing.assert_allclose(found["total"], expected["total"], rtol=1e-9)


def test_totals_of_recovered_days_say_what_is_covered(tmp_path):
    (tmp_path / "bills.csv").write_text(HEADER + "a,2024-01-11,2024-03-01,50\n")
    for suffix in (".csv", ".parquet"):
        daily, out = tmp_path / f"daily{suffix}", tmp_path / "months.csv"
        run("recover", tmp_path / "bills.csv", "-o", daily, "--from", "2024-01-01")
        assert run("totals", daily, "-o", out, "--rule", "MS").returncode == 0
        table = pv.read_csv(out).to_pylist()
        assert [row["covered"] for row in table] == pytest.approx([21 / 31, 1.0])
        assert [row["total"] for row in table] == pytest.approx([31.0, 29.0])


def test_totals_by_month(town, tmp_path):
    out = tmp_path / "months.csv"
    assert run("totals", town / "truth.parquet", "-o", out, "--rule", "MS").returncode == 0
    table = pv.read_csv(out)
    assert table.column_names == ["series", "start", "end", "total"]
    truth = read_panel(town / "truth.parquet")
    assert sum(table["total"].to_pylist()) == pytest.approx(truth.values.sum())


def test_compare_prints_both_errors(town):
    done = run("compare", town / "truth.parquet", "--every", "30", "--methods", "even,denton,auto")
    assert done.returncode == 0
    assert "normalised" in done.stdout
    assert "paper's" in done.stdout
    machine = json.loads(
        run(
            "compare", town / "truth.parquet", "--runs", "2", "--ends", "--json", "--methods",
            "even, nmf:2",
        ).stdout
    )  # fmt: skip
    assert [row["method"] for row in machine["results"]] == ["even", "nmf:2"]
    for row in machine["results"]:
        assert row["paper"] == pytest.approx(row["paper_covered"])
        assert 0.1 < row["normalised"] < 0.6


def test_demo_writes_and_prints_what_it_promises(tmp_path):
    done = run("demo", "--out", "here", "--customers", "60", cwd=tmp_path)
    assert done.returncode == 0
    assert "unsum check here/readings.csv" in done.stdout
    made = {path.name for path in (tmp_path / "here").iterdir()}
    assert made == {
        "readings.csv", "daily.parquet", "daily.set-aside.csv", "customers.png", "report.html",
    }  # fmt: skip
    assert (tmp_path / "here" / "customers.png").read_bytes().startswith(b"\x89PNG")
    follow = run("check", "here/readings.csv", cwd=tmp_path)
    assert follow.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["recover", "absent.csv", "-o", "x.csv"], 1, "absent.csv does not exist"),
        (["recover", "bills.csv", "-o", "x.txt"], 2, "x.txt must end in .csv or .parquet"),
        (["recover", "bills.csv", "-o", "bills.csv"], 2, "is the input"),
        (["recover", "bills.csv", "-o", "no/x.csv"], 1, "the folder no does not exist"),
        (["recover", "bills.csv", "-o", "x.csv", "--freq", "7h"], 2, "freq '7h' is not a known"),
        (["recover", "bills.csv", "-o", "x.csv", "--tz", "Mars"], 2, "tz 'Mars' is not a known"),
        (["recover", "bills.csv", "-o", "x.csv", "--method", "magic"], 2, "got 'magic'"),
        (["recover", "bills.csv", "-o", "x.csv", "--snap", "up"], 2, "snap must be one of"),
        (["recover", "bills.csv", "-o", "x.csv", "--rank", "2"], 2, "has no setting 'rank'"),
        (["recover", "bills.csv", "-o", "x.csv", "--candidates", "nmf:x"], 2, "must be a number"),
        (
            ["recover", "bills.csv", "-o", "x.csv", "--method", "nmf", "--rank", "2"],
            2,
            "rank must be a whole number from 1 to 1",
        ),
        (
            ["recover", "bills.csv", "-o", "x.csv", "--method", "nmf-ar", "--strength", "big"],
            2,
            "--strength must be a number or 'paper'",
        ),
        (["recover", "bills.csv", "-o", "x.csv", "--from", "soon"], 2, "'soon' is not a date"),
        (["recover", "bills.csv"], 2, "-o"),
        (["check", "bills.csv", "--total", "kwh"], 1, "no column 'kwh'"),
        (["aggregate", "bills.csv", "-o", "x.csv"], 2, "give one of --every, --rule and --dates"),
        (["aggregate", "bills.csv", "-o", "x.csv", "--every", "3"], 1, "no column 'time'"),
        (["compare", "bills.csv", "--methods", "even,odd"], 2, "got 'odd'"),
        (["compare", "bills.csv", "--scheme", "odd"], 1, "no column 'time'"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_mistakes_end_in_a_sentence_and_an_exit_code(tmp_path, arguments, code, message):
    (tmp_path / "bills.csv").write_text(HEADER + "a,2024-01-01,2024-02-01,31\n")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bills.csv"]


def test_progress_is_silent_when_nobody_looks(town, tmp_path):
    done = run("recover", town / "bills.csv", "-o", tmp_path / "out.parquet", "--drop-bad")
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["totals", "aggregate"])
def test_inputs_are_never_overwritten(tmp_path, command):
    path = tmp_path / "f.csv"
    path.write_text("series,time,value\na,2024-01-01,1\na,2024-01-02,1\n")
    options = ["--every", "1"] if command == "aggregate" else []
    done = run(command, path, "-o", path, *options)
    assert done.returncode == 2
    assert "is the input" in done.stderr
    aside = tmp_path / "daily.set-aside.csv"
    aside.write_text(HEADER + "a,2024-01-01,2024-01-02,1\na,2024-01-05,2024-01-03,1\n")
    before = aside.read_text()
    done = run("recover", aside, "-o", tmp_path / "daily.csv", "--drop-bad")
    assert done.returncode == 2
    assert aside.read_text() == before
    assert not (tmp_path / "daily.csv").exists()


def test_rows_set_aside_stand_as_they_were_with_the_sentence_of_their_own_finding(tmp_path):
    path = tmp_path / "bills.csv"
    path.write_bytes(
        b"row,series,start,end,total,note\n"
        b"1,a,2024-01-01,2024-02-01,31,caf\xe9\n"
        b"2,a,soon,2024-03-01,31,caf\xe9\n"
        b"3,a,2024-03-01,2024-04-01,lots,x\n"
        b"4,a,2024-03-01\n"
    )
    done = run("recover", path, "-o", tmp_path / "out.csv", "--drop-bad")
    assert done.returncode == 0, done.stderr
    rows = pv.read_csv(tmp_path / "out.set-aside.csv").to_pylist()
    assert [row["unsum_row"] for row in rows] == [3, 4, 5]
    assert [row["unsum_reason"] for row in rows] == [
        "unreadable-value", "unreadable-value", "malformed-row",
    ]  # fmt: skip
    assert "column 'start'" in rows[0]["unsum_sentence"]
    assert "column 'total'" in rows[1]["unsum_sentence"]
    assert rows[2]["row"] == "4,a,2024-03-01"


def test_dates_of_another_file_are_accounted_for(tmp_path):
    (tmp_path / "fine.csv").write_text(
        "series,time,value\na,2024-01-01,1\na,2024-01-02,2\na,2024-01-03,3\n"
    )
    dates = tmp_path / "dates.csv"
    dates.write_text("series,start,end\na,2024-01-01,2024-01-03\na,2024-01-03,2024-01-09\n\n")
    done = run("aggregate", tmp_path / "fine.csv", "-o", tmp_path / "o.csv", "--dates", dates)
    assert done.returncode == 0
    assert "outside-range: 1 reading" in done.stdout
    assert "(row 3)" in done.stdout
    dates.write_text("series,start,end\na,2024-01-01,2024-01-03,9\n")
    done = run("aggregate", tmp_path / "fine.csv", "-o", tmp_path / "o.csv", "--dates", dates)
    assert done.returncode == 1
    assert "row 2" in done.stderr
    assert "--drop-bad" not in done.stderr


def test_numbered_periods_make_the_round_trip(tmp_path):
    (tmp_path / "bills.csv").write_text(HEADER + "a,10,20,10\na,20,40,200\n")
    fine, again = tmp_path / "fine.csv", tmp_path / "again.csv"
    assert run("recover", tmp_path / "bills.csv", "-o", fine, "--freq", "period").returncode == 0
    for options in (["--dates", tmp_path / "bills.csv"], ["--every", "10", "--offset", "0"]):
        done = run("aggregate", fine, "-o", again, *options)
        assert done.returncode == 0, done.stderr
    assert pv.read_csv(again)["start"].to_pylist() == [10, 20, 30]


def test_names_that_the_terminal_cannot_show_do_no_harm(tmp_path):
    path = tmp_path / "bills.csv"
    path.write_text(HEADER + "caf\u00e9 :smile: [red],2024-01-05,2024-01-01,1\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "unsum", "check", str(path)],
        capture_output=True, check=False, env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 1
    assert b"caf\\xe9 :smile: [red]" in done.stdout


def test_version():
    import unsum

    assert run("--version").stdout.strip() == f"unsum {unsum.__version__}"


def test_intervals_tails_and_saved_recoveries(tmp_path):
    town = simulate_town(40, n_days=180)
    bills, model = tmp_path / "bills.csv", tmp_path / "bills.unsum"
    write_table(town.bills, bills)
    days, tail = tmp_path / "days.csv", tmp_path / "tail.csv"
    done = run(
        "recover", bills, "-o", days, "--drop-bad", "--interval", 0.9, "--unbilled", tail, "--save",
        model, "--to", "2024-03-10", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["unbilled"] == str(tail)
    assert told["provenance"]["interval"] == 0.9
    table = pd.read_csv(days)
    assert list(table.columns) == ["series", "time", "value", "covered", "lower", "upper"]
    assert (table["lower"] <= table["value"]).all()
    assert (table["value"] <= table["upper"]).all()
    tails = pd.read_csv(tail)
    assert list(tails.columns) == ["series", "start", "end", "total", "lower", "upper"]
    groups = tmp_path / "groups.csv"
    names = table["series"].unique()
    pd.DataFrame({"series": names, "group": ["a", "b"] * (len(names) // 2)}).to_csv(groups)
    out = tmp_path / "months.csv"
    for by in ("all", groups):
        done = run("totals", model, "-o", out, "--by", by, "--interval", 0.8)
        assert done.returncode == 0, done.stderr
        months = pd.read_csv(out)
        assert (months["lower"] <= months["total"]).all()
    assert months["group"].unique().tolist() == ["a", "b"]
    done = run("totals", model, "-o", out)
    assert done.returncode == 0, done.stderr
    assert pd.read_csv(out)["series"].nunique() == len(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recover", "{bills}", "-o", "{out}", "--interval", 2], "interval must lie between"),
        (["recover", "{bills}", "-o", "{out}", "--interval", 0.9, "--wide"], "no place for"),
        (["recover", "{bills}", "-o", "{out}", "--save", "{out}"], "must end in .unsum"),
        (["recover", "{bills}", "-o", "{out}", "--indicators", "none.csv"], "does not exist"),
        (["recover", "{bills}", "-o", "{out}", "--traits", "{bills}"], "for each series"),
        (["recover", "{bills}", "-o", "{out}", "--unbilled", "{out}"], "for two outputs"),
        (["recover", "{bills}", "-o", "{out}", "--traits", "{out}"], "is an input"),
        (["totals", "{out}", "-o", "{bills}", "--by", "all"], "need a recovery kept by"),
        (["totals", "{bills}.unsum", "-o", "{out}"], "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, arguments, message):
    bills, out = tmp_path / "bills.csv", tmp_path / "out.csv"
    town = simulate_town(20, n_days=120)
    write_table(Readings.from_frame(town.bills, drop_bad=True).to_arrow(), bills)
    places = {"bills": str(bills), "out": str(out)}
    done = run(*(str(each).format(**places) for each in arguments))
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())
    assert not out.exists()


def test_traits_predict_customers_without_bills(tmp_path):
    bills, traits = tmp_path / "bills.csv", tmp_path / "traits.csv"
    readings = Readings.from_frame(simulate_town(40, n_days=180).bills, drop_bad=True)
    write_table(readings.to_arrow(), bills)
    names = [*readings.names.to_pylist(), "new"]
    kinds = ["flat" if n % 2 else "house" for n in range(len(names))]
    pd.DataFrame({"series": names, "kind": kinds}).to_csv(traits, index=False)
    out = tmp_path / "days.parquet"
    done = run("recover", bills, "-o", out, "--traits", traits)
    assert done.returncode == 0, done.stderr
    predicted = pd.read_parquet(tmp_path / "days.predicted.parquet")
    assert predicted["series"].unique().tolist() == ["new"]
    assert len(predicted) == readings.n_periods
    assert (predicted["value"] > 0).all()
