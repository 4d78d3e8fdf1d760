"""The local page: what it does for its user, and what it refuses to others."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from urllib.parse import quote

import pyarrow.csv as pv
import pytest
from playwright.sync_api import expect

from unsum.experiments.town import simulate_town
from unsum.tables.write import write_table

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A real server with a temporary folder of its own: its port and that folder."""
    folder = tmp_path_factory.mktemp("server")
    process = subprocess.Popen(
        [sys.executable, "-m", "unsum", "serve", "--port", "0", "--no-browser", "--max-mb", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment(folder),
    )  # fmt: skip
    first = process.stdout.readline()
    yield int(re.search(r"http://127\.0\.0\.1:(\d+)", first)[1]), folder
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=20)
    assert list(folder.iterdir()) == []  # nothing is left behind
    assert complaints == ""


def _environment(folder):
    return os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}


def ask(port, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response, text


def key_of(port):
    _, page = ask(port, "GET", "/")
    return re.search(rb'name="unsum-key" content="([^"]+)"', page)[1].decode()


@pytest.fixture(scope="module")
def bills(tmp_path_factory):
    path = tmp_path_factory.mktemp("bills") / "bills.csv"
    table = simulate_town(30, n_days=240).bills
    names = [HOSTILE if name == "C0003" else name for name in table["series"].to_pylist()]
    table = table.set_column(0, "account", [names]).rename_columns(
        ["account", "start", "end", "kWh", *table.column_names[4:]]
    )
    write_table(table, path)
    return path


def test_a_file_is_checked_recovered_looked_at_and_downloaded(visit, server, bills, tmp_path):
    page = visit(f"http://127.0.0.1:{server[0]}/", accept_downloads=True)
    page.set_input_files("#file", bills)
    page.wait_for_selector("#understand:visible")
    assert page.locator("#preview tr").count() == 6
    assert page.locator("select[name=series]").input_value() == "account"
    page.select_option("select[name=total]", "kWh")
    expect(page.locator("#verdict")).to_contain_text("rows:")
    assert page.locator(".finding.error").count() > 0
    assert page.locator("#run").is_disabled()
    page.check("input[name=drop_bad]")
    page.select_option("select[name=interval]", "0.9")
    expect(page.locator("#run")).to_be_enabled()
    page.click("#run")
    page.wait_for_selector("#result:visible", timeout=120_000)
    assert "30 series" in page.locator("#facts").inner_text()
    report = page.frame_locator("#report")
    report.locator("html[data-ready=yes]").wait_for()
    report.locator("#search").fill("onerror")
    assert report.locator("#shown").inner_text() == HOSTILE
    assert report.locator("h1").inner_text() == "bills.csv"
    with page.expect_download() as waiting:
        page.get_by_text("Download the recovered series").click()
    waiting.value.save_as(tmp_path / "recovered.csv")
    table = pv.read_csv(tmp_path / "recovered.csv")
    assert table.column_names == ["series", "time", "value", "covered", "lower", "upper"]
    assert min(table["value"].to_pylist()) >= 0
    assert page.get_by_text("Download the rows set aside").count() == 1
    assert page.complaints == []
    assert all(address.startswith(f"http://127.0.0.1:{server[0]}/") for address in page.requests)


def test_what_cannot_be_read_is_said_on_the_page(visit, server, tmp_path):
    page = visit(f"http://127.0.0.1:{server[0]}/")
    wrong = tmp_path / "picture.png"
    wrong.write_bytes(b"\x89PNG")
    page.set_input_files("#file", wrong)
    page.wait_for_selector("#trouble:visible")
    assert "'picture.png' must be a CSV or Parquet file" in page.locator("#trouble").inner_text()
    large = tmp_path / "large.csv"
    large.write_bytes(b"series,start,end,total\n" + b"a,2024-01-01,2024-02-01,1\n" * 100_000)
    page.set_input_files("#file", large)
    expect(page.locator("#trouble")).to_contain_text("2 MB")
    odd = tmp_path / "odd.csv"
    odd.write_text("who,when\nx,y\n")
    page.set_input_files("#file", odd)
    page.wait_for_selector("#understand:visible")
    assert "Choose the column of" in page.locator("#verdict").inner_text()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_foreign_hosts_are_refused(server, host):
    response, text = ask(server[0], "GET", "/", Host=host)
    assert response.status == 400
    assert b"unsum-key" not in text


def test_only_the_page_itself_may_ask(server):
    response, text = ask(server[0], "POST", "/files?name=a.csv", b"series\n")
    assert response.status == 403
    assert b"reload the page" in text
    response, _ = ask(server[0], "POST", "/files?name=a.csv", b"s\n", **{"X-Unsum-Key": "x" * 32})
    assert response.status == 403


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.csv", "/etc/cron.csv", "..\\x.csv", "a\x00.csv"]
)
def test_names_of_files_never_become_paths(server, name):
    port, folder = server
    body = b"series,start,end,total\na,2024-01-01,2024-02-01,1\n"
    response, text = ask(
        port, "POST", f"/files?name={quote(name)}", body, **{"X-Unsum-Key": key_of(port)}
    )
    assert response.status == 200
    (home,) = folder.iterdir()
    token = json.loads(text)["token"]
    assert [path.name for path in (home / token).iterdir()] == ["readings.csv"]
    for path in ("../readings.csv", "%2e%2e%2freadings.csv"):
        assert ask(port, "GET", f"/files/{token}/out/{path}")[0].status == 404


def test_answers_are_not_kept_nor_framed_elsewhere(server):
    response, _ = ask(server[0], "GET", "/")
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_bad_forms_end_in_a_sentence(server):
    port = server[0]
    key = {"X-Unsum-Key": key_of(port)}
    body = b"series,start,end,total\na,2024-01-01,2024-02-01,1\n"
    token = json.loads(ask(port, "POST", "/files?name=a.csv", body, **key)[1])["token"]
    columns = {name: name for name in ("series", "start", "end", "total")}
    for form, sentence in (
        (b"nonsense", "must be a JSON object"),
        (b'{"columns": 7}', "columns must say"),
        (json.dumps({"columns": columns, "freq": "7h"}).encode(), "freq '7h'"),
        (json.dumps({"columns": columns, "tz": "Mars"}).encode(), "tz 'Mars'"),
        (b" " * 70_000, "too much"),
    ):
        response, text = ask(port, "POST", f"/files/{token}/check", form, **key)
        assert response.status == 422, form
        assert sentence in json.loads(text)["error"]
    assert ask(port, "GET", f"/files/{token}/work", **key)[0].status == 422
    assert ask(port, "DELETE", f"/files/{token}", **key)[0].status == 204
    response, text = ask(port, "POST", f"/files/{token}/check", b"{}", **key)
    assert "no longer here" in json.loads(text)["error"]
