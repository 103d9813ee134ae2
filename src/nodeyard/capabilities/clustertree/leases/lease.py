"""The Lease of a mirrored node as a value: what is sent, and what is read of an answer. Pure.

In the steady state a renewal is one small patch on the version that the last answer named, and of its answer only the
new version is read. The rest is sent where a lease was found that is not as it should be: after a restart, after the
node was made anew, after Kosmos.
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
    """All that a renewal reads of its answer."""

    metadata: VersionMeta


class ReadMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    owner_references: tuple[dict[str, Any], ...] | None = None


class ReadSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class ReadLease(msgspec.Struct, frozen=True):
    """A lease as somebody left it. Times stay text: what matters is whether they are those that we wrote."""

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
    """The node of a lease, as far as it tells whether the lease is still wanted."""

    metadata: OwnerMeta

    def is_here(self, uid: str) -> bool:
        """The one of this uid, and it is not about to go."""
        return self.metadata.uid == uid and self.metadata.deletion_timestamp is None


OWNERS: Final = NODES.decoded_as(Owner)


def renewal(version: str, moment: str) -> bytes:
    """The patch of the steady state; neither text can hold a character that JSON would escape."""
    return f'{{"metadata":{{"resourceVersion":"{version}"}},"spec":{{"renewTime":"{moment}"}}}}'.encode()


def mending(found: ReadLease, node: str, uid: str, moment: str) -> Object:
    """The patch that renews a lease and puts right whatever else of it is wrong."""
    metadata: Object = {"resourceVersion": found.metadata.resource_version}
    owners = list(found.metadata.owner_references or ())
    wanted = _owners(owners, node, uid)
    if wanted != owners:
        # An atomic list: the version above keeps what others add meanwhile.
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
    """The node as it is now, and whoever else owns the lease; a node of an earlier life would have it collected."""
    kept = [each for each in owners if each.get("kind") != "Node" or each.get("uid") == uid]
    if not uid or any(each.get("kind") == "Node" for each in kept):
        return kept
    return [*kept, {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}]
