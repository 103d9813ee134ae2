"""The leader Lease as a value: its holder, and its spec after each step. Pure.

Expiry is never read from the times in the Lease, since clocks of two machines differ. A candidate observes the Lease
unchanged for its whole duration by its own clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339_micro


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaseMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class Lease(msgspec.Struct, frozen=True):
    metadata: LeaseMeta
    spec: LeaseSpec = LeaseSpec()

    @property
    def holder(self) -> str:
        return self.spec.holder_identity or ""


def acquire(lease: Lease | None, identity: str, seconds: int, now: datetime) -> LeaseSpec:
    """Return the spec after an acquisition, of a free Lease or from another holder."""
    transitions = 0 if lease is None else (lease.spec.lease_transitions or 0) + (lease.holder != identity)
    moment = format_rfc3339_micro(now)
    return LeaseSpec(identity, seconds, moment, moment, transitions)


def renew(lease: Lease, now: datetime) -> LeaseSpec:
    return msgspec.structs.replace(lease.spec, renew_time=format_rfc3339_micro(now))


def release(lease: Lease, now: datetime) -> LeaseSpec:
    """Return the spec of a Lease that is free at once: no holder and the shortest duration."""
    return msgspec.structs.replace(
        lease.spec, holder_identity="", lease_duration_seconds=1, renew_time=format_rfc3339_micro(now)
    )


@dataclass(frozen=True)
class LeaseMetadata:
    """Labels and annotations of a Lease."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def manifest(
    name: str,
    namespace: str,
    spec: LeaseSpec,
    version: str = "",
    extra: LeaseMetadata = LeaseMetadata(),  # noqa: B008 - frozen
) -> Object:
    metadata: Object = {"name": name, "namespace": namespace}
    if version:
        metadata["resourceVersion"] = version
    if extra.labels:
        metadata["labels"] = dict(extra.labels)
    if extra.annotations:
        metadata["annotations"] = dict(extra.annotations)
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": msgspec.to_builtins(spec),
    }
