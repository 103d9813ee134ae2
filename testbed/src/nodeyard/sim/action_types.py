"""Actions of a stage, compiled from a stage file and carried out by the `Executor`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from nodeyard.client.api import DeleteOptions, PatchForm
from nodeyard.sim.conditions import Condition, Operand, compile_conditions, compile_operand
from nodeyard.sim.stage_format import VERBS, ActionSpec
from nodeyard.sim.templates import Template, compile_template


@dataclass(frozen=True, slots=True)
class Patch:
    body: Template
    form: PatchForm
    part: str


@dataclass(frozen=True, slots=True)
class Create:
    object: Template


@dataclass(frozen=True, slots=True)
class Delete:
    options: DeleteOptions


@dataclass(frozen=True, slots=True)
class Evict:
    grace: int | None


@dataclass(frozen=True, slots=True)
class Record:
    """Record an Event about the object."""

    reason: str
    note: Template
    type: str
    action: str


@dataclass(frozen=True, slots=True)
class Scale:
    relation: str
    to: Operand
    object: Template
    leaving: bool
    first: Condition | None


@dataclass(frozen=True, slots=True)
class Mark:
    name: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Call a reconciler, which is written in Python."""

    reconcile: Callable[[Any], Awaitable[None]]


Verb = Patch | Create | Delete | Evict | Record | Scale | Mark | Reconcile


@dataclass(frozen=True, slots=True)
class Action:
    """A verb and its targets: the stage's object, each object that refers to it, or the object it refers to (`at`)."""

    verb: Verb
    each: str | None = None
    at: str | None = None
    where: Condition | None = None

    @property
    def relations(self) -> set[str]:
        """Return the names of the relations that must be defined."""
        named = {self.each, self.at}
        if isinstance(self.verb, Scale):
            named.add(self.verb.relation)
        return {name for name in named if name}


_FORMS = {"merge": PatchForm.MERGE, "strategic": PatchForm.STRATEGIC, "json": PatchForm.JSON}


def compile_action(spec: ActionSpec) -> Action:
    given = [name for name in VERBS if getattr(spec, name) is not None]
    if len(given) != 1:
        raise ValueError(f"an action has one of {', '.join(VERBS)}; this has {', '.join(given) or 'none'}")
    if spec.each and spec.at:
        raise ValueError("an action has each or at, not both")
    return Action(_verb(spec), spec.each, spec.at, compile_conditions(spec.where) if spec.where else None)


def _verb(spec: ActionSpec) -> Verb:
    if spec.patch is not None:
        return Patch(compile_template(spec.patch.body), _FORMS[spec.patch.form], spec.patch.part)
    if spec.create is not None:
        return Create(compile_template(spec.create))
    if spec.delete is not None:
        return Delete(DeleteOptions(grace_seconds=spec.delete.grace, propagation=spec.delete.propagation))
    if spec.evict is not None:
        return Evict(spec.evict.grace)
    if spec.event is not None:
        event = spec.event
        return Record(event.reason, compile_template(event.note), event.type, event.action)
    if spec.scale is not None:
        scale = spec.scale
        first = compile_conditions(scale.first) if scale.first else None
        return Scale(scale.relation, compile_operand(scale.to), compile_template(scale.object), scale.leaving, first)
    return Mark(spec.mark or spec.unmark or "", spec.mark is not None)
