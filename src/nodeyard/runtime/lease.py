"""The leader's Lease as a value: who holds it, until when, and what it looks like after each step. Pure.

Whether it has expired is never read from the times written in it, since clocks of two machines differ: a candidate
watches it stand still for its whole duration, by its own clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from nodeyard.kube.json import Object
from nodeyard.process.clock import rfc3339_micro


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


def acquired(lease: Lease | None, identity: str, seconds: int, now: datetime) -> LeaseSpec:
    """After we have taken it, from nobody or from another."""
    transitions = 0 if lease is None else (lease.spec.lease_transitions or 0) + (lease.holder != identity)
    moment = rfc3339_micro(now)
    return LeaseSpec(identity, seconds, moment, moment, transitions)


def renewed(lease: Lease, now: datetime) -> LeaseSpec:
    return msgspec.structs.replace(lease.spec, renew_time=rfc3339_micro(now))


def released(lease: Lease, now: datetime) -> LeaseSpec:
    """Free at once: no holder, and a duration that is over before anyone asks."""
    return msgspec.structs.replace(
        lease.spec, holder_identity="", lease_duration_seconds=1, renew_time=rfc3339_micro(now)
    )


@dataclass(frozen=True)
class Marks:
    """What else a Lease carries: by what it is found, and what it is for."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def manifest(
    name: str,
    namespace: str,
    spec: LeaseSpec,
    version: str = "",
    marks: Marks = Marks(),  # noqa: B008 - frozen
) -> Object:
    metadata: Object = {"name": name, "namespace": namespace}
    if version:
        metadata["resourceVersion"] = version
    if marks.labels:
        metadata["labels"] = dict(marks.labels)
    if marks.annotations:
        metadata["annotations"] = dict(marks.annotations)
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": msgspec.to_builtins(spec),
    }
