"""Sends admission reviews to a webhook server: a fixed number of connections, each with one review in flight.

The client does as little as possible, so that the server is measured.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

HOST = "127.0.0.1"
_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


@dataclass(frozen=True)
class LoadResult:
    seconds: float
    latencies: Sequence[float]
    """In seconds, in the order of the responses."""

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """Return the latency of the nearest rank, in milliseconds."""
        ranked = sorted(self.latencies)
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))] * 1000


@dataclass(frozen=True)
class WebhookClient:
    """Address of the webhook server, with a client certificate like an API server's."""

    port: int
    authority: bytes
    certificate: Path
    """Client certificate and key."""


def send_reviews(
    client: WebhookClient, path: str, reviews: Sequence[bytes], in_flight: int, expected: bytes
) -> LoadResult:
    """Send all reviews. A response without the expected text ends the benchmark."""
    return uvloop.run(_send_reviews(client, path, reviews, in_flight, expected))


async def _send_reviews(
    client: WebhookClient, path: str, reviews: Sequence[bytes], in_flight: int, expected: bytes
) -> LoadResult:
    port, trust = client.port, ssl.create_default_context(cadata=client.authority.decode())
    trust.load_cert_chain(client.certificate)
    connections = await asyncio.gather(*(asyncio.open_connection(HOST, port, ssl=trust) for _ in range(in_flight)))
    requests = iter([_request(path, each) for each in reviews])
    latencies: list[float] = []
    try:
        began = time.perf_counter()
        await asyncio.gather(*(_work(*each, requests, latencies, expected) for each in connections))
        return LoadResult(time.perf_counter() - began, latencies)
    finally:
        for _reader, writer in connections:
            writer.close()


def _request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + _END + body


async def _work(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    requests: Iterator[bytes],
    latencies: list[float],
    expected: bytes,
) -> None:
    for request in requests:
        sent = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(_END)
        body = await reader.readexactly(content_length(head))
        latencies.append(time.perf_counter() - sent)
        if not head.startswith(b"HTTP/1.1 200 ") or expected not in body:
            raise RuntimeError(f"{head[:60]!r} {body[:300]!r}")


def content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(_LENGTH):
            return int(line.removeprefix(_LENGTH))
    raise RuntimeError(f"response without Content-Length: {head[:200]!r}")
