"""The Lease of a mirrored node as a value: request bodies, and decoding of responses. Pure.

In the steady state a renewal is one small patch with the last known resourceVersion, and only the new resourceVersion
of its response is decoded. Full repairs are sent for a lease that is wrong: after a restart, for a recreated node, or
for a lease that Kosmos wrote.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nodeyard.client.resources import LEASES, NODES
from nodeyard.kube.json import Object
from nodeyard.kube.names import LEASE_NAMESPACE

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
