"""Takes the pictures of the report and of the local page, in headless Chromium.

    python docs/shots.py

Writes docs/report.png and docs/serve.png from a simulated town.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

import unsum
from unsum.experiments.town import simulate_town
from unsum.tables.write import write_table

HERE = Path(__file__).parent


def shoot_report(browser: object, folder: Path) -> None:
    town = simulate_town(300)
    readings = unsum.Readings.from_frame(town.bills, drop_bad=True)
    unsum.recover(readings, interval=0.9).report(folder / "town.html", title="bills.csv")
    page = browser.new_page(viewport={"width": 1200, "height": 1230})
    page.goto((folder / "town.html").as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    page.select_option("#order", "moved")
    page.locator("#list button").nth(5).click()
    page.wait_for_timeout(500)
    page.screenshot(path=HERE / "report.png")


def shoot_server(browser: object, folder: Path) -> None:
    write_table(simulate_town(300).bills, folder / "bills.csv")
    server = subprocess.Popen(
        [sys.executable, "-m", "unsum", "serve", "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    page = browser.new_page(viewport={"width": 1200, "height": 1020})
    page.goto(re.search(r"http\S+", server.stdout.readline())[0])
    page.set_input_files("#file", folder / "bills.csv")
    expect(page.locator("#verdict")).to_contain_text("rows:")
    page.check("input[name=drop_bad]")
    expect(page.locator("#run")).to_be_enabled()
    page.screenshot(path=HERE / "serve.png")
    server.send_signal(signal.SIGINT)
    server.wait()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        shoot_report(browser, Path(folder))
        shoot_server(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
