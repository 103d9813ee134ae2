"""Lines, and whole texts, out of chunks.

A watch event may be larger than any reader's buffer, but there is a limit to what is kept of one: the server may be
anybody's, and our memory is for all clusters.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Final

LINE_BYTES: Final = 16 << 20
"""A server takes no object of more than 3 MiB."""
ERROR_BYTES: Final = 16 << 20
"""Of an answer that is no success."""
PART_BYTES: Final = 64
"""What each part that is kept costs beside its contents, so that many tiny ones count for what they take."""

_FIRST_FAILURE: Final = 300


class TooLarge(ConnectionError):
    """More has come than is kept, so that what is still to come is of no use."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"{what} is larger than {most / (1 << 20):g} MiB")


class LineFramer:
    """Cuts a byte stream at newlines; what is not yet ended waits for the next chunk."""

    def __init__(self, most: int = LINE_BYTES) -> None:
        self._most = most
        self._pending: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their newline; empty lines are left out.

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
        """What came after the last newline: a torn event when the stream has ended."""
        return b"".join(self._pending)

    def _put_off(self, part: bytes) -> None:
        self._pending.append(part)
        self._size += len(part) + PART_BYTES
        if self._size > self._most:
            raise TooLarge("a line", self._most)


def most_of(status: int, largest: int) -> int:
    """How much is kept of an answer of this status, where one may have `largest`."""
    return largest if status < _FIRST_FAILURE else min(largest, ERROR_BYTES)


async def gathered(chunks: AsyncIterable[bytes], most: int) -> bytes:
    """All of them together. Raises TooLarge."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk) + PART_BYTES
        if size > most:
            raise TooLarge("the answer", most)
    return b"".join(parts)
