"""The webhook server: HTTPS, one path per webhook, on the loop that has the caches.

The address is taken when the process starts, so that one that is in use fails at once; connections are accepted from
the first certificate on. A certificate that is replaced is presented to new connections, and those there are live on.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from aiohttp import web

from nodeyard.admission.certificates import BadCertificate
from nodeyard.admission.reviewer import Answer, Reviewer
from nodeyard.process.certificates import Pair
from nodeyard.runtime.health import Address

# Two objects of the largest that an API server takes, and what is said about them.
MAX_BODY: Final = 8 << 20
READ_SECONDS: Final = 10.0
# Longer than API servers keep idle connections (90 s): it is theirs to close, or a review could be sent into one that
# is just being closed here.
KEEP_ALIVE_SECONDS: Final = 120.0
STOP_SECONDS: Final = 5.0

_Handler = Callable[[web.Request], Awaitable[web.Response]]


class WebhookServer:
    def __init__(self, reviewers: Iterable[Reviewer]) -> None:
        app = web.Application(client_max_size=MAX_BODY)
        for reviewer in reviewers:
            app.router.add_post(reviewer.path, _handler(reviewer))
        self._runner = web.AppRunner(
            app, access_log=None, keepalive_timeout=KEEP_ALIVE_SECONDS, shutdown_timeout=STOP_SECONDS
        )
        self._context = _context()
        self._socket: socket.socket | None = None
        self._presented: Pair | None = None
        self.is_listening = False

    def bind(self, address: Address) -> int:
        """Take the address; its port. Raises OSError where it is taken."""
        family, _, _, _, where = socket.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(where)
        except OSError:
            self._socket.close()
            raise
        return int(self._socket.getsockname()[1])

    async def present(self, pair: Pair) -> bool:
        """Serve with this certificate from now on; whether it is another one than before."""
        if pair == self._presented:
            return False
        # Tried elsewhere first: a context that took a certificate and then refused its key would serve neither.
        _load(_context(), pair)
        _load(self._context, pair)
        if not self.is_listening:
            await self._listen()
        self._presented = pair
        return True

    async def _listen(self) -> None:
        if self._socket is None:
            raise RuntimeError("bind first")
        if self._runner.server is None:
            await self._runner.setup()
        await web.SockSite(self._runner, self._socket, ssl_context=self._context).start()
        self.is_listening = True

    async def close(self) -> None:
        """Answer what was asked, and no more."""
        self.is_listening = False
        await self._runner.cleanup()
        if self._socket is not None:
            self._socket.close()


def _handler(reviewer: Reviewer) -> _Handler:
    async def handle(request: web.Request) -> web.Response:
        try:
            body = await _body(request)
        except TimeoutError:
            return web.Response(status=408, text=f"the request did not arrive within {READ_SECONDS:g} s")
        answer = reviewer.answer(body)
        if not isinstance(answer, Answer):
            answer = await answer
        content_type = "application/json" if answer.status == 200 else "text/plain"
        return web.Response(status=answer.status, body=answer.body, content_type=content_type)

    return handle


async def _body(request: web.Request) -> bytes:
    """Most are there as soon as their headers are: then nothing is waited for, nor is a timer needed."""
    if request.content.is_eof() and request.content.total_bytes <= MAX_BODY:
        return request.content.read_nowait()
    async with asyncio.timeout(READ_SECONDS):
        return await request.read()


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """The ssl module reads certificates from files only: one that nobody else can read, for a moment."""
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair.key + b"\n" + pair.certificate)
        context.load_cert_chain(path)
    except ssl.SSLError as error:
        raise BadCertificate(f"the certificate cannot be used with its key: {error.reason or error}") from None
    finally:
        os.unlink(path)
