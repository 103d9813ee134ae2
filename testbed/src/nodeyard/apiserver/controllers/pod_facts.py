"""The fields of a pod that controllers need, decoded without the rest, and the pods of each node."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nodeyard.apiserver.controllers.metadata import OwnerReference
from nodeyard.apiserver.store import Event, Key
from nodeyard.kube.timestamps import parse_rfc3339

DISRUPTION_TARGET = "DisruptionTarget"
TERMINATED_BY_KUBELET = "TerminationByKubelet"
FINISHED = ("Succeeded", "Failed")


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class PodFacts(msgspec.Struct, frozen=True):
    """The facts that disruption budgets count by."""

    labels: dict[str, str]
    is_ready: bool
    is_deleting: bool
    controller: OwnerReference | None


_decode = msgspec.json.Decoder(_Pod).decode


def facts_of(raw: bytes) -> PodFacts:
    pod = _decode(raw)
    conditions = pod.status.conditions or ()
    return PodFacts(
        labels=pod.metadata.labels or {},
        is_ready=any(condition.type == "Ready" and condition.status == "True" for condition in conditions),
        is_deleting=pod.metadata.deletion_timestamp is not None,
        controller=next((owner for owner in pod.metadata.owner_references or () if owner.controller), None),
    )


def disruption_announced(raw: bytes) -> float | None:
    """The transition time of DisruptionTarget; None without it or if the pod is being deleted."""
    if DISRUPTION_TARGET.encode() not in raw:
        return None
    pod = _decode(raw)
    if pod.metadata.deletion_timestamp is not None or pod.status.phase in FINISHED:
        return None
    for condition in pod.status.conditions or ():
        if condition.type == DISRUPTION_TARGET and condition.status == "True":
            if condition.reason == TERMINATED_BY_KUBELET or condition.last_transition_time is None:
                return None
            return parse_rfc3339(condition.last_transition_time).timestamp()
    return None


class PodsByNode:
    """An index updated by events; spec.nodeName is a selectable field, so nothing is decoded."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[Key, None]] = {}

    def observe(self, event: Event) -> None:
        key, node = event.stored.key, node_of(event)
        if event.type == "DELETED":
            pods = self._pods.get(node)
            if pods is not None:
                pods.pop(key, None)
                if not pods:
                    del self._pods[node]
        elif node:
            self._pods.setdefault(node, {})[key] = None

    def on(self, node: str) -> Iterable[Key]:
        return tuple(self._pods.get(node, ()))


def node_of(event: Event) -> str:
    return event.stored.fields.get("spec.nodeName", "")
