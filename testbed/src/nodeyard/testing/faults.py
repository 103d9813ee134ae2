"""Proxy between a client and an API server that injects faults.

    faults.add(Status(429, retry_after=1), path="/nodes/", method="PATCH", times=3)
    faults.add(Drop(after_sending=True), chance=0.1)       # the write happens, the response is lost
    faults.add(DoubleEvents(), chance=0.2)                 # watches repeat events

The seed and the order of requests decide which request is hit. The proxy has a CA of its own; bearer tokens pass
through, client certificates do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Self

import aiohttp
from aiohttp import web
from aiohttp.web_request import BaseRequest

from nodeyard.apiserver import kubeconfig
from nodeyard.apiserver.certificates import server_context
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.responses import encode
from nodeyard.process.certificates import Authority
from nodeyard.testing.directories import Directory
from nodeyard.testing.loop_thread import LoopThread
from nodeyard.testing.ports import LOOPBACK

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"}


@dataclass(frozen=True)
class Latency:
    """Delay the request."""

    seconds: float


@dataclass(frozen=True)
class Drop:
    """Cut the connection before forwarding the request, or after the server has answered it."""

    after_sending: bool = False


@dataclass(frozen=True)
class HalfOpen:
    """Accept the request and never answer; a watch stays open without events."""


@dataclass(frozen=True)
class Status:
    """Answer with an error without forwarding the request."""

    code: int
    retry_after: int = 0


@dataclass(frozen=True)
class TruncateEvents:
    """Cut a watch in the middle of an event."""


@dataclass(frozen=True)
class DoubleEvents:
    """Send an event of a watch twice."""


Fault = Latency | Drop | HalfOpen | Status | TruncateEvents | DoubleEvents
_ON_EVENTS = (TruncateEvents, DoubleEvents)


@dataclass
class Rule:
    """A fault and the requests that it hits."""

    fault: Fault
    method: str
    path: re.Pattern[str]
    chance: float
    left: int | None
    hits: int = field(default=0)

    def hits_request(self, method: str, target: str, random: Random) -> bool:
        if self.left == 0 or (self.method and method != self.method) or not self.path.search(target):
            return False
        if self.chance < 1 and random.random() >= self.chance:
            return False
        if self.left is not None:
            self.left -= 1
        self.hits += 1
        return True


class FaultProxy(LoopThread):
    """Starts without faults; `add` and `clear` change them."""

    def __init__(self, upstream: str, authority: bytes, token: str, seed: int = 0) -> None:
        super().__init__("fault-proxy")
        self._upstream = upstream
        self._trust = ssl.create_default_context(cadata=authority.decode())
        self._token = token
        self._random = Random(seed)
        self._rules: list[Rule] = []
        self._home = Directory()
        self.authority = Authority()
        self._stalled: set[asyncio.Event] = set()
        self._session: aiohttp.ClientSession
        self._runner: web.ServerRunner
        self.url = ""

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig for the proxy."""
        return self._home.path / "faulty.kubeconfig"

    def add(
        self, fault: Fault, *, method: str = "", path: str = "", chance: float = 1.0, times: int | None = None
    ) -> Rule:
        """Inject a fault into requests with this method and a path or query that matches; at most `times` times."""
        rule = Rule(fault, method, re.compile(path), chance, times)
        self._rules = [*self._rules, rule]
        return rule

    def clear(self) -> None:
        """Remove all faults; cut half-open requests."""
        self._rules = []
        self._loop.call_soon_threadsafe(self._release)

    def start(self) -> Self:
        super().start()
        kubeconfig.write(self.kubeconfig, kubeconfig.with_token(self.url, self.authority.pem, self._token))
        return self

    def close(self) -> None:
        super().close()
        self._home.close()

    async def _start(self) -> None:
        connector = aiohttp.TCPConnector(ssl=self._trust, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)
        )
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.5)
        await self._runner.setup()
        context = server_context(self.authority, LOOPBACK, "localhost")
        await web.TCPSite(self._runner, LOOPBACK, 0, ssl_context=context).start()
        self.url = f"https://{LOOPBACK}:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        self._release()
        await self._runner.cleanup()
        await self._session.close()

    def _release(self) -> None:
        for stalled in self._stalled:
            stalled.set()

    async def _stall(self) -> None:
        stalled = asyncio.Event()
        self._stalled.add(stalled)
        try:
            await stalled.wait()
        finally:
            self._stalled.discard(stalled)

    async def _handle(self, incoming: BaseRequest) -> web.StreamResponse:
        body = await incoming.read()
        hit = [
            rule.fault
            for rule in self._rules
            if not isinstance(rule.fault, _ON_EVENTS)
            and rule.hits_request(incoming.method, incoming.path_qs, self._random)
        ]
        for fault in hit:
            answer = await self._before(incoming, fault)
            if answer is not None:
                return answer
        is_cut_after = any(isinstance(fault, Drop) for fault in hit)
        is_stalled = any(isinstance(fault, HalfOpen) for fault in hit)
        try:
            return await self._forward(incoming, body, is_cut_after=is_cut_after, is_stalled=is_stalled)
        except aiohttp.ClientError:  # The API server is away.
            return _cut(incoming)

    async def _before(self, incoming: BaseRequest, fault: Fault) -> web.StreamResponse | None:
        """Return the response of a fault; None to forward the request."""
        if isinstance(fault, Latency):
            await asyncio.sleep(fault.seconds)
        elif isinstance(fault, Status):
            return _status(fault)
        elif isinstance(fault, Drop) and not fault.after_sending:
            return _cut(incoming)
        elif isinstance(fault, HalfOpen) and "watch" not in incoming.query:
            await self._stall()
            return _cut(incoming)
        return None

    async def _forward(
        self, incoming: BaseRequest, body: bytes, *, is_cut_after: bool, is_stalled: bool
    ) -> web.StreamResponse:
        headers = {name: value for name, value in incoming.headers.items() if name.lower() not in _HOP_BY_HOP}
        async with self._session.request(
            incoming.method, self._upstream + incoming.path_qs, data=body or None, headers=headers
        ) as answer:
            if is_cut_after:
                await answer.read()
                return _cut(incoming)
            response = web.StreamResponse(status=answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    response.headers.add(name, value)
            response.enable_chunked_encoding()
            await response.prepare(incoming)
            with contextlib.suppress(ConnectionError):
                await self._forward_body(incoming, answer, response, is_stalled=is_stalled)
            return response

    async def _forward_body(
        self, incoming: BaseRequest, answer: aiohttp.ClientResponse, response: web.StreamResponse, *, is_stalled: bool
    ) -> None:
        if "watch" not in incoming.query:
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return
        if is_stalled:
            await self._stall()
            return
        async for line in _lines(answer):
            if not await self._forward_event(incoming, response, line):
                return
        await response.write_eof()

    async def _forward_event(self, incoming: BaseRequest, response: web.StreamResponse, line: bytes) -> bool:
        """Forward an event of a watch; return whether the watch continues."""
        for rule in self._rules:
            if not isinstance(rule.fault, _ON_EVENTS):
                if isinstance(rule.fault, HalfOpen) and rule.hits_request(
                    incoming.method, incoming.path_qs, self._random
                ):
                    await self._stall()
                    return False
                continue
            if not rule.hits_request(incoming.method, incoming.path_qs, self._random):
                continue
            if isinstance(rule.fault, TruncateEvents):
                await response.write(line[: len(line) // 2])
                _cut(incoming)
                return False
            await response.write(line)
        await response.write(line)
        return True


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield complete lines."""
    pending = b""
    async for chunk in answer.content.iter_any():
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"


def _status(fault: Status) -> web.StreamResponse:
    reasons = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 409: "Conflict", 410: "Expired"}
    details = {"retryAfterSeconds": fault.retry_after} if fault.retry_after else None
    error = ApiError(fault.code, reasons.get(fault.code, ""), "injected fault", details=details)
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
    return web.Response(
        status=fault.code, body=encode(error.status()), content_type="application/json", headers=headers
    )


def _cut(incoming: BaseRequest) -> web.StreamResponse:
    if incoming.transport is not None:
        incoming.transport.abort()
    return web.Response(status=500)
