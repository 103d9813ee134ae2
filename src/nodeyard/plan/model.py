"""A plan: what would be done now, what is refused, and why. Data, public and versioned.

`plan(snapshot, now) -> Plan` is all that decides; the applier runs it, `nodeyard plan` prints it, `nodeyard why`
renders its decisions. The wire form (`nodeyard.dev/v1alpha1` Plan) is these structs in camelCase; what only the applier
needs (`Write`) is not part of it.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from nodeyard.kube.json import Json, Object

API_VERSION = "nodeyard.dev/v1alpha1"


class Verb(Enum):
    CREATE = "Create"
    APPLY = "Apply"
    PATCH = "Patch"
    DELETE = "Delete"
    EVICT = "Evict"


class Disruption(Enum):
    """What an action does to running things; anything but none counts towards the brake."""

    NONE = "none"
    EVICTS = "evicts"
    REPLACES = "replaces"
    RELEASES = "releases"
    DELETES = "deletes"


class _Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Public parts: camelCase on the wire, empty ones left out."""


class ObjectRef(_Struct, frozen=True):
    """Which object. The uid is there where the object exists already, and is a precondition then."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    cluster: str = ""
    """The further cluster it is in, by the name the capability gave it; empty: our own."""

    def __str__(self) -> str:
        place = f"{self.cluster}:" if self.cluster else ""
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{where}{self.name}"


class FieldChange(_Struct, frozen=True):
    """One line of a diff. `from` is None where there was nothing, `to` where nothing is left."""

    path: str
    from_: Json = msgspec.field(name="from", default=None)
    to: Json = None


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """What the applier sends: not part of the public form. Secrets' contents stand here and nowhere else."""

    body: Json = None
    """The object to create or apply, the merge patch, or the Eviction's deleteOptions."""
    resource_version: str = ""
    """A precondition: the write is refused with 409 when the object has moved on. Set wherever a race matters."""
    subresource: str = ""
    field_manager: str = ""
    """Empty: the capability's own, `nodeyard-<capability>`."""
    force: bool = True
    """Of an apply: take over fields from others. Objects that are ours alone are forced."""
    is_first: bool = False
    """Of an apply: there is to be no such object yet, save one that we have applied before. What else there is by that
    name is somebody else's, and not seen: only those with our label are watched, or the watch is a moment late."""
    json_patch: bool = False
    """The body is a list of RFC 6902 operations instead of a merge patch."""
    propagation: str = ""


class Action(_Struct, frozen=True):
    """One write. `id` is unique within the plan; the action runs when all in `after` have succeeded."""

    id: str
    verb: Verb
    object: ObjectRef
    reason: str
    facts: Object = {}
    diff: tuple[FieldChange, ...] = ()
    disruption: Disruption = Disruption.NONE
    disrupts: tuple[str, ...] = ()
    """The nodes that are disturbed, where that is not the object itself: the brake counts nodes. A node of another
    cluster than the object's is named with it: `leaf-1:worker-3`."""
    part_of: str = ""
    """The undertaking that it is a step of, named so that no other is called the same: one approval is for all of its
    steps, also for those that are left when some are done, and whichever objects they turn out to concern."""
    shared_by: int = 0
    """How many nodes its undertaking disturbs in all, where plans of several keys have a part in it: the brake counts
    those, though each plan shows its own."""
    is_granted: bool = False
    """Its disruption was counted, and let pass, with an earlier step of the same undertaking, as that step's trace on
    the object shows: the brake does not ask again."""
    after: tuple[str, ...] = ()


class Blocked(_Struct, frozen=True):
    """What is wanted and not done."""

    object: ObjectRef
    reason: str
    facts: Object = {}


class Candidate(_Struct, frozen=True):
    """One that was looked at for a decision."""

    name: str
    is_taken: bool
    reason: str
    facts: Object = {}


class Decision(_Struct, frozen=True):
    """Why one object is as it is, also where nothing is to be done."""

    object: ObjectRef
    rule: str
    """The reason that applied, of the capability's enum."""
    facts: Object = {}
    candidates: tuple[Candidate, ...] = ()
    would_change: tuple[str, ...] = ()
    """What would make it otherwise: reasons too, rendered with the same facts."""


class Plan(_Struct, frozen=True):
    capability: str
    key: str
    id: str = ""
    """A hash of what the plan does; the same plan has the same id (`plan.identity`)."""
    actions: tuple[Action, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    decisions: tuple[Decision, ...] = ()
    wake_at: datetime | None = None
    """The earliest moment at which the plan could differ without an event."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What a planner returns: the public plan, and the writes of its actions by action id."""

    plan: Plan
    writes: dict[str, Write] = {}
    is_final: bool = False
    """Whether nothing would be left to do, or be refused otherwise, once every action has succeeded: then what we write
    ourselves is no reason to plan again."""

    def write(self, action: Action) -> Write:
        return self.writes[action.id]


def to_wire(plan: Plan) -> Any:
    """The public form as plain values."""
    return {"apiVersion": API_VERSION, "kind": "Plan", **msgspec.to_builtins(plan)}
