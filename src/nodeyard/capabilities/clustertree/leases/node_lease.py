"""One node's Lease in the root: kept fresh with one small write each time, and looked at when something is odd.

A version is used once. Until an answer has named the next one it is not known, so that after a lost answer, an error or
a round that ended too early the lease is read before it is written again. A look also tells whether somebody else
renews it: its time is neither the one that was last seen nor one that we sent.

A lease that was there and is gone may have gone with its node, which the planner removes first: it is not made again
before somebody has looked whether the node is there. One of a node that Kosmos made, and that was renewed a moment ago
when we first see it, is renewed by somebody else until it has stood still for as long as a lease lasts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from nodeyard.capabilities.clustertree.leases.lease import (
    DURATION_SECONDS,
    OWNERS,
    READ,
    VERSIONS,
    ReadLease,
    manifest,
    mending,
    renewal,
)
from nodeyard.client.api import Client
from nodeyard.client.errors import Conflict, NotFound
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.process.clock import Clock, parse_time, rfc3339_micro

ATTEMPTS: Final = 3
"""In one round, at a lease that is changed or gone under our hands."""
MOVES: Final = 2
"""By somebody else, each within the duration of a lease after the last: then it is somebody who renews it."""


class NodeLease:
    def __init__(self, node: str, client: Client, clock: Clock, *, is_foreign: bool = False) -> None:
        self.node = node
        self.is_foreign = is_foreign
        """Whether somebody else made the node."""
        self.renewed_at: float | None = None
        """When it was last renewed by us, by the monotonic clock."""
        self.error = ""
        """Why it was not, the last time it was to be; empty when it was."""
        self._client = client
        self._clock = clock
        self._version = ""
        """The one to write on; empty where it has to be looked up."""
        self._owner = ""
        """The uid that the lease is known to belong to."""
        self._seen: str | None = None
        """Its time of renewal when it was last read or written."""
        self._sent = ""
        """The last time that we sent, whether or not an answer came."""
        self._moves = 0
        self._moved_at = 0.0

    @property
    def is_moved(self) -> bool:
        """Whether somebody else renews it."""
        return self._moves >= MOVES and self._is_recent()

    async def renew(self, uid: str) -> bool | None:
        """Make it fresh, and the node's of this uid; whether it had to be created. None where both are gone."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._attempt(uid)
            except (Conflict, NotFound):
                # Changed, gone or come meanwhile: the next attempt looks first.
                continue
        return await self._attempt(uid)

    async def look(self) -> None:
        """Only see whether somebody else renews it."""
        await self._read()

    async def _attempt(self, uid: str) -> bool | None:
        version, self._version = self._version, ""
        client, node = self._client, self.node
        is_new = False
        if version and self._owner == uid:
            body = renewal(version, self._moment())
            answer = await client.patch(VERSIONS, node, body, LEASE_NAMESPACE)
        elif (found := await self._read()) is not None:
            answer = await client.patch(VERSIONS, node, mending(found, node, uid, self._moment()), LEASE_NAMESPACE)
        elif self._seen is not None and not await self._has_node(uid):
            return None
        else:
            answer = await client.create(VERSIONS, manifest(node, uid, self._moment()))
            is_new = True
        self._version, self._owner, self._seen = answer.metadata.resource_version, uid, self._sent
        self.renewed_at = self._clock.monotonic()
        return is_new

    def _moment(self) -> str:
        self._sent = rfc3339_micro(self._clock.now())
        return self._sent

    async def _read(self) -> ReadLease | None:
        try:
            found = await self._client.get(READ, self.node, LEASE_NAMESPACE)
        except NotFound:
            return None
        self._notice(found.renew_time)
        return found

    async def _has_node(self, uid: str) -> bool:
        try:
            return (await self._client.get(OWNERS, self.node)).is_here(uid)
        except NotFound:
            return False

    def _notice(self, renew_time: str) -> None:
        is_first = self._seen is None
        is_moved = not is_first and renew_time not in (self._seen, self._sent)
        self._seen = renew_time
        if is_moved:
            self._moves = self._moves + 1 if self._is_recent() else 1
            self._moved_at = self._clock.monotonic()
        elif is_first and self.is_foreign and self._is_fresh(renew_time):
            self._moves, self._moved_at = MOVES, self._clock.monotonic()

    def _is_fresh(self, renew_time: str) -> bool:
        try:
            return self._clock.now() - parse_time(renew_time) < timedelta(seconds=DURATION_SECONDS)
        except ValueError:
            return False

    def _is_recent(self) -> bool:
        """Whether the last move by somebody else is no longer ago than a lease lasts."""
        return self._clock.monotonic() - self._moved_at < DURATION_SECONDS
