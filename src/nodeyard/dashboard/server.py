"""The HTTP server of the dashboard: the page, the snapshot, the event stream, and the routes that the app adds.

    request ─▶ Host, Origin, body limit ─▶ session ─▶ route ─▶ JSON with security headers

The static files carry no data and are served to everyone who reaches the address, so that the page can ask for a token.
"""

from __future__ import annotations

import asyncio
import mimetypes
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

import msgspec
from aiohttp import web

from nodeyard.client.errors import ClientError, Forbidden, Unauthorized
from nodeyard.dashboard.access import Access, Viewer
from nodeyard.dashboard.feed import Feed, frame
from nodeyard.dashboard.wire import ClusterInfo, Problem, Refused, ViewerInfo, encode, to_plain
from nodeyard.process.aio import first_of
from nodeyard.process.http_server import HttpServer, Limits
from nodeyard.process.logs import get_logger
from nodeyard.runtime.health import Address

API: Final = "/api/v1"
BODY: Final = 64 * 1024
READ_SECONDS: Final = 10.0
BATCH_SECONDS: Final = 0.25
HEARTBEAT_SECONDS: Final = 15.0
LIMITS: Final = Limits(connections=512, per_peer=256, idle_seconds=90.0, stop_seconds=1.0)
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}

_log = get_logger("dashboard")


@dataclass(frozen=True)
class Query:
    """The parameters and body of a request."""

    params: Mapping[str, str]
    body: bytes = b""

    def get(self, name: str) -> str:
        return self.params.get(name, "")

    def number(self, name: str, default: int, most: int) -> int:
        """Return a whole number from 0 to `most`; raise Refused for other text."""
        text = self.params.get(name, str(default))
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise Refused(400, f"{name}={text[:20]} is not a whole number.")
        return min(int(text), most)

    def time(self, name: str, default: float) -> float:
        """Return seconds since the epoch; raise Refused for other text."""
        try:
            return float(self.params[name]) if self.params.get(name) else default
        except ValueError:
            raise Refused(400, f"{name}={self.params[name][:20]} is not a time in seconds since the epoch.") from None

    def json(self, type: type[Any]) -> Any:
        try:
            return msgspec.json.decode(self.body, type=type)
        except msgspec.MsgspecError as error:
            raise Refused(400, f"The request is not of the expected form: {error}.") from None


@dataclass(frozen=True)
class Route:
    """One operation of the API: its result is encoded as JSON."""

    method: str
    path: str
    handle: Callable[[Viewer, Query], Awaitable[Any]]
    body: int = BODY
    """Bound of the request's body."""
    is_yaml: bool = False


