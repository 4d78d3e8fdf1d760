"""The routes of the local page. Only this machine is answered, and only its own page."""

from __future__ import annotations

import hmac
import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from unsum import __version__
from unsum.errors import UnsumError
from unsum.server.desk import Desk, tell

HOSTS = ["127.0.0.1", "localhost"]
MOST_ASKED = 64_000  # bytes of what a form says
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES = {"page.js": "text/javascript", "page.css": "text/css"}


def make_app(most_bytes: int) -> Starlette:
    """The application; files of more than `most_bytes` are refused."""
    key = secrets.token_urlsafe(24)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with tempfile.TemporaryDirectory(prefix="unsum-serve-") as folder:
            app.state.desk = Desk(Path(folder))
            yield

    async def index(request: Request) -> Response:  # noqa: ARG001
        template = files("unsum.server") / "templates" / "page.html"
        page = template.read_text(encoding="utf-8").replace("{{ key }}", key)
        page = page.replace("{{ version }}", __version__)
        return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in TYPES:
            return JSONResponse({"error": "there is no such page."}, 404)
        text = (files("unsum.server") / "templates" / name).read_text(encoding="utf-8")
        return Response(text, media_type=TYPES[name])

    def known(answer: Callable[[Request], Awaitable[Response]]) -> Callable[..., Any]:
        """Only the page that this server gave out may ask; errors end in a sentence."""

        async def checked(request: Request) -> Response:
            given = request.headers.get("x-unsum-key", "")
            if not hmac.compare_digest(given.encode(), key.encode()):
                return JSONResponse({"error": "reload the page: its key is not known."}, 403)
            try:
                return await answer(request)
            except UnsumError as error:
                return JSONResponse({"error": _tell(request, error)}, 422)

        return checked

    async def upload(request: Request) -> Response:
        desk: Desk = request.app.state.desk
        size = 0
        name = request.query_params.get("name", "")
        with desk.receive(name) as (token, path), path.open("wb") as file:
            async for part in request.stream():
                size += len(part)
                if size > most_bytes:
                    raise UnsumError(
                        f"the file has more than {most_bytes / 1e6:,.0f} MB; start with "
                        "`unsum serve --max-mb` and a larger number, or use `unsum recover`."
                    )
                file.write(part)
        try:
            looked = await run_in_threadpool(desk.look, token)
        except UnsumError:
            desk.forget(token)
            raise
        return JSONResponse({"token": token, **looked})

    async def check(request: Request) -> Response:
        asked = await _asked(request)
        return JSONResponse(await run_in_threadpool(_desk(request).check, _token(request), asked))

    async def start(request: Request) -> Response:
        _desk(request).start(_token(request), await _asked(request))
        return JSONResponse({}, 202)

    async def progress(request: Request) -> Response:
        return JSONResponse(_desk(request).work(_token(request)).to_dict())

    async def forget(request: Request) -> Response:
        _desk(request).forget(_token(request))
        return Response(status_code=204)

    async def result(request: Request) -> Response:
        """The report and the tables; their address is known to nobody else."""
        desk, name = _desk(request), request.path_params["name"]
        upload = desk.uploads.get(_token(request))
        job = upload.work.job if upload and upload.work else None
        made = (
            {path.name: path for path in (job.out, job.report, job.set_aside) if path}
            if job
            else {}
        )
        if name not in made:
            return JSONResponse({"error": "there is no such result."}, 404)
        if name == "report.html":  # it has a policy of its own; beside it, no address of ours
            return FileResponse(
                made[name], headers={"Content-Security-Policy": "sandbox allow-scripts"}
            )
        return FileResponse(made[name], filename=name)

    routes = [
        Route("/", index),
        Route("/static/{name}", asset),
        Route("/files", known(upload), methods=["POST"]),
        Route("/files/{token}", known(forget), methods=["DELETE"]),
        Route("/files/{token}/check", known(check), methods=["POST"]),
        Route("/files/{token}/work", known(start), methods=["POST"]),
        Route("/files/{token}/work", known(progress), methods=["GET"]),
        Route("/files/{token}/out/{name}", result),
    ]
    guards = [Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False)]
    app = Starlette(routes=routes, middleware=guards, lifespan=lifespan)
    app.add_middleware(_Headers)
    return app


class _Headers:
    """Nothing is kept, sniffed, or told to other sites."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def add(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [
                    (b"cache-control", b"no-store"),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                    (b"cross-origin-resource-policy", b"same-origin"),
                ]
            await send(message)

        await self.app(scope, receive, add)


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _token(request: Request) -> str:
    return str(request.path_params["token"])


def _tell(request: Request, error: UnsumError) -> str:
    return tell(error, _desk(request).uploads.get(request.path_params.get("token", "")))


async def _asked(request: Request) -> dict[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_ASKED:
            raise UnsumError("the form says too much.")
    try:
        asked = json.loads(body)
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        raise UnsumError("the form must be a JSON object.")
    return asked
