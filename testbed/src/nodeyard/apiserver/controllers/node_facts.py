"""The fields of a node that the node controllers need, decoded without the rest."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.kube.names import REGION, ZONE

_OLD_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_RECONCILED: Final = (("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch"))


class Taint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct):
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None


class _Status(msgspec.Struct):
    conditions: tuple[Condition, ...] | None = None


class NodeFacts(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.spec.taints or ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.status.conditions or ()

    @property
    def ready(self) -> Condition | None:
        return next((condition for condition in self.conditions if condition.type == "Ready"), None)

    @property
    def zone(self) -> str:
        """The region and zone as one string; empty if the node has neither."""
        labels = self.metadata.labels or {}
        region = labels.get(REGION) or labels.get(_OLD_REGION, "")
        zone = labels.get(ZONE) or labels.get(_OLD_ZONE, "")
        return f"{region}:{zone}" if region or zone else ""

    @property
    def is_excluded_from_disruption(self) -> bool:
        return _EXCLUDED in (self.metadata.labels or {})

    def outdated_labels(self) -> dict[str, str]:
        """The deprecated labels that differ from the current ones."""
        labels = self.metadata.labels or {}
        return {old: labels[new] for new, old in _RECONCILED if new in labels and labels.get(old) != labels[new]}


decode_node = msgspec.json.Decoder(NodeFacts).decode
