"""Response bodies within size limits: whole bodies, lines of a stream, and decompression.

A watch event may be larger than a read buffer. The limits protect the operator's memory, which all clusters share, from
untrusted servers. A proxy may compress a response despite `Accept-Encoding: identity`: gzip is decoded within the limit
of an uncompressed response, and any other encoding raises an error that names it.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, Iterator
from typing import Final

from nodeyard.client.transport import Response

LINE_BYTES: Final = 16 << 20
"""The limit of one watch event; the API server accepts objects of up to 3 MiB."""
ERROR_BYTES: Final = 16 << 20
"""The limit of an error response."""
PART_BYTES: Final = 64
"""Memory overhead counted for each buffered part, so that many tiny parts are limited too."""

_FIRST_FAILURE: Final = 300


class TooLarge(ConnectionError):
    """A line or body exceeds its limit; the rest of the stream is unusable."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"{what} is larger than {most / (1 << 20):g} MiB")


class LineFramer:
    """Splits a byte stream at newlines; an incomplete line waits for the next chunk."""

    def __init__(self, most: int = LINE_BYTES) -> None:
        self._most = most
        self._pending: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without newlines and without empty lines.

        Raises TooLarge.
        """
        if b"\n" not in chunk:
            if chunk:
                self._hold_back(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._pending:
            self._pending.append(lines[0])
            lines[0] = b"".join(self._pending)
            self._pending.clear()
            self._size = 0
        if lines[-1]:
            self._hold_back(lines[-1])
        del lines[-1]
        return [line for line in lines if line]

    @property
    def rest(self) -> bytes:
        """The bytes after the last newline: an incomplete event if the stream has ended."""
        return b"".join(self._pending)

    def _hold_back(self, part: bytes) -> None:
        self._pending.append(part)
        self._size += len(part) + PART_BYTES
        if self._size > self._most:
            raise TooLarge("a line", self._most)


def limit_for(status: int, largest: int) -> int:
    """Return the size limit of a response with this status; `largest` is that of a successful one."""
    return largest if status < _FIRST_FAILURE else min(largest, ERROR_BYTES)


async def read_all(chunks: AsyncIterable[bytes], most: int) -> bytes:
    """Join all chunks. Raises TooLarge."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk) + PART_BYTES
        if size > most:
            raise TooLarge("the response", most)
    return b"".join(parts)


IDENTITY: Final = "identity"
_GZIP: Final = ("gzip", "x-gzip")
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
PIECE_BYTES: Final = 1 << 20
"""Number of bytes of a stream that are decoded at a time."""
LARGE_BYTES: Final = 64 * 1024
"""A compressed body of more than this is decoded on another thread."""


class Undecodable(ConnectionError):
    """The body cannot be decoded. The text names the encoding and the remedy."""


def encoding_of(header: str | None) -> str:
    """Return the content encoding; empty for identity. Raises Undecodable if it is not supported."""
    encoding = (header or "").strip().lower()
    if encoding in ("", IDENTITY):
        return ""
    if encoding not in _GZIP:
        raise Undecodable(
            f'the response has content encoding "{encoding[:40]}" although identity was requested: '
            "disable compression in the proxy in front of the server"
        )
    return encoding


async def decompress(response: Response, largest: int) -> Response:
    """Return the response with its body decompressed. Raises Undecodable or TooLarge."""
    if not encoding_of(response.headers.get("content-encoding")):
        return response
    most = limit_for(response.status, largest)
    is_large = len(response.body) > LARGE_BYTES
    body = await asyncio.to_thread(_inflate, response.body, most) if is_large else _inflate(response.body, most)
    return response._replace(body=body)


class Inflater:
    """Decompresses a gzip stream in pieces of bounded size."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(_GZIP_WINDOW)

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decompressed pieces of a chunk, each decoded on demand."""
        while chunk:
            if self._decoder.eof:  # A gzip stream may have several members.
                self._decoder = zlib.decompressobj(_GZIP_WINDOW)
            try:
                piece = self._decoder.decompress(chunk, PIECE_BYTES)
            except zlib.error as error:
                raise Undecodable(f"the response is declared as gzip and is not: {error}") from None
            chunk = self._decoder.unused_data if self._decoder.eof else self._decoder.unconsumed_tail
            if piece:
                yield piece

    def finish(self) -> None:
        """Raise Undecodable if the stream has been cut off."""
        if not self._decoder.eof:
            raise Undecodable("the response is truncated gzip")


def _inflate(body: bytes, most: int) -> bytes:
    inflater, pieces, size = Inflater(), [], 0
    for start in range(0, len(body), PIECE_BYTES):
        for piece in inflater.pieces(body[start : start + PIECE_BYTES]):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise TooLarge("the response", most)
    inflater.finish()
    return b"".join(pieces)
