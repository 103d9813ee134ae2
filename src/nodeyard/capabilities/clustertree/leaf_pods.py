"""A leaf's pods as they are cached: identity, node and requests.

A leaf has thousands of pods. For most of them the status only repeats the resources of the spec. Such repetition is
dropped at decoding, and so are conditions that do not affect requests.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import force_setattr

from nodeyard.capabilities.clustertree import names
from nodeyard.kube.objects import NullableStruct, PlainStruct, StringMap
from nodeyard.kube.pod_requests import RESIZE_PENDING, GivenStatus, RequestingSpec, telling

RUNNING: Final = "Running"
_FINISHED: Final = frozenset(("Succeeded", "Failed"))


class LeafPodMeta(NullableStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: StringMap = {}


class LeafPodSpec(RequestingSpec, frozen=True):
    node_name: str = ""


class LeafPodStatus(GivenStatus, frozen=True):
    phase: str = ""


class LeafPod(PlainStruct, frozen=True):
    metadata: LeafPodMeta = LeafPodMeta()
    spec: LeafPodSpec = LeafPodSpec()
    status: LeafPodStatus = LeafPodStatus()

    def __post_init__(self) -> None:
        spec, status = self.spec, self.status
        if status.container_statuses:
            force_setattr(status, "container_statuses", telling(spec.containers, status.container_statuses))
        if status.init_container_statuses:
            force_setattr(
                status, "init_container_statuses", telling(spec.init_containers, status.init_container_statuses)
            )
        if status.conditions:
            force_setattr(
                status, "conditions", tuple(each for each in status.conditions if each.type == RESIZE_PENDING)
            )

    @property
    def is_running(self) -> bool:
        return self.status.phase == RUNNING

    @property
    def is_finished(self) -> bool:
        return self.status.phase in _FINISHED

    @property
    def is_from_root(self) -> bool:
        """The pod was created from the root, whose scheduler counts it on the mirrored node."""
        return self.metadata.labels.get(names.ROOT_POD) == names.TRUE

    @property
    def full_name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"
