"""Helpers for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


async def first_of(*awaitables: Awaitable[object]) -> None:
    """Wait until one awaitable is done and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in awaitables]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
