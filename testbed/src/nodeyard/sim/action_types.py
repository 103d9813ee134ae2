"""What a stage can do, each as a value: compiled from a stage file, carried out by the `Actor`."""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.client.api import DeleteOptions, PatchForm
from nodeyard.sim.conditions import Condition, Operand, compile_conditions, compile_operand
from nodeyard.sim.stage_format import VERBS, ActionSpec, ScaleSpec
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
    """An Event about the object."""

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
class Call:
    procedure: str


@dataclass(frozen=True, slots=True)
class Mark:
    name: str
    is_on: bool


Verb = Patch | Create | Delete | Evict | Record | Scale | Call | Mark


@dataclass(frozen=True, slots=True)
class Action:
    """A verb, and on what: the stage's object, `each` that points to it, or the one it points to (`at`)."""

    verb: Verb
    each: str | None
    at: str | None
    where: Condition | None

    @property
    def relations(self) -> set[str]:
        """Those that must be in the book."""
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
        return _scale(spec.scale)
    if spec.call is not None:
        return Call(spec.call)
    return Mark(spec.mark or spec.unmark or "", spec.mark is not None)


def _scale(spec: ScaleSpec) -> Scale:
    first = compile_conditions(spec.first) if spec.first else None
    return Scale(spec.relation, compile_operand(spec.to), compile_template(spec.object), spec.leaving, first)
