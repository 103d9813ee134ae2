"""Finds out about the server itself: the kinds it serves, again and again; which cluster it is, once and after trouble.

A server that does not answer is asked again soon, and what was known stays known.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.errors import ClientError
from nodeyard.client.resources import NAMESPACES
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.watch.facts import Facts

DISCOVERY_SECONDS: Final = 30.0
DISCOVERY_RETRY_SECONDS: Final = 2.0
# After a hurry: a server tells of a new kind a moment after it has it.
AFTERWARDS_SECONDS: Final = (0.5, 1.0, 2.0, 4.0)
# The Namespace that every cluster has, and whose uid therefore tells one from another.
SYSTEM_NAMESPACE: Final = "kube-system"
# The last two: a document that is not what it should be, from whatever stands in front of the server.
_TROUBLE = (ClientError, msgspec.MsgspecError, LookupError)

_log = get_logger("watches")


class Inquirer:
    def __init__(self, client: Client, clock: Clock, facts: Facts) -> None:
        self._client = client
        self._clock = clock
        self._facts = facts
        self._discover_at = 0.0
        self._afterwards: tuple[float, ...] = ()
        self._identify_at = 0.0
        self._identified_after = -1
        """How often the watches had broken when the cluster last said which it is."""
        self._error = ""

    def hurry(self) -> None:
        """A kind may have come or gone: ask at the next turn, and a few times soon after."""
        self._discover_at, self._afterwards = 0.0, AFTERWARDS_SECONDS

    def left(self, *, discovers: bool) -> float:
        """Seconds until there is something to ask."""
        now = self._clock.monotonic()
        left = self._discover_at - now if discovers or self._facts.are_versions_asked else DISCOVERY_SECONDS
        return max(0.0, min(left, self._identify_at - now) if self._error else left)

    async def discover(self, *, is_wanted: bool) -> Catalog | None:
        """What the server has, where somebody wants to know and it is time to ask."""
        is_wanted = is_wanted or self._facts.are_versions_asked
        if not is_wanted or self._clock.monotonic() < self._discover_at:
            return None
        try:
            catalog = await self._client.catalog()
        except _TROUBLE as error:
            self._discover_at = self._clock.monotonic() + DISCOVERY_RETRY_SECONDS
            _log.warning("keeping the known kinds", reason=str(error))
            return None
        wait, self._afterwards = (*self._afterwards, DISCOVERY_SECONDS)[0], self._afterwards[1:]
        self._discover_at = self._clock.monotonic() + wait
        self._facts.learn_versions(catalog)
        return catalog

    async def identify(self, breaks: int) -> None:
        """Which cluster this is, where somebody wants to know; `breaks` is how often the watches have broken."""
        is_known = self._identified_after == breaks and not self._error
        if not self._facts.is_uid_asked or is_known or self._clock.monotonic() < self._identify_at:
            return
        self._identify_at = self._clock.monotonic() + DISCOVERY_RETRY_SECONDS
        try:
            uid = (await self._client.get(NAMESPACES, SYSTEM_NAMESPACE))["metadata"]["uid"]
        except _TROUBLE as error:
            if str(error) != self._error:
                _log.warning("not knowing which cluster this is", reason=str(error))
            self._error = str(error) or type(error).__name__
            return
        self._identified_after, self._error = breaks, ""
        self._facts.learn_uid(uid)
