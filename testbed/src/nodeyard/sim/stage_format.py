"""The format of stage files. An unknown key is an error. docs/sim.md describes each key."""

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
    """A reference from objects of one kind to objects of another, such as from pods to their node."""

    of: KindSpec
    to: KindSpec
    key: str = "owner"
    """Path in `of` of the field that names the target; `owner` is the uid in its controller reference."""
    id: str = "metadata.name"
    """Path in `to` of the field that is named; with `owner` always metadata.uid."""
    within: Literal["", "namespace"] = ""
    """`namespace`: the target is in the same namespace."""


class CountSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of objects that refer to an object by a relation and meet conditions."""

    relation: str
    where: list[Object] = []


class DelaySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A delay that is read from a field of the object, in seconds or as a duration."""

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
    """Create or delete referring objects until there are `to` of them; `object` is the template of a new one."""

    relation: str
    to: Json
    object: Object
    leaving: bool = False
    """Count objects with a deletionTimestamp until they are gone."""
    first: list[Object] = []
    """Delete objects that meet these conditions first, then the newest."""


class ActionSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One verb. `each` applies it to every object that refers to the stage's object, `at` to the one it refers to."""

    patch: PatchSpec | None = None
    create: Object | None = None
    delete: DeleteSpec | None = None
    evict: DeleteSpec | None = None
    event: EventSpec | None = None
    scale: ScaleSpec | None = None
    mark: str | None = None
    unmark: str | None = None
    each: str | None = None
    at: str | None = None
    where: list[Object] = []


VERBS = ("patch", "create", "delete", "evict", "event", "scale", "mark", "unmark")


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
    """Act again after each change of the object, and of objects related to it by these relations."""


class StageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stages: list[StageSpec] = []
    relations: dict[str, RelationSpec] = {}
    counts: dict[str, CountSpec] = {}


def seconds(value: Any) -> float:
    """Parse a duration: `250ms`, `10s`, `5m`, `1h`, or a number of seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(str(value))
    if match is None:
        raise ValueError(f'"{value}" is not a duration; write 250ms, 10s, 5m or 1h')
    return float(match[1]) * _UNITS[match[2]]
