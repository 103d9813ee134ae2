"""Streams of an answer, which end well whatever becomes of who asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable


class Stream:
    """An asynchronous generator that lets go of what it holds even if it is closed before anybody has read it.

    Python closes a generator that was never begun without running any of it.
    """

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._is_begun = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        self._is_begun = True
        return anext(self._chunks)

    async def aclose(self) -> None:
        if not self._is_begun:
            await self._begin()
        await self._chunks.aclose()  # type: ignore[attr-defined]

    async def _begin(self) -> None:
        """As far as its first chunk, or the first time it waits."""
        reading = asyncio.ensure_future(anext(self._chunks, b""))
        reading.get_loop().call_soon(reading.cancel)
        await asyncio.wait([reading])
