"""The transport over sockets: HTTP/1.1 on kept-alive connections.

Requests go by `http1`, which costs the least; streams, and whatever has to pass a proxy, by aiohttp.

The number of requests in flight is bounded, not their rate; streams stand outside that bound, one connection each, so
that watches can never starve writes. A request's time begins when its turn has come: thousands may be handed over at
once, and none fails for having waited behind the others.
"""

from __future__ import annotations

import asyncio
import functools
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote, unquote, urlencode

import aiohttp
from yarl import URL

from nodeyard import __version__
from nodeyard.client.config import Config
from nodeyard.client.errors import TransportError, TransportTimeout, Withheld, retry_after_seconds
from nodeyard.client.framing import gathered, most_of
from nodeyard.client.http1 import ANSWER_BYTES, CONNECT_SECONDS, CannotConnect, Pool
from nodeyard.client.keyring import Keyring, Keys
from nodeyard.client.tls import client_context
from nodeyard.client.transport import NOTHING, REQUEST_SECONDS, Hold, Response, Stream
from nodeyard.process.clock import Clock, SystemClock

IN_FLIGHT: Final = 32
# Below the 90 s after which a kube-apiserver closes an idle connection, so that we never write into a closing one.
KEEPALIVE_SECONDS: Final = 45.0
READ_BUFFER: Final = 256 * 1024
_SAFE = "GET"


