"""Flow control: bounds the requests in flight to one server, and shares the bound fairly between flows.

A flow is the work of one component, such as the actions of a capability, its status writes or its Events. Flows with
waiting requests take turns, as in API Priority and Fairness of kube-apiserver: a capability with a thousand writes
delays the next request of any other component by one request per flow. Within a flow, requests go in order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

IN_FLIGHT: Final = 32


class FlowControl:
    def __init__(self, in_flight: int = IN_FLIGHT) -> None:
        self._free = in_flight
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The waiting requests of each flow that has any; the flow whose turn is next comes first."""

    async def acquire(self, flow: str) -> None:
        """Take a slot, after waiting for the turn of the flow."""
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(flow, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # Cancelled after its turn had come.
                self.release()
            raise

    def release(self) -> None:
        """Give the slot to the flow whose turn is next; that flow goes to the end of the line."""
        while self._waiting:
            flow = next(iter(self._waiting))
            turns = self._waiting.pop(flow)
            turn = turns.popleft()
            if turns:
                self._waiting[flow] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
