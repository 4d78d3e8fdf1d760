"""The local page."""

from __future__ import annotations

from typing import Annotated

import typer

from unsum.cli.app import app
from unsum.errors import UnsumError


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="The port; 0 for any that is free.", min=0)] = 8642,
    max_mb: Annotated[int, typer.Option(help="The largest file to take, in MB.", min=1)] = 500,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """A page on this machine: drop a table, see what is wrong, recover, read the report, download.

    It answers this machine alone, keeps files in a temporary folder, and forgets them at its end.

    Example: unsum serve

    Example: unsum serve --port 9000 --no-browser
    """
    try:
        from unsum.server.running import run_server
    except ImportError as missing:
        raise UnsumError(
            f"the local page needs {missing.name}; install it with: pip install 'unsum[serve]'"
        ) from missing
    run_server(port, max_mb * 1_000_000, say=typer.echo, browser=browser)
