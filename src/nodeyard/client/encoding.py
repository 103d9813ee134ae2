"""Decompression of responses that a proxy compressed despite `Accept-Encoding: identity`.

gzip is decoded within the size limit of an uncompressed response. Any other encoding raises an error that names it.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from typing import Final

from nodeyard.client.framing import TooLarge, most_of
from nodeyard.client.transport import Response

IDENTITY: Final = "identity"
_GZIP: Final = ("gzip", "x-gzip")
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
PIECE_BYTES: Final = 1 << 20
"""How much of a stream is decoded at a time."""
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


async def decoded(response: Response, largest: int) -> Response:
    """Return the response with its body decompressed. Raises Undecodable or TooLarge."""
    if not encoding_of(response.headers.get("content-encoding")):
        return response
    most = most_of(response.status, largest)
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
            piece = _decompress(self._decoder, chunk, PIECE_BYTES)
            chunk = self._decoder.unconsumed_tail
            if piece:
                yield piece


def _inflate(body: bytes, most: int) -> bytes:
    decoder = zlib.decompressobj(_GZIP_WINDOW)
    plain = _decompress(decoder, body, most)
    if decoder.unconsumed_tail:
        raise TooLarge("the response", most)
    if not decoder.eof:
        raise Undecodable("the response is truncated gzip")
    return plain


def _decompress(decoder: zlib._Decompress, data: bytes, most: int) -> bytes:
    try:
        return decoder.decompress(data, most)
    except zlib.error as error:
        raise Undecodable(f"the response is declared as gzip and is not: {error}") from None
