"""What stands in a stage file, as types; a key that is not here is an error. docs/sim.md explains each."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import msgspec

from nodeyard.kube.json import Json, Object

Duration = float | str
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Kind(NamedTuple):
    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.api_version})"


class KindSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str

    @property
    def key(self) -> Kind:
        return Kind(self.api_version, self.kind)


class RelationSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Objects of one kind point to objects of another: pods to their node, machines to their owner."""

    of: KindSpec
    to: KindSpec
    key: str = "owner"
    """The path in `of` that names the other; `owner` is the uid of its controller."""
    id: str = "metadata.name"
    """The path in `to` that is named; with `owner` always metadata.uid."""
    within: Literal["", "namespace"] = ""
    """With `namespace` only an object of the same namespace is meant."""


class CountSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many objects point here by a relation and fulfil conditions."""

    relation: str
    where: list[Object] = []


class DelaySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From a field of the object, in seconds, where it is there."""

    path: str
    default: Duration = 0.0
    at_most: Duration | None = None


class PatchSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    body: Json
    form: Literal["merge", "strategic", "json"] = "merge"
    part: str = ""
    """The subresource, such as status."""


class DeleteSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    grace: int | None = None
    propagation: str = ""


class EventSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"
    action: str = "Simulate"


class ScaleSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Make as many objects that point here as `to` says; `object` is the template of a new one."""

    relation: str
    to: Json
    object: Object
    leaving: bool = False
    """Whether those that are being deleted count until they are gone."""
    first: list[Object] = []
    """Of too many, those that fulfil these conditions go first; then the newest."""


class ActionSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exactly one verb; `each` makes it act on every object that points here, `at` on the one this points to."""

    patch: PatchSpec | None = None
    create: Object | None = None
    delete: DeleteSpec | None = None
    evict: DeleteSpec | None = None
    event: EventSpec | None = None
    scale: ScaleSpec | None = None
    call: str | None = None
    mark: str | None = None
    unmark: str | None = None
    each: str | None = None
    at: str | None = None
    where: list[Object] = []


VERBS = ("patch", "create", "delete", "evict", "event", "scale", "call", "mark", "unmark")


class StageSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"kind": "for"}):
    name: str
    kind: KindSpec
    do: list[ActionSpec]
    labels: str = ""
    where: list[Object] = []
    delay: Duration | list[Duration] | DelaySpec = 0.0
    repeat: bool = False
    chance: float = 1.0
    next: str | None = None
    follows: list[str] | None = None
    """Act again after each change of the object, and of those that these relations lead to or come from."""


class BookSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stages: list[StageSpec]
    relations: dict[str, RelationSpec] = {}
    counts: dict[str, CountSpec] = {}


def seconds(value: Any) -> float:
    """`250ms`, `10s`, `5m`, `1h`, or a number of seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(str(value))
    if match is None:
        raise ValueError(f'"{value}" is no duration; write 250ms, 10s, 5m or 1h')
    return float(match[1]) * _UNITS[match[2]]