class AioTransport:
    """Must be made inside a running event loop, and closed."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        in_flight: int = IN_FLIGHT,
        largest: int = ANSWER_BYTES,
        user_agent: str = f"nodeyard/{__version__}",
    ) -> None:
        """`largest` is the most that an answer may have, in bytes; streams are for their readers to bound."""
        self._config = config
        self._keyring = Keyring(config, clock or SystemClock())
        self._turn = asyncio.Semaphore(in_flight)
        self._base = config.server.rstrip("/")
        where = URL(self._base)
        self._prefix = where.raw_path.rstrip("/")
        self._greeting = f"Host: {_authority(where)}\r\nUser-Agent: {user_agent}\r\n"
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
            # The semaphore is the limit; the connector's own would let watches use up the requests' share.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
            headers={"User-Agent": user_agent, "Accept": "application/json"},
            # Compression costs the server more time than it saves in a data centre.
            skip_auto_headers=("Accept-Encoding", "Content-Type"),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float = REQUEST_SECONDS,
        retry: bool = True,
        hold: Hold | None = None,
    ) -> Response:
        target = _target(path, query)
        async with self._turn:
            return await self._persist(method, target, headers, body, timeout, retry, hold)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        timeout: float = REQUEST_SECONDS,
        idle_timeout: float = 60.0,
    ) -> AsyncIterator[Stream]:
        url = URL(f"{self._base}{_target(path, query)}", encoded=True)
        keys = await self._keyring.current()
        answer = await self._open(url, headers, keys, timeout)
        if answer.status == 401:
            answer.close()
            self._keyring.distrust(keys)
            answer = await self._open(url, headers, await self._keyring.current(), timeout)
        try:
            yield Stream(answer.status, answer.headers, _chunks(answer, path, idle_timeout))
        finally:
            # Close, not release: what is left unread of a watch has no end.
            answer.close()

    async def close(self) -> None:
        self._pool.close()
        await self._session.close()

    async def _persist(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: float,
        retry: bool,
        hold: Hold | None,
    ) -> Response:
        """Once more with fresh credentials after a 401, and after a pause where the server asks for one."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        has_reloaded = False
        while True:
            keys = await self._keyring.current()
            seconds = max(deadline - loop.time(), 0.001)
            response = await self._send(method, target, headers, body, keys, seconds, hold)
            if response.status == 401 and not has_reloaded:
                has_reloaded = True
                self._keyring.distrust(keys)
                continue
            wait = _pause(method, response) if retry else None
            if wait is None or loop.time() + wait >= deadline:
                return response
            await asyncio.sleep(wait)

    async def _send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        keys: Keys,
        seconds: float,
        hold: Hold | None,
    ) -> Response:
        try:
            if self._proxy:
                if self._pool.is_closed:
                    raise self._pool.closed()
                if hold is not None and (why := hold()):
                    raise Withheld(why)
                async with asyncio.timeout(seconds):
                    return await self._send_by_proxy(method, target, headers, body, keys)
            request = self._head(method, target, headers, len(body), keys) + body
            return await self._pool.ask(method, request, self._context(keys), seconds, hold)
        except (CannotConnect, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _translated(error, f"{method} {_path(target)}", f"no answer in {seconds:.3g} s") from error

    def _head(self, method: str, target: str, headers: Mapping[str, str], length: int, keys: Keys) -> bytes:
        fields = [*keys.headers, *headers.items()]
        if "Accept" not in headers:
            fields.append(("Accept", "application/json"))
        if length or method != "GET":
            fields.append(("Content-Length", str(length)))
        lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
        if lines.count("\n") != len(fields) or lines.count("\r") != len(fields):
            raise ValueError("a header has more than one line")
        return f"{method} {self._prefix}{target} HTTP/1.1\r\n{self._greeting}{lines}\r\n".encode()

    async def _send_by_proxy(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, keys: Keys
    ) -> Response:
        async with self._session.request(
            method,
            URL(f"{self._base}{target}", encoded=True),
            headers=(*keys.headers, *headers.items()),
            data=body or None,
            ssl=self._context(keys) or False,
            server_hostname=self._server_name,
            proxy=self._proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        ) as answer:
            warnings = tuple(answer.headers.getall("Warning", ()))
            body = await gathered(answer.content.iter_any(), most_of(answer.status, self._largest))
            return Response(answer.status, answer.headers, body, warnings)

    async def _open(self, url: URL, headers: Mapping[str, str], keys: Keys, timeout: float) -> aiohttp.ClientResponse:
        try:
            if self._pool.is_closed:
                raise self._pool.closed()
            async with asyncio.timeout(timeout):
                return await self._session.get(
                    url,
                    headers=(*keys.headers, *headers.items()),
                    ssl=self._context(keys) or False,
                    server_hostname=self._server_name,
                    proxy=self._proxy,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                )
        except (CannotConnect, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _translated(error, f"GET {url.path}", f"no answer in {timeout:g} s") from error

    def _context(self, keys: Keys) -> ssl.SSLContext | None:
        """One context for as long as the keys stay the same, since connections are pooled by it."""
        if self._base.startswith("http:"):
            return None
        if self._tls is None or not _same_tls(self._tls[0], keys):
            self._tls = keys, client_context(keys.authority, keys.identity, verify=self._config.verify)
        return self._tls[1]


_PATH_SAFE = "/:@!$&'()*+,;=~"
# Quoting costs more than the rest of building a request, and hardly any path or query needs it done anew.
_PLAIN = re.compile(rf"[\w.{re.escape(_PATH_SAFE)}-]*", re.ASCII).fullmatch


def _target(path: str, query: Mapping[str, str]) -> str:
    """As it stands in a request."""
    quoted = path if _PLAIN(path) else quote(path, safe=_PATH_SAFE)
    return f"{quoted}?{_encoded(tuple(query.items()))}" if query else quoted


def _path(target: str) -> str:
    """As people read it."""
    return unquote(target.partition("?")[0])


def _authority(where: URL) -> str:
    host = f"[{where.host}]" if ":" in (where.host or "") else where.host
    return f"{host}" if where.is_default_port() else f"{host}:{where.port}"


@functools.lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query, quote_via=quote)


def _same_tls(one: Keys, other: Keys) -> bool:
    return one is other or (one.authority == other.authority and one.identity == other.identity)


def _pause(method: str, response: Response) -> float | None:
    """How long to wait before sending again, where the server says so and has not begun with the request."""
    if response.status == 429 or (response.status == 503 and method == _SAFE):
        return retry_after_seconds(response.headers)
    return None


async def _chunks(answer: aiohttp.ClientResponse, path: str, idle_timeout: float) -> AsyncIterator[bytes]:
    patience = _Patience(answer.content, idle_timeout)
    try:
        while chunk := await answer.content.readany():
            patience.renew()
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _translated(error, f"GET {path}", f"silent for {idle_timeout:g} s") from error
    finally:
        patience.end()


class _Patience:
    """Fails a stream that says nothing for so long. What it says costs a look at the clock: the timer finds out, once
    it goes off, how much longer there is to wait."""

    def __init__(self, content: aiohttp.StreamReader, seconds: float) -> None:
        self._content = content
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._look)

    def renew(self) -> None:
        self._heard_at = self._loop.time()

    def end(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        due = self._heard_at + self._seconds
        if due <= self._loop.time():
            self._content.set_exception(TimeoutError())
        else:
            self._timer = self._loop.call_at(due, self._look)


def _translated(error: Exception, what: str, timed_out: str) -> TransportError:
    if isinstance(error, CannotConnect):
        return TransportError(f"{what}: cannot connect to {error}", may_have_run=False)
    if isinstance(error, (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError)):
        return TransportError(f"{what}: cannot connect{_where_and_why(error)}", may_have_run=False)
    if isinstance(error, TimeoutError):
        return TransportTimeout(f"{what}: {timed_out}", may_have_run=True)
    return TransportError(f"{what}: {_describe(error)}", may_have_run=True)


def _where_and_why(error: Exception) -> str:
    """In the same words each time: those of the library name an object by its address, which is another one after each
    attempt, and a condition that quotes them would be written anew for ever."""
    if not isinstance(error, aiohttp.ClientConnectorError):
        return f": {_describe(error)}"
    why = error.certificate_error if isinstance(error, aiohttp.ClientConnectorCertificateError) else error.os_error
    return f" to {error.host}:{error.port}: {_describe(why)}"


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__
