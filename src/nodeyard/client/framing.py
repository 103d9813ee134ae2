"""Lines out of chunks. A watch event may be larger than any reader's buffer, so there is no limit on a line here."""

from __future__ import annotations


class LineFramer:
    """Cuts a byte stream at newlines; what is not yet ended waits for the next chunk."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their newline; empty lines are left out."""
        if b"\n" not in chunk:
            if chunk:
                self._pending.append(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._pending:
            self._pending.append(lines[0])
            lines[0] = b"".join(self._pending)
            self._pending.clear()
        if lines[-1]:
            self._pending.append(lines[-1])
        del lines[-1]
        return [line for line in lines if line]

    @property
    def rest(self) -> bytes:
        """What came after the last newline: a torn event when the stream has ended."""
        return b"".join(self._pending)
