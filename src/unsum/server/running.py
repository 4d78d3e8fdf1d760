"""The server's life, from its socket to its end."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable

import uvicorn

from unsum.errors import ParameterError
from unsum.server.app import make_app

HOST = "127.0.0.1"


def run_server(port: int, most_bytes: int, *, say: Callable[[str], None], browser: bool) -> None:
    """Serve until interrupted, on the loopback interface alone."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # from here on, whoever asks is answered in time
    except (OSError, OverflowError) as error:
        raise ParameterError(
            f"port {port} cannot be used ({error}); choose another with --port, or 0 for any."
        ) from error
    address = f"http://{HOST}:{listener.getsockname()[1]}"
    config = uvicorn.Config(
        make_app(most_bytes), log_level="warning", access_log=False, server_header=False,
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    say(f"unsum is at {address} (Ctrl-C ends it)")
    if browser:
        webbrowser.open(address)
    uvicorn.Server(config).run(sockets=[listener])
