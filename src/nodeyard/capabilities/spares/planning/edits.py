"""One node, one patch: the changes that a step wants are gathered in an `Edit` and leave as a single merge patch.

`spec.taints` is one value to the API server, so a patch that has it replaces the whole list. It, and every patch that
gives a node another owner or cordons it, carries the resourceVersion of what was looked at: a taint that somebody adds
meanwhile makes the write fail and the plan be made again, and is never lost; nor is a cordon taken for ours that
somebody else has set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.taints import Taints, identity, title, to_wire
from nodeyard.kube.json import Json, Object
from nodeyard.kube.objects import Node
from nodeyard.kube.taints import evicts
from nodeyard.plan.model import FieldChange, ObjectRef


class Change(NamedTuple):
    """A patch, as it is sent and as it is shown. It may be shared by nodes that look alike."""

    body: Object
    diff: tuple[FieldChange, ...]
    is_guarded: bool
    """Whether it may only meet the node as it was seen."""
    evicts: bool = False
    """Whether pods may have to leave the node for it."""


class Edit:
    """Changes to one node. A label or annotation set to None goes away."""

    __slots__ = ("annotations", "labels", "node", "taints", "unschedulable")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.labels: dict[str, str | None] = {}
        self.annotations: dict[str, str | None] = {}
        self.taints: Taints = node.spec.taints
        self.unschedulable = node.spec.unschedulable

    def drop_label(self, key: str) -> None:
        if key in self.node.metadata.labels:
            self.labels[key] = None

    def drop_annotation(self, key: str) -> None:
        if key in self.node.metadata.annotations:
            self.annotations[key] = None
        else:
            self.annotations.pop(key, None)

    @property
    def moves_taints(self) -> bool:
        return self.taints is not self.node.spec.taints and self.taints != self.node.spec.taints

    @property
    def is_empty(self) -> bool:
        moved = self.unschedulable != self.node.spec.unschedulable
        return not (self.labels or self.annotations or moved or self.moves_taints)

    @property
    def evicts(self) -> bool:
        return self.moves_taints and evicts(self.node.spec.taints, self.taints)

    def change(self) -> Change:
        """The patch that makes these changes."""
        metadata: Object = {}
        if self.labels:
            metadata["labels"] = self.labels
        if self.annotations:
            metadata["annotations"] = self.annotations
        spec: Object = {}
        if self.moves_taints:
            spec["taints"] = [to_wire(taint) for taint in self.taints]
        if self.unschedulable != self.node.spec.unschedulable:
            spec["unschedulable"] = self.unschedulable or None
        body: Object = {"metadata": metadata} if metadata else {}
        if spec:
            body["spec"] = spec
        return Change(body, self._diff(), names.TEMPLATE_LABEL in self.labels or bool(spec), self.evicts)

    def _diff(self) -> tuple[FieldChange, ...]:
        metadata = self.node.metadata
        changes = [*_map_diff("metadata.labels", metadata.labels, self.labels)]
        if self.annotations:
            changes += _map_diff("metadata.annotations", metadata.annotations, self.annotations)
        if self.moves_taints:
            changes += _taint_diff(self.node.spec.taints, self.taints)
        if self.unschedulable != self.node.spec.unschedulable:
            before: Json = self.node.spec.unschedulable or None
            changes.append(FieldChange(path="spec.unschedulable", from_=before, to=self.unschedulable or None))
        return tuple(changes)


def _map_diff(path: str, before: Mapping[str, str], changes: Mapping[str, str | None]) -> Iterator[FieldChange]:
    for key, value in changes.items():
        yield FieldChange(path=f"{path}[{key}]", from_=before.get(key), to=value)


def _taint_diff(before: Taints, after: Taints) -> Iterator[FieldChange]:
    old, new = {identity(taint): taint for taint in before}, {identity(taint): taint for taint in after}
    for each, taint in old.items():
        left = new.get(each)
        if left is None or left.value != taint.value:
            yield FieldChange(
                path=f"spec.taints[{title(taint)}]", from_=taint.value, to=None if left is None else left.value
            )
    for each, taint in new.items():
        if each not in old:
            yield FieldChange(path=f"spec.taints[{title(taint)}]", to=taint.value)


def node_ref(node: Node) -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)
