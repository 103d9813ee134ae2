"""Splits a byte stream into lines, and collects whole bodies, within size limits.

A watch event may be larger than a read buffer. The limits protect the operator's memory, which all clusters share, from
untrusted servers.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Final

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
                self._put_off(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._pending:
            self._pending.append(lines[0])
            lines[0] = b"".join(self._pending)
            self._pending.clear()
            self._size = 0
        if lines[-1]:
            self._put_off(lines[-1])
        del lines[-1]
        return [line for line in lines if line]

    @property
    def rest(self) -> bytes:
        """The bytes after the last newline: an incomplete event if the stream has ended."""
        return b"".join(self._pending)

    def _put_off(self, part: bytes) -> None:
        self._pending.append(part)
        self._size += len(part) + PART_BYTES
        if self._size > self._most:
            raise TooLarge("a line", self._most)


def most_of(status: int, largest: int) -> int:
    """Return the size limit of a response with this status; `largest` is that of a successful one."""
    return largest if status < _FIRST_FAILURE else min(largest, ERROR_BYTES)


async def gathered(chunks: AsyncIterable[bytes], most: int) -> bytes:
    """Join all chunks. Raises TooLarge."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk) + PART_BYTES
        if size > most:
            raise TooLarge("the response", most)
    return b"".join(parts)
