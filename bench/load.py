"""Sends requests to an API server, a fixed number in flight."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Target:
    """URL, CA certificate and token of an API server."""

    url: str
    authority: bytes
    token: str


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"


@asynccontextmanager
async def connect(target: Target, connections: int) -> AsyncIterator[aiohttp.ClientSession]:
    trust = ssl.create_default_context(cadata=target.authority.decode())
    connector = aiohttp.TCPConnector(ssl=trust, limit=connections)
    headers = {"Authorization": f"Bearer {target.token}", "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(
        target.url, connector=connector, headers=headers, timeout=aiohttp.ClientTimeout(total=120)
    ) as session:
        yield session


async def send_all(session: aiohttp.ClientSession, calls: Iterable[Call], in_flight: int) -> float:
    """Send all calls, `in_flight` at a time; return the seconds it took. An error response ends the benchmark."""
    pending = iter(calls)

    async def work() -> None:
        for call in pending:
            await send(session, call)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return time.perf_counter() - began


async def send(session: aiohttp.ClientSession, call: Call) -> None:
    headers = {"Content-Type": call.content_type} if call.body else {}
    async with session.request(call.method, call.path, data=call.body or None, headers=headers) as response:
        body = await response.read()
        if response.status >= 300:
            raise RuntimeError(f"{call.method} {call.path}: {response.status} {body[:300]!r}")


@asynccontextmanager
async def attach_watcher(session: aiohttp.ClientSession, path: str) -> AsyncIterator[None]:
    """Keep a watch open, because a real server always has some."""

    async def watch() -> None:
        async with session.get(path, params={"watch": "true", "resourceVersion": "0"}) as response:
            async for _ in response.content.iter_any():
                pass

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()
