"""TCP proxy between an operator and its API server that can be cut, to simulate `kill -9`.

To a server, a killed process and one without network look alike: its connections end. An operator behind a cut proxy
can write nothing while it shuts down.
"""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit

from nodeyard.testing.loop_thread import LoopThread
from nodeyard.testing.ports import LOOPBACK

CHUNK = 1 << 18


class CuttableProxy(LoopThread):
    """Forwards bytes, including TLS; `url` replaces that of the server."""

    def __init__(self, upstream: str) -> None:
        super().__init__("cuttable-proxy")
        parts = urlsplit(upstream)
        self._host, self._port = parts.hostname or LOOPBACK, parts.port or 443
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._server: asyncio.Server
        self.url = ""

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._connected, LOOPBACK, 0)
        self.url = f"https://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"

    async def _stop(self) -> None:
        self._server.close()
        self._abort()

    def cut(self) -> None:
        """Cut all connections for good; nothing passes after this returns."""

        async def cut() -> None:
            self._is_cut = True
            await self._stop()

        self.run(cut())

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        ends = [writer]
        try:
            onward_reader, onward = await asyncio.open_connection(self._host, self._port)
            ends.append(onward)
            self._writers.update(ends)
            await asyncio.gather(_pour(reader, onward), _pour(onward_reader, writer))
        except OSError:
            writer.transport.abort()
        finally:
            self._writers.difference_update(ends)
            for end in ends:
                end.close()


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await source.read(CHUNK):
            sink.write(chunk)
            await sink.drain()
    sink.close()
