"""A proxy between a client and an API server that misbehaves on demand.

    faults.add(Status(429, retry_after=1), path="/nodes/", method="PATCH", times=3)
    faults.add(Drop(after_sending=True), chance=0.1)       # the write happens, the answer is lost
    faults.add(DoubleEvents(), chance=0.2)                 # watches tell some things twice

Which request is hit follows from the seed and the order of requests, so a run can be repeated. It speaks TLS with an
authority of its own; bearer tokens pass through, client certificates cannot.
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

from nodeyard.apiserver.certificates import server_context
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.responses import encode
from nodeyard.process.certificates import Authority
from nodeyard.testing import kubeconfig
from nodeyard.testing.directories import Directory
from nodeyard.testing.loop_thread import Background
from nodeyard.testing.ports import LOOPBACK

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"}


@dataclass(frozen=True)
class Latency:
    """Wait before the request goes on."""

    seconds: float


@dataclass(frozen=True)
class Drop:
    """Cut the connection: before the request is sent on, or after the server has carried it out."""

    after_sending: bool = False


@dataclass(frozen=True)
class HalfOpen:
    """Take the request and never answer; a watch stays open and says nothing more."""


@dataclass(frozen=True)
class Status:
    """Answer with an error of our own; the server does not see the request."""

    code: int
    retry_after: int = 0


@dataclass(frozen=True)
class TruncateEvents:
    """End a watch in the middle of an event."""


@dataclass(frozen=True)
class DoubleEvents:
    """Send an event of a watch twice."""


Fault = Latency | Drop | HalfOpen | Status | TruncateEvents | DoubleEvents
_ON_EVENTS = (TruncateEvents, DoubleEvents)


@dataclass
class Rule:
    """A fault and whom it hits."""

    fault: Fault
    method: str
    path: re.Pattern[str]
    chance: float
    left: int | None
    hits: int = field(default=0)

    def strikes(self, method: str, target: str, random: Random) -> bool:
        if self.left == 0 or (self.method and method != self.method) or not self.path.search(target):
            return False
        if self.chance < 1 and random.random() >= self.chance:
            return False
        if self.left is not None:
            self.left -= 1
        self.hits += 1
        return True


class FaultProxy(Background):
    """Starts without faults; `add` and `clear` change them at any time."""

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
        """The administrator's, through the proxy."""
        return self._home.path / "faulty.kubeconfig"

    def add(
        self, fault: Fault, *, method: str = "", path: str = "", chance: float = 1.0, times: int | None = None
    ) -> Rule:
        """Hit requests of a method whose path and query contain a pattern; `times` bounds how often."""
        rule = Rule(fault, method, re.compile(path), chance, times)
        self._rules = [*self._rules, rule]
        return rule

    def clear(self) -> None:
        """Behave from here on; what hangs half-open is cut."""
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
        struck = [
            rule.fault
            for rule in self._rules
            if not isinstance(rule.fault, _ON_EVENTS) and rule.strikes(incoming.method, incoming.path_qs, self._random)
        ]
        for fault in struck:
            answer = await self._before(incoming, fault)
            if answer is not None:
                return answer
        is_cut_after = any(isinstance(fault, Drop) for fault in struck)
        is_stalled = any(isinstance(fault, HalfOpen) for fault in struck)
        return await self._forward(incoming, body, is_cut_after=is_cut_after, is_stalled=is_stalled)

    async def _before(self, incoming: BaseRequest, fault: Fault) -> web.StreamResponse | None:
        """What the fault answers itself; None where the request goes on."""
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
                await self._pour(incoming, answer, response, is_stalled=is_stalled)
            return response

    async def _pour(
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
            if not await self._event(incoming, response, line):
                return
        await response.write_eof()

    async def _event(self, incoming: BaseRequest, response: web.StreamResponse, line: bytes) -> bool:
        """Pass one event of a watch on; whether the watch goes on."""
        for rule in self._rules:
            if not isinstance(rule.fault, _ON_EVENTS):
                if isinstance(rule.fault, HalfOpen) and rule.strikes(incoming.method, incoming.path_qs, self._random):
                    await self._stall()
                    return False
                continue
            if not rule.strikes(incoming.method, incoming.path_qs, self._random):
                continue
            if isinstance(rule.fault, TruncateEvents):
                await response.write(line[: len(line) // 2])
                _cut(incoming)
                return False
            await response.write(line)
        await response.write(line)
        return True


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Whole lines, however long."""
    pending = b""
    async for chunk in answer.content.iter_any():
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"


def _status(fault: Status) -> web.StreamResponse:
    reasons = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 409: "Conflict", 410: "Expired"}
    details = {"retryAfterSeconds": fault.retry_after} if fault.retry_after else None
    error = ApiError(fault.code, reasons.get(fault.code, ""), "a fault that was asked for", details=details)
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
    return web.Response(
        status=fault.code, body=encode(error.status()), content_type="application/json", headers=headers
    )


def _cut(incoming: BaseRequest) -> web.StreamResponse:
    if incoming.transport is not None:
        incoming.transport.abort()
    return web.Response(status=500)
