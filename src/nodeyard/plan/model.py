"""The plan: actions to run now, blocked objects, and the reason of each. Public, versioned data.

`plan(snapshot, now) -> Plan` makes all decisions. The applier runs the plan, `nodeyard plan` prints it, `nodeyard why`
renders its decisions. The wire form (`nodeyard.dev/v1alpha1` Plan) is these structs in camelCase. `Write` is for the
applier only and not part of the wire form.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

from nodeyard.kube.json import Json
from nodeyard.plan.message import Message

API_VERSION = "nodeyard.dev/v1alpha1"


class Verb(Enum):
    CREATE = "Create"
    APPLY = "Apply"
    PATCH = "Patch"
    DELETE = "Delete"
    EVICT = "Evict"


class Disruption(Enum):
    """The effect of an action on running workloads; any value but `none` counts towards the brake."""

    NONE = "none"
    EVICTS = "evicts"
    REPLACES = "replaces"
    RELEASES = "releases"
    DELETES = "deletes"


class _Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the wire types: camelCase names, default values omitted."""


class ObjectRef(_Struct, frozen=True):
    """Reference to an object. The uid of an existing object is a precondition of the write."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    cluster: str = ""
    """The remote cluster of the object, by the capability's name for it; empty for the operator's own cluster."""

    def __str__(self) -> str:
        place = f"{self.cluster}:" if self.cluster else ""
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{where}{self.name}"


class FieldChange(_Struct, frozen=True):
    """One line of a diff. `from` is None for an added field, `to` for a removed one."""

    path: str
    from_: Json = msgspec.field(name="from", default=None)
    to: Json = None


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """The request that the applier sends; not part of the wire form. Only here are secret contents in clear text."""

    body: Json = None
    """The object to create or apply, the merge patch, or the Eviction's deleteOptions."""
    resource_version: str = ""
    """Optimistic locking: the server answers 409 if the object has changed. Set wherever a race matters."""
    subresource: str = ""
    field_manager: str = ""
    """The field manager; empty for the capability's default, `nodeyard-<capability>`."""
    force: bool = True
    """For an apply: take over fields from other managers. Set for objects that Nodeyard alone owns."""
    is_first: bool = False
    """For an apply: the object must not exist, unless Nodeyard has applied it before. An object of that name that the
    planner did not see belongs to somebody else: only objects with our label are watched, or the watch is late."""
    json_patch: bool = False
    """The body is a list of RFC 6902 operations instead of a merge patch."""
    propagation: str = ""


class Action(_Struct, frozen=True):
    """One write. `id` is unique within the plan; the action runs after all actions in `after` have succeeded."""

    id: str
    verb: Verb
    object: ObjectRef
    reason: str
    facts: Message
    diff: tuple[FieldChange, ...] = ()
    disruption: Disruption = Disruption.NONE
    disrupts: tuple[str, ...] = ()
    """The disrupted nodes, if the object is not itself the node; the brake counts nodes. A node of another cluster
    than the object's carries the cluster's name: `leaf-1:worker-3`."""
    approval_group: str = ""
    """The unique name of a change made in several actions. One approval is for all its actions, including those of
    later plans and objects not known yet. The name contains the uid and generation of the object that causes the
    change, so an approval is for one generation."""
    group_nodes: int = 0
    """Number of nodes that the approval group disrupts in the plans of all keys. The brake uses it; each plan shows
    only its own nodes."""
    group_managed: int = 0
    """The number of managed nodes that `group_nodes` is a share of; 0 for the managed nodes of the plan."""
    group_root: ObjectRef | None = None
    """The object whose edit causes a change over several keys; the approval is recorded on it. None for the first root
    that the capability names."""
    already_approved: bool = False
    """True if an earlier action of the group has passed the brake, as a mark on the object shows; it is not counted
    again."""
    always_asks: bool = False
    """True if the action needs an approval however few nodes it disrupts: only a person can decide whether it is
    right."""
    after: tuple[str, ...] = ()


class Blocked(_Struct, frozen=True):
    """An object that cannot be changed as desired, and why."""

    object: ObjectRef
    reason: str
    facts: Message
    is_waiting: bool = False
    """True if the object only waits and proceeds without intervention."""


class Candidate(_Struct, frozen=True):
    """An object that was considered for a decision."""

    name: str
    is_taken: bool
    reason: str
    facts: Message

    @classmethod
    def of(cls, name: str, message: Message, *, is_taken: bool = False) -> Candidate:
        return cls(name=name, is_taken=is_taken, reason=message.reason, facts=message)


class Decision(_Struct, frozen=True):
    """Explanation of one object's state, also if nothing is to be done."""

    object: ObjectRef
    rule: str
    """The reason that applied, from the capability's enum."""
    facts: Message
    candidates: tuple[Candidate, ...] = ()
    would_change: tuple[Message, ...] = ()

    @classmethod
    def of(
        cls,
        ref: ObjectRef,
        message: Message,
        candidates: Iterable[Candidate] = (),
        would_change: Iterable[Message] = (),
    ) -> Decision:
        return cls(
            object=ref,
            rule=message.reason,
            facts=message,
            candidates=tuple(candidates),
            would_change=tuple(would_change),
        )


class Plan(_Struct, frozen=True):
    capability: str
    key: str
    id: str = ""
    """A hash of what the plan does; equal plans have equal ids (`plan.identity`)."""
    actions: tuple[Action, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    decisions: tuple[Decision, ...] = ()
    wake_at: datetime | None = None
    """The earliest time at which the plan could differ without an event."""


EVERY_GROUP: Final = "*"
"""Stands for all approval groups (`Planned.open_groups`)."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a planner: the public plan, and the write of each action by action id."""

    plan: Plan
    writes: dict[str, Write] = {}
    is_final: bool = False
    """True if the next plan is empty, and blocks nothing else, once every action has succeeded. Watch events caused by
    these writes then need no reconcile."""
    reserves: dict[str, str] = {}
    """Budgets shared with other keys that this plan takes from, until the server has answered its writes. Each has a
    token, by which the planner recognises the write in the cache. If another key took or released a part of one of them
    since the snapshot, the key is planned again."""
    waits_for: tuple[str, ...] = ()
    """Shared budgets that are spent: the key is requeued when another key releases a part that it did not use."""
    open_groups: tuple[str, ...] = ()
    """Approval groups whose next actions are not due yet, or are in the plans of other keys: their approvals stay,
    although the plan has none of their actions. `EVERY_GROUP`: which ones is unknown, so all approvals stay."""

    def write(self, action: Action) -> Write:
        return self.writes[action.id]


def to_wire(plan: Plan) -> Any:
    """Return the wire form as plain values. Each reason comes with its facts and its sentence."""
    wire = {"apiVersion": API_VERSION, "kind": "Plan", **msgspec.to_builtins(plan)}
    _add_messages(wire.get("actions", ()), plan.actions)
    _add_messages(wire.get("blocked", ()), plan.blocked)
    _add_messages(wire.get("decisions", ()), plan.decisions)
    for each, decision in zip(wire.get("decisions", ()), plan.decisions, strict=True):
        _add_messages(each.get("candidates", ()), decision.candidates)
        if decision.would_change:
            each["wouldChange"] = [{"reason": it.reason, "message": it.text()} for it in decision.would_change]
    return wire


def _add_messages(wires: Iterable[Any], stated: Iterable[Action | Blocked | Candidate | Decision]) -> None:
    for wire, each in zip(wires, stated, strict=True):
        wire["message"] = each.facts.text()
