"""Built-in kinds with only the fields that the operator uses, decoded directly from bytes.

A Node on the wire has eleven kilobytes, most of it images, addresses and managed fields; the struct has less than one.
Structs are never sent back: writes are patches.

    obj.metadata.labels     always a dict, also if the server sent null or nothing
    node.spec.taints        always a tuple
    metadata.deletion_timestamp   a datetime or None

Go writes the zero value of a time, and of a slice or map that is not `omitempty`, as null; `StringMap` and `Slice` turn
it into an empty value. Types of other kinds use them on `NullableStruct` in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import force_setattr

T = TypeVar("T")

if TYPE_CHECKING:
    StringMap: TypeAlias = dict[str, str]
    Slice: TypeAlias = tuple[T, ...]
else:
    # The type that the decoder accepts; NullableStruct turns null into an empty value.
    StringMap = dict[str, str] | None
    Slice = tuple[T, ...] | None


class PlainStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A part of an object without maps or lists."""


class NullableStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An object, or a part of one, that has maps or lists: null becomes an empty one."""

    def __post_init__(self) -> None:
        kind = type(self)
        empties = _empties.get(kind)
        for field, make_empty in _find_empties(kind) if empties is None else empties:
            if getattr(self, field) is None:
                force_setattr(self, field, make_empty())


_Empties: TypeAlias = tuple[tuple[str, Callable[[], Any]], ...]
_empties: dict[type, _Empties] = {}


def _find_empties(kind: type[msgspec.Struct]) -> _Empties:
    """Return the fields whose default is an empty map or list, with their factories; computed once per type."""
    found: list[tuple[str, Callable[[], Any]]] = []
    for field in msgspec.structs.fields(kind):
        if field.default_factory is not msgspec.NODEFAULT:
            found.append((field.name, field.default_factory))
        elif field.default == ():
            found.append((field.name, tuple))
    return _empties.setdefault(kind, tuple(found))


class OwnerReference(PlainStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(NullableStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: StringMap = {}
    annotations: StringMap = {}
    owner_references: Slice[OwnerReference] = ()
    finalizers: Slice[str] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """Return the controller owner reference."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    def is_alike(self, other: ObjectMeta) -> bool:
        """Return True if both describe the same object and are equal except for resourceVersion."""
        return (
            self.uid == other.uid
            and self.labels == other.labels
            and self.annotations == other.annotations
            and self.finalizers == other.finalizers
            and self.owner_references == other.owner_references
            and self.deletion_timestamp == other.deletion_timestamp
        )


_NO_META = ObjectMeta()


class PartialObject(PlainStruct, frozen=True):
    """Any object, by its metadata only."""

    metadata: ObjectMeta = _NO_META


class Condition(PlainStruct, frozen=True):
    """A condition of any kind. The heartbeat of a Node's condition is left out: it changes without news."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class Taint(PlainStruct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class Toleration(PlainStruct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSpec(NullableStruct, frozen=True):
    taints: Slice[Taint] = ()
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(NullableStruct, frozen=True):
    conditions: Slice[Condition] = ()
    capacity: StringMap = {}
    allocatable: StringMap = {}


class Node(PlainStruct, frozen=True):
    metadata: ObjectMeta = _NO_META
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Resources(NullableStruct, frozen=True):
    requests: StringMap = {}
    limits: StringMap = {}


class Container(PlainStruct, frozen=True):
    """Container resources, from which the pod's requests are summed."""

    name: str = ""
    resources: Resources = Resources()
    restart_policy: str = ""
    """`Always` on an init container makes it a sidecar, which counts for the whole life of the pod."""


class PodSpec(NullableStruct, frozen=True):
    node_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    scheduler_name: str = ""
    termination_grace_period_seconds: int | None = None
    node_selector: StringMap = {}
    overhead: StringMap = {}
    tolerations: Slice[Toleration] = ()
    containers: Slice[Container] = ()
    init_containers: Slice[Container] = ()


class PodStatus(NullableStruct, frozen=True):
    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    conditions: Slice[Condition] = ()


class Pod(PlainStruct, frozen=True):
    metadata: ObjectMeta = _NO_META
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Secret(NullableStruct, frozen=True):
    """A Secret; its contents are never shown."""

    metadata: ObjectMeta = _NO_META
    data: StringMap = {}

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name})"


class LeaseSpec(PlainStruct, frozen=True):
    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(PlainStruct, frozen=True):
    metadata: ObjectMeta = _NO_META
    spec: LeaseSpec = LeaseSpec()


class NamespaceStatus(NullableStruct, frozen=True):
    phase: str = ""
    conditions: Slice[Condition] = ()


class Namespace(PlainStruct, frozen=True):
    metadata: ObjectMeta = _NO_META
    status: NamespaceStatus = NamespaceStatus()
