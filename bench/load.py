"""Load on an API server: many requests, a fixed number in flight, nothing else."""

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
    """Where, and as whom."""

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
async def session(target: Target, connections: int) -> AsyncIterator[aiohttp.ClientSession]:
    trust = ssl.create_default_context(cadata=target.authority.decode())
    connector = aiohttp.TCPConnector(ssl=trust, limit=connections)
    headers = {"Authorization": f"Bearer {target.token}", "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(
        target.url, connector=connector, headers=headers, timeout=aiohttp.ClientTimeout(total=120)
    ) as opened:
        yield opened


async def send(opened: aiohttp.ClientSession, calls: Iterable[Call], in_flight: int) -> float:
    """All calls, `in_flight` at a time; the seconds it took. Any answer but success ends the benchmark."""
    pending = iter(calls)

    async def work() -> None:
        for call in pending:
            await deliver(opened, call)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return time.perf_counter() - began


async def deliver(opened: aiohttp.ClientSession, call: Call) -> None:
    headers = {"Content-Type": call.content_type} if call.body else {}
    async with opened.request(call.method, call.path, data=call.body or None, headers=headers) as answer:
        body = await answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{call.method} {call.path}: {answer.status} {body[:300]!r}")


@asynccontextmanager
async def watcher(opened: aiohttp.ClientSession, path: str) -> AsyncIterator[None]:
    """Someone who watches, as there always is."""

    async def watch() -> None:
        async with opened.get(path, params={"watch": "true", "resourceVersion": "0"}) as answer:
            async for _ in answer.content.iter_any():
                pass

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
