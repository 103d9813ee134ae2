"""Runs `nodeyard` and records its writes.

    python -m bench.recorder RECORD run --capabilities spares ...

Imports as little as possible, because the memory of this process is measured as the operator's.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from bench.load import Call
from nodeyard.client.transport import Request, Response, Stream, Transport

FLUSH_SECONDS = 0.3
_READS = ("GET", "HEAD")


class RecordingTransport:
    """Passes every request on and appends each write to the file as one line, in batches."""

    def __init__(self, inner: Transport, record: Path) -> None:
        self._inner = inner
        self._file = record.open("ab", buffering=0)
        self._sent: list[Call] = []

    async def send(self, request: Request) -> Response:
        if request.method not in _READS:
            if not self._sent:
                asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)
            self._sent.append(_call(request))
        return await self._inner.send(request)

    def _flush(self) -> None:
        sent, self._sent = self._sent, []
        if not sent:
            return
        self._file.write(b"".join(msgspec.json.encode(each) + b"\n" for each in sent))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        self._flush()
        self._file.close()
        await self._inner.close()


def _call(request: Request) -> Call:
    url = f"{request.path}?{_encoded(tuple(request.query.items()))}" if request.query else request.path
    content_type = request.headers.get("Content-Type", "application/json")
    return Call(request.method, url, request.body, content_type)


@functools.lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query, quote_via=quote)


def main(record: Path, arguments: list[str]) -> None:
    from nodeyard.app import operator
    from nodeyard.cli.app import app
    from nodeyard.client.http_transport import HttpTransport

    setattr(operator, "HttpTransport", lambda config: RecordingTransport(HttpTransport(config), record))  # noqa: B010
    app(arguments)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