class DashboardServer:
    def __init__(self, feed: Feed, access: Access, cluster: ClusterInfo, routes: Iterable[Route] = ()) -> None:
        self._feed = feed
        self._access = access
        self._cluster = cluster
        self._stopping = asyncio.Event()
        self._http: HttpServer | None = None
        self._app = app = web.Application(middlewares=[self._guard], client_max_size=2 << 20)
        app.on_response_prepare.append(_add_headers)
        app.router.add_get("/", self._page)
        app.router.add_get("/static/{path:.+}", self._static)
        app.router.add_get(f"{API}/stream", self._stream, allow_head=False)
        app.router.add_post(f"{API}/login", self._log_in)
        app.router.add_post(f"{API}/logout", self._log_out)
        for route in (Route("GET", "snapshot", self._snapshot), *routes):
            app.router.add_route(route.method, f"{API}/{route.path}", self._handler(route))

    def bind(self, address: Address, context: ssl.SSLContext | None = None) -> int:
        """Bind the address and return its port. Raises OSError if it is in use."""
        self._http = HttpServer(self._app, LIMITS, context=context)
        return self._http.bind(address.host, address.port)

    def present(self, context: ssl.SSLContext) -> None:
        """Use another certificate for new connections."""
        if self._http is not None:
            self._http.context = context

    async def start(self) -> None:
        if self._http is None:
            raise RuntimeError("bind first")
        await self._http.start()

    async def close(self) -> None:
        self._stopping.set()
        if self._http is not None:
            await self._http.close()
        await self._access.close()

    # every request

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            self._access.check_host(request)
            if request.method not in ("GET", "HEAD"):
                self._access.check_origin(request)
            return await handler(request)
        except Refused as refused:
            return _refusal(refused)
        except web.HTTPException as error:
            return _refusal(
                Refused(error.status, f"{error.reason}.", "Reload the page; it may be older than its server.")
            )
        except ClientError as error:
            return _refusal(refused_by_cluster(error))
        except ConnectionError:
            raise
        except Exception:
            _log.exception("dashboard request failed", path=request.path)
            return _refusal(Refused(500, "The server failed to answer.", "Its log says why; please report it."))

    def _handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            viewer = await self._access.viewer_of(request)
            body = b"" if route.method == "GET" else await _read(request, route.body, is_yaml=route.is_yaml)
            return _json(await route.handle(viewer, Query(request.query, body)))

        return handle

    # the page

    async def _page(self, request: web.Request) -> web.StreamResponse:
        token = request.query.get("token")
        if token is None:
            return _file("index.html")
        response = web.Response(status=303, headers={"Location": "/"})
        self._access.set_cookie(request, response, await self._access.open_local(token))
        return response

    async def _static(self, request: web.Request) -> web.Response:
        return _file(request.match_info["path"])

    async def _log_in(self, request: web.Request) -> web.Response:
        given = Query({}, await _read(request, BODY)).json(dict[str, str])
        id, viewer = await self._access.log_in(given.get("token", ""), request.remote or "")
        response = _json(_viewer_info(viewer))
        self._access.set_cookie(request, response, id)
        return response

    async def _log_out(self, request: web.Request) -> web.Response:
        await self._access.log_out(request)
        return _json({})

    # the feed

    async def _snapshot(self, viewer: Viewer, _query: Query) -> dict[str, Any]:
        return {
            **self._feed.snapshot(viewer.visible),
            "cluster": self._cluster,
            "viewer": _viewer_info(viewer),
        }

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Send events until the client goes. A client that is too far behind gets a snapshot instead."""
        viewer = await self._access.viewer_of(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        await response.prepare(request)
        last = request.headers.get("Last-Event-ID", "")
        cursor = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else -1
        # The client goes, or its session ends.
        with suppress(ConnectionError, Refused):
            while not self._stopping.is_set():
                cursor = await self._send(response, cursor, viewer)
                await asyncio.sleep(BATCH_SECONDS)
                if not await self._wait(cursor):
                    await response.write(b": heartbeat\n\n")
                # The rights of a session may have changed.
                viewer = await self._access.viewer_of(request)
        return response

    async def _send(self, response: web.StreamResponse, cursor: int, viewer: Viewer) -> int:
        """Send what happened after the cursor; return the new one."""
        events = self._feed.since(cursor)
        if events is None:
            snapshot = await self._snapshot(viewer, Query({}))
            await response.write(frame("snapshot", snapshot["seq"], encode(snapshot)))
            return int(snapshot["seq"])
        if events:
            await response.write(b"".join(event.encode(viewer.visible) for event in events))
            return events[-1].seq
        return max(cursor, 0)

    async def _wait(self, cursor: int) -> bool:
        """Wait for an event, the end of the server or the time of a heartbeat; return False for a heartbeat."""
        await first_of(self._feed.wait(cursor), self._stopping.wait(), asyncio.sleep(HEARTBEAT_SECONDS - BATCH_SECONDS))
        return self._feed.seq > cursor or self._stopping.is_set()


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.pop("Server", None)


async def _read(request: web.Request, most: int, *, is_yaml: bool = False) -> bytes:
    """Read a body of at most this size. A type that a plain form cannot have is required."""
    wanted = "application/yaml" if is_yaml else "application/json"
    if request.content_type != wanted:
        raise Refused(415, f"The body is {request.content_type}, not {wanted}.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Refused(415, "The body is compressed.", "Send it as it is.")
    too_large = Refused(413, f"The body is larger than {most // 1024} KiB.", "Send less at once.")
    if (request.content_length or 0) > most:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for part in request.content.iter_any():
                body += part
                if len(body) > most:
                    raise too_large
    except TimeoutError:
        raise Refused(408, f"The body did not arrive within {READ_SECONDS:g} s.") from None
    return bytes(body)


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=encode(value), content_type="application/json")


def _refusal(refused: Refused) -> web.Response:
    problem: Problem = refused.problem
    return _json({**refused.more, "error": to_plain(problem)}, refused.status)


def refused_by_cluster(error: ClientError) -> Refused:
    """Return the refusal for an error of the API server."""
    text = " ".join(str(error).split())
    if isinstance(error, Unauthorized):
        return Refused(401, f"The cluster refused the credentials: {text}", "Sign in again.")
    if isinstance(error, Forbidden):
        return Refused(403, text, "Ask for the right, or use `nodeyard dashboard` with an account that has it.")
    status = getattr(error, "code", 0)
    if status in (400, 404, 409, 422):
        return Refused(status, text, "Correct the request and try again.")
    return Refused(502, f"The cluster did not answer the request: {text}", "Try again in a moment.")


def _viewer_info(viewer: Viewer) -> ViewerInfo:
    return ViewerInfo(name=viewer.name, can_approve=viewer.can_approve)


def _file(path: str) -> web.Response:
    """Return a static file. The path is resolved part by part, so that it cannot leave the folder."""
    place: Traversable = files("nodeyard.dashboard") / "static"
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise Refused(404, "There is no such file.")
    for part in parts:
        place = place / part
    if not place.is_file():
        raise Refused(404, "There is no such file.")
    suffix = f".{parts[-1].rpartition('.')[2]}"
    kind = _TYPES.get(suffix) or mimetypes.guess_type(parts[-1])[0] or "application/octet-stream"
    charset = "utf-8" if kind.startswith("text/") or suffix == ".svg" else None
    return web.Response(
        body=place.read_bytes(), content_type=kind, charset=charset, headers={"Cache-Control": "no-cache"}
    )
