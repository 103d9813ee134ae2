"""The webhook server: HTTPS, one path per webhook, on the event loop of the caches.

The address is bound when the process starts, so an address in use fails at once. Connections are accepted once there
is a certificate. A replaced certificate applies to new connections; open ones continue.

Anybody may reach the port, so only API servers are answered. They are identified by a client certificate if a CA is
configured, else by the random token in the registered path. Others get 404. Bodies are bounded and never
decompressed, and requests of unknown peers are rate-limited.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from aiohttp import web

from nodeyard.admission.certificates import BadCertificate
from nodeyard.admission.reviewer import Answer, Reviewer
from nodeyard.process.certificates import Pair
from nodeyard.process.http_server import Budget, HttpServer, Limits
from nodeyard.runtime.health import Address

# Two objects of etcd's maximum size (1.5 MiB) and the rest of the review.
MAX_BODY: Final = 4 << 20
READ_SECONDS: Final = 10.0
# Longer than the idle timeout of API servers (90 s), so that the client closes an idle connection. If the server closed
# it, a review could be sent into a closing connection.
LIMITS: Final = Limits(connections=1024, per_peer=512, idle_seconds=120.0, stop_seconds=5.0)
# Rate limit for requests with an unknown path. Each may make this replica read the webhook configurations again.
STRANGE_PER_SECOND: Final = 10.0
STRANGE_AT_ONCE: Final = 50.0
TOKEN: Final = "{token:(/[0-9a-z]{1,64})?}"

_Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(frozen=True)
class ClientTrust:
    """The CA of the API servers' client certificates, and their accepted names."""

    authority: bytes
    names: frozenset[str] = frozenset()
    """Empty accepts every name."""


class Registered(Protocol):
    """The registered paths."""

    def __contains__(self, path: str) -> bool: ...

    async def refresh(self) -> None:
        """Read the paths again after a request for an unknown one."""


class WebhookServer:
    def __init__(self, reviewers: Iterable[Reviewer], registered: Registered) -> None:
        app = web.Application(client_max_size=MAX_BODY)
        for reviewer in reviewers:
            app.router.add_post(reviewer.path + TOKEN, self._handler(reviewer))
        self._http = HttpServer(app, LIMITS)
        self.strangers = Budget(STRANGE_PER_SECOND, STRANGE_AT_ONCE)
        self._registered = registered
        self._presented: tuple[Pair, ClientTrust | None] | None = None
        self.is_listening = False

    def bind(self, address: Address) -> int:
        """Bind the address; return the port. Raises OSError if the address is in use."""
        return self._http.bind(address.host, address.port)

    async def present(self, pair: Pair, trust: ClientTrust | None = None) -> bool:
        """Present this certificate from now on; return whether anything changed."""
        if (pair, trust) == self._presented:
            return False
        self._http.context = server_context(pair, trust)
        if not self.is_listening:
            await self._http.start()
            self.is_listening = True
        self._presented = (pair, trust)
        return True

    async def close(self) -> None:
        """Finish requests in flight and stop."""
        self.is_listening = False
        await self._http.close()

    def _handler(self, reviewer: Reviewer) -> _Handler:
        async def handle(request: web.Request) -> web.Response:
            answer = await self._refusal(request)
            if answer is None:
                try:
                    body = await _body(request)
                except TimeoutError:
                    return web.Response(status=408, text=f"the request body did not arrive within {READ_SECONDS:g} s")
                result = reviewer.answer(body)
                answer = result if isinstance(result, Answer) else await result
            content_type = "application/json" if answer.status == 200 else "text/plain"
            return web.Response(status=answer.status, body=answer.body, content_type=content_type)

        return handle

    async def _refusal(self, request: web.Request) -> Answer | None:
        """Return the refusal of a request that no API server would send, before its body is read."""
        trust = None if self._presented is None else self._presented[1]
        if trust is not None and not _is_named(request, trust):
            return Answer(403, b"the client certificate is not that of an API server")
        if trust is None and request.path not in self._registered:
            if not self.strangers.take(request.remote or "", time.monotonic()):
                return Answer(429, b"too many requests")
            await self._registered.refresh()
            if request.path not in self._registered:
                return Answer(404, b"not found")
        if request.headers.get("Content-Encoding", "identity") != "identity":
            return Answer(415, b"Content-Encoding: send the body uncompressed")
        if (request.content_length or 0) > MAX_BODY:
            return Answer(413, f"the body is larger than {MAX_BODY} bytes".encode())
        return None


async def _body(request: web.Request) -> bytes:
    """Read the body. Most bodies arrive with their headers; these need neither an await nor a timer."""
    if request.content.is_eof() and request.content.total_bytes <= MAX_BODY:
        return request.content.read_nowait()
    async with asyncio.timeout(READ_SECONDS):
        return await request.read()


def _is_named(request: web.Request, trust: ClientTrust) -> bool:
    """Return whether the verified client certificate has one of the accepted names."""
    if not trust.names:
        return True
    found = None if request.transport is None else request.transport.get_extra_info("peercert")
    return not trust.names.isdisjoint(_names(found or {}))


def _names(certificate: dict[str, Any]) -> Iterable[str]:
    for attributes in certificate.get("subject", ()):
        yield from (value for name, value in attributes if name == "commonName")
    yield from (value for _, value in certificate.get("subjectAltName", ()))


def server_context(pair: Pair, trust: ClientTrust | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _load(context, pair)
    if trust is not None:
        try:
            context.load_verify_locations(cadata=trust.authority.decode())
        except (ssl.SSLError, ValueError) as error:
            raise BadCertificate(f"the CA of the client certificates cannot be read: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load the pair through a private temporary file, because the ssl module reads certificates only from files."""
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair.key + b"\n" + pair.certificate)
        context.load_cert_chain(path)
    except ssl.SSLError as error:
        raise BadCertificate(f"the certificate cannot be used with its key: {error.reason or error}") from None
    finally:
        os.unlink(path)
