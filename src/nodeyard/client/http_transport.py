"""Transport over HTTP/1.1 with kept-alive connections.

Requests use `http1`, which costs the least CPU time; streams and requests through a proxy use aiohttp.

The number of requests in flight is bounded, not their rate (`flow_control`). It is the only bound per server: what
plans, writes status or records Events does not count on its own. Streams are not counted and have one connection each,
so watches cannot starve writes. The timeout of a request starts when it leaves the queue: of thousands queued at once,
none times out while it waits.
"""

from __future__ import annotations

import asyncio
import functools
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from nodeyard.client.bodies import IDENTITY, Inflater, decompress, encoding_of, limit_for, read_all
from nodeyard.client.config import Config
from nodeyard.client.credentials import CredentialCache, Keys
from nodeyard.client.errors import TransportError, TransportTimeout, Withheld, retry_after_seconds
from nodeyard.client.flow_control import IN_FLIGHT, FlowControl
from nodeyard.client.http1 import ANSWER_BYTES, CONNECT_SECONDS, CannotConnect, Pool
from nodeyard.client.tls import client_context
from nodeyard.client.transport import Request, Response, Stream
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.process.version import VERSION

# Below the 90 s after which kube-apiserver closes an idle connection, so that no request races with the close.
KEEPALIVE_SECONDS: Final = 45.0
READ_BUFFER: Final = 256 * 1024
USER_AGENT: Final = f"nodeyard/{VERSION}"
_SAFE = "GET"


