"""One node's Lease in the root: renewed by one small patch, and read first if its state is uncertain.

A resourceVersion is used once. After a lost response, an error or a cancelled round the next one is unknown, so the
lease is read before the next write. A read also shows whether another process renews the lease: its renewTime is
neither the last seen one nor one that this process sent.

A lease that disappeared may have been removed with its node, which the planner deletes first. It is created again only
if the node still exists. A lease of a node that Kosmos created and renewed recently counts as renewed by another
process until it has not changed for one lease duration.

In the steady state a renewal is one small patch with the last known resourceVersion, and only the new resourceVersion
of its response is decoded. Full repairs are sent for a lease that is wrong: after a restart, for a recreated node, or
for a lease that Kosmos wrote.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import Conflict, NotFound
from nodeyard.client.resources import LEASES, NODES
from nodeyard.client.transport import Hold, Request, Response, Stream, Transport
from nodeyard.kube.json import Object
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.kube.timestamps import format_rfc3339_micro, parse_rfc3339
from nodeyard.process.clock import Clock

# the Lease as a value


DURATION_SECONDS: Final = 40


class VersionMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class Version(msgspec.Struct, frozen=True):
    """The part of a renewal's response that is decoded."""

    metadata: VersionMeta


class ReadMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    owner_references: tuple[dict[str, Any], ...] | None = None


class ReadSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class ReadLease(msgspec.Struct, frozen=True):
    """A lease as found. Times stay strings: they are only compared with those that this process wrote."""

    metadata: ReadMeta
    spec: ReadSpec | None = None

    @property
    def renew_time(self) -> str:
        return (self.spec.renew_time if self.spec else None) or ""


VERSIONS: Final = LEASES.decoded_as(Version)
READ: Final = LEASES.decoded_as(ReadLease)


class OwnerMeta(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class Owner(msgspec.Struct, frozen=True):
    """The node of a lease, trimmed to what tells whether the lease is still wanted."""

    metadata: OwnerMeta

    def is_here(self, uid: str) -> bool:
        """Return True if the node has this uid and is not terminating."""
        return self.metadata.uid == uid and self.metadata.deletion_timestamp is None


OWNERS: Final = NODES.decoded_as(Owner)


def renew_patch(version: str, moment: str) -> bytes:
    """Body of a steady-state renewal. Neither string can contain a character that JSON escapes."""
    return f'{{"metadata":{{"resourceVersion":"{version}"}},"spec":{{"renewTime":"{moment}"}}}}'.encode()


def repair_patch(found: ReadLease, node: str, uid: str, moment: str) -> Object:
    """Body that renews a lease and repairs its owner, holder and duration."""
    metadata: Object = {"resourceVersion": found.metadata.resource_version}
    owners = list(found.metadata.owner_references or ())
    wanted = _owners(owners, node, uid)
    if wanted != owners:
        # ownerReferences is replaced as a whole; resourceVersion protects concurrent additions.
        metadata["ownerReferences"] = wanted
    spec: Object = {"renewTime": moment}
    if (found.spec and found.spec.holder_identity) != node:
        spec |= {"holderIdentity": node, "acquireTime": moment}
    if (found.spec and found.spec.lease_duration_seconds) != DURATION_SECONDS:
        spec["leaseDurationSeconds"] = DURATION_SECONDS
    return {"metadata": metadata, "spec": spec}


def manifest(node: str, uid: str, moment: str) -> Object:
    metadata: Object = {"name": node, "namespace": LEASE_NAMESPACE}
    if owners := _owners([], node, uid):
        metadata["ownerReferences"] = owners
    spec = {
        "holderIdentity": node,
        "leaseDurationSeconds": DURATION_SECONDS,
        "acquireTime": moment,
        "renewTime": moment,
    }
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}