class HttpTransport:
    """Create it inside a running event loop, and close it."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        in_flight: int = IN_FLIGHT,
        largest: int = ANSWER_BYTES,
    ) -> None:
        """`largest` is the size limit of a response in bytes; readers of streams apply their own limits."""
        self._config = config
        self._credentials = CredentialCache(config, clock or SystemClock())
        self._flow_control = FlowControl(in_flight)
        self._base = config.server.rstrip("/")
        where = URL(self._base)
        self._prefix = where.raw_path.rstrip("/")
        # Inside a data centre compression costs more time than it saves.
        plain = f"Accept-Encoding: {IDENTITY}\r\n"
        self._common_headers = f"Host: {_authority(where)}\r\nUser-Agent: {USER_AGENT}\r\n{plain}"
        self._tls: tuple[Keys, ssl.SSLContext] | None = None
        self._server_name = config.server_name or None
        self._proxy = config.proxy or None
        self._largest = largest
        self._pool = Pool(
            where.host or "",
            where.port or 443,
            server_name=self._server_name,
            keepalive=KEEPALIVE_SECONDS,
            largest=largest,
        )
        self._session = aiohttp.ClientSession(
            # Flow control is the limit; the connector's limit would let watches starve requests.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
            headers={"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": IDENTITY},
            skip_auto_headers=("Content-Type",),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
        )

    async def send(self, request: Request) -> Response:
        target = _target(request)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await self._flow_control.acquire(request.flow)
        try:
            waited = loop.time() - begun
            response = await self._send_with_retries(request, target)
        finally:
            self._flow_control.release()
        return response._replace(waited=waited)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        keys = await self._credentials.current()
        answer = await self._open(request, keys)
        if answer.status == 401:
            answer.close()
            self._credentials.invalidate(keys)
            answer = await self._open(request, await self._credentials.current())
        try:
            yield Stream(answer.status, answer.headers, _chunks(answer, request))
        finally:
            # Close instead of release: an unread watch never ends.
            answer.close()

    async def close(self) -> None:
        self._pool.close()
        await self._session.close()

    async def _send_with_retries(self, request: Request, target: str) -> Response:
        """Send the request; retry once with fresh credentials after a 401, and after Retry-After if the server asks."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.timeout
        has_reloaded = False
        while True:
            keys = await self._credentials.current()
            seconds = max(deadline - loop.time(), 0.001)
            response = await self._send(request, target, keys, seconds)
            if response.status == 401 and not has_reloaded:
                has_reloaded = True
                self._credentials.invalidate(keys)
                continue
            wait = _retry_delay(request.method, response) if request.retry else None
            if wait is None or loop.time() + wait >= deadline:
                return response
            await asyncio.sleep(wait)

    async def _send(self, request: Request, target: str, keys: Keys, seconds: float) -> Response:
        try:
            if self._proxy:
                if self._pool.is_closed:
                    raise self._pool.closed()
                if request.hold is not None and (why := request.hold()):
                    raise Withheld(why)
                async with asyncio.timeout(seconds):
                    return await decompress(await self._send_by_proxy(request, target, keys), self._largest)
            message = self._head(request, target, keys) + request.body
            answer = await self._pool.send(request.method, message, self._context(keys), seconds, request.hold)
            return await decompress(answer, self._largest)
        except (CannotConnect, aiohttp.ClientError, TimeoutError, OSError) as error:
            what = f"{request.method} {request.path}"
            raise _to_transport_error(error, what, f"no answer in {round(seconds, 1):g} s") from error

    def _head(self, request: Request, target: str, keys: Keys) -> bytes:
        fields = [*keys.headers, *request.headers.items()]
        if "Accept" not in request.headers:
            fields.append(("Accept", "application/json"))
        if request.body or request.method != "GET":
            fields.append(("Content-Length", str(len(request.body))))
        lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
        if lines.count("\n") != len(fields) or lines.count("\r") != len(fields):
            raise ValueError("a header has more than one line")
        return f"{request.method} {self._prefix}{target} HTTP/1.1\r\n{self._common_headers}{lines}\r\n".encode()

    async def _send_by_proxy(self, request: Request, target: str, keys: Keys) -> Response:
        async with self._session.request(
            request.method,
            URL(f"{self._base}{target}", encoded=True),
            headers=(*keys.headers, *request.headers.items()),
            data=request.body or None,
            ssl=self._context(keys) or False,
            server_hostname=self._server_name,
            proxy=self._proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        ) as answer:
            warnings = tuple(answer.headers.getall("Warning", ()))
            body = await read_all(answer.content.iter_any(), limit_for(answer.status, self._largest))
            return Response(answer.status, answer.headers, body, warnings)

    async def _open(self, request: Request, keys: Keys) -> aiohttp.ClientResponse:
        try:
            if self._pool.is_closed:
                raise self._pool.closed()
            async with asyncio.timeout(request.timeout):
                return await self._session.get(
                    URL(f"{self._base}{_target(request)}", encoded=True),
                    headers=(*keys.headers, *request.headers.items()),
                    ssl=self._context(keys) or False,
                    server_hostname=self._server_name,
                    proxy=self._proxy,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                )
        except (CannotConnect, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _to_transport_error(error, f"GET {request.path}", f"no answer in {request.timeout:g} s") from error

    def _context(self, keys: Keys) -> ssl.SSLContext | None:
        """Return one TLS context while the credentials are unchanged, since connections are pooled by it."""
        if self._base.startswith("http:"):
            return None
        if self._tls is None or not _same_tls(self._tls[0], keys):
            self._tls = keys, client_context(keys.authority, keys.identity, verify=self._config.verify)
        return self._tls[1]


_PATH_SAFE = "/:@!$&'()*+,;=~"
# Quoting costs more than the rest of building a request, and few paths or queries need it.
_PLAIN = re.compile(rf"[\w.{re.escape(_PATH_SAFE)}-]*", re.ASCII).fullmatch


def _target(request: Request) -> str:
    """Return the request target: quoted path and query."""
    quoted = request.path if _PLAIN(request.path) else quote(request.path, safe=_PATH_SAFE)
    return f"{quoted}?{_encode_query(tuple(request.query.items()))}" if request.query else quoted


def _authority(where: URL) -> str:
    host = f"[{where.host}]" if ":" in (where.host or "") else where.host
    return f"{host}" if where.is_default_port() else f"{host}:{where.port}"


@functools.lru_cache(maxsize=256)
def _encode_query(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query, quote_via=quote)


def _same_tls(one: Keys, other: Keys) -> bool:
    return one is other or (one.authority == other.authority and one.identity == other.identity)


def _retry_delay(method: str, response: Response) -> float | None:
    """Return the Retry-After of a request that the server has not started: 429, or 503 for a GET."""
    if response.status == 429 or (response.status == 503 and method == _SAFE):
        return retry_after_seconds(response.headers)
    return None


async def _chunks(answer: aiohttp.ClientResponse, request: Request) -> AsyncIterator[bytes]:
    idle = _IdleTimeout(answer.content, request.idle_timeout)
    try:
        inflate = Inflater() if encoding_of(answer.headers.get("content-encoding")) else None
        while chunk := await answer.content.readany():
            idle.renew()
            if inflate is None:
                yield chunk
                continue
            for piece in inflate.pieces(chunk):
                yield piece
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _to_transport_error(error, f"GET {request.path}", f"no data for {request.idle_timeout:g} s") from error
    finally:
        idle.end()


class _IdleTimeout:
    """Idle timeout of a stream. A chunk only records the time; when the timer fires it computes the remaining wait."""

    def __init__(self, content: aiohttp.StreamReader, seconds: float) -> None:
        self._content = content
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._check_silence)

    def renew(self) -> None:
        self._heard_at = self._loop.time()

    def end(self) -> None:
        self._timer.cancel()

    def _check_silence(self) -> None:
        due = self._heard_at + self._seconds
        if due <= self._loop.time():
            self._content.set_exception(TimeoutError())
        else:
            self._timer = self._loop.call_at(due, self._check_silence)


def _to_transport_error(error: Exception, what: str, timed_out: str) -> TransportError:
    if isinstance(error, CannotConnect):
        return TransportError(f"{what}: cannot connect to {error}", may_have_run=False)
    if isinstance(error, (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError)):
        return TransportError(f"{what}: cannot connect{_where_and_why(error)}", may_have_run=False)
    if isinstance(error, TimeoutError):
        return TransportTimeout(f"{what}: {timed_out}", may_have_run=True)
    return TransportError(f"{what}: {_describe(error)}", may_have_run=True)


def _where_and_why(error: Exception) -> str:
    """Describe a connection error in stable words.

    aiohttp's text contains a memory address that changes with each attempt; a condition that quotes it would be
    rewritten forever.
    """
    if not isinstance(error, aiohttp.ClientConnectorError):
        return f": {_describe(error)}"
    why = error.certificate_error if isinstance(error, aiohttp.ClientConnectorCertificateError) else error.os_error
    return f" to {error.host}:{error.port}: {_describe(why)}"


def _describe(error: Exception) -> str:
    if isinstance(error, (aiohttp.ClientResponseError, aiohttp.http_exceptions.HttpProcessingError)):
        # aiohttp's text would quote the response.
        return "the response is not HTTP/1.1"
    return str(error) or type(error).__name__