def _owners(owners: list[Object], node: str, uid: str) -> list[Object]:
    """Keep other owners and set the current node. A reference to a deleted node would garbage-collect the lease."""
    kept = [each for each in owners if each.get("kind") != "Node" or each.get("uid") == uid]
    if not uid or any(each.get("kind") == "Node" for each in kept):
        return kept
    return [*kept, {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}]


# renewal


ATTEMPTS: Final = 3
"""Attempts per round at a lease that changes or disappears concurrently."""
MOVES: Final = 2
"""Foreign renewals, each within one lease duration of the last, that show that another process renews the lease."""


class GatedTransport:
    """Checks write permission before each write, after the request got its connection. Reads are always sent."""

    def __init__(self, inner: Transport, hold: Hold) -> None:
        self._inner = inner
        self._hold = hold

    async def send(self, request: Request) -> Response:
        if request.hold is None and request.method != "GET":
            request = msgspec.structs.replace(request, hold=self._hold)
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


class NodeLease:
    def __init__(self, node: str, client: Client, clock: Clock, *, is_foreign: bool = False) -> None:
        self.node = node
        self.is_foreign = is_foreign
        """Another operator created the node."""
        self.renewed_at: float | None = None
        """Monotonic time of this process's last renewal."""
        self.error = ""
        """Error of the last renewal; empty if it succeeded."""
        self._client = client
        self._clock = clock
        self._version = ""
        """The resourceVersion for the next write; empty if it must be read first."""
        self._owner = ""
        """Uid of the node that owns the lease."""
        self._seen: str | None = None
        """The renewTime at the last read or write."""
        self._sent = ""
        """The last renewTime sent, whether or not a response came."""
        self._moves = 0
        self._moved_at = 0.0

    @property
    def is_moved(self) -> bool:
        """Another process renews the lease."""
        return self._moves >= MOVES and self._is_recent()

    async def renew(self, uid: str) -> bool | None:
        """Renew the lease for the node with this uid. Return True if created, None if lease and node are gone."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._attempt(uid)
            except (Conflict, NotFound):
                # Changed, deleted or created concurrently: the next attempt reads first.
                continue
        return await self._attempt(uid)

    async def observe(self) -> None:
        """Read the lease only to see whether another process renews it."""
        await self._read()

    async def _attempt(self, uid: str) -> bool | None:
        version, self._version = self._version, ""
        client, node = self._client, self.node
        is_new = False
        if version and self._owner == uid:
            body = renew_patch(version, self._timestamp())
            answer = await client.patch(VERSIONS, node, body, LEASE_NAMESPACE)
        elif (found := await self._read()) is not None:
            answer = await client.patch(
                VERSIONS, node, repair_patch(found, node, uid, self._timestamp()), LEASE_NAMESPACE
            )
        elif self._seen is not None and not await self._has_node(uid):
            return None
        else:
            answer = await client.create(VERSIONS, manifest(node, uid, self._timestamp()))
            is_new = True
        self._version, self._owner, self._seen = answer.metadata.resource_version, uid, self._sent
        self.renewed_at = self._clock.monotonic()
        return is_new

    def _timestamp(self) -> str:
        self._sent = format_rfc3339_micro(self._clock.now())
        return self._sent

    async def _read(self) -> ReadLease | None:
        try:
            found = await self._client.get(READ, self.node, LEASE_NAMESPACE)
        except NotFound:
            return None
        self._record(found.renew_time)
        return found

    async def _has_node(self, uid: str) -> bool:
        try:
            return (await self._client.get(OWNERS, self.node)).is_here(uid)
        except NotFound:
            return False

    def _record(self, renew_time: str) -> None:
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
            return self._clock.now() - parse_rfc3339(renew_time) < timedelta(seconds=DURATION_SECONDS)
        except ValueError:
            return False

    def _is_recent(self) -> bool:
        """Return True if the last foreign renewal is at most one lease duration ago."""
        return self._clock.monotonic() - self._moved_at < DURATION_SECONDS
