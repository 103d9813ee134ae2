"""Why a node or a template is as it is: the rule, every candidate with its reason, and what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.fleet import Fleet
from nodeyard.capabilities.spares.planning.refusals import refusal
from nodeyard.capabilities.spares.planning.stock import Spare
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.planning.turns import Turn
from nodeyard.capabilities.spares.snapshot import owner_elsewhere, template_of
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Candidate, Decision, ObjectRef

Turns = Mapping[str, Turn]

_REMEDIES: Mapping[Reason, tuple[Reason, ...]] = {
    Reason.NOT_SPARE: (Reason.ADD_SPARE_TAINT,),
    Reason.WAS_MOVED_OUT: (Reason.ADD_SPARE_TAINT,),
    Reason.CLAIMED: (Reason.CHANGE_SELECTOR, Reason.LOWER_NODES),
    Reason.UPDATED: (Reason.CHANGE_SELECTOR, Reason.LOWER_NODES),
    Reason.HELD: (Reason.ADD_SPARES, Reason.RAISE_PRIORITY),
    Reason.SPARE: (Reason.RAISE_NODES, Reason.CHANGE_SELECTOR),
    Reason.KEPT: (Reason.CHANGE_SELECTOR, Reason.LOWER_NODES),
    Reason.DANGLING: (Reason.CREATE_TEMPLATE,),
    Reason.OWNED_ELSEWHERE: (Reason.LEAVE_ELSEWHERE,),
    Reason.NOT_READY: (Reason.MAKE_READY,),
    Reason.NOT_EMPTY: (Reason.EMPTY_NODE,),
    Reason.WAITING: (Reason.EMPTY_NODE,),
    Reason.SUFFICIENT: (Reason.RAISE_NODES,),
    Reason.NO_SPARE: (Reason.ADD_SPARES, Reason.CHANGE_SELECTOR),
    Reason.HIGH_PRIORITY: (Reason.ADD_SPARES, Reason.RAISE_PRIORITY),
    Reason.DRY_RUN: (Reason.END_DRY_RUN,),
    Reason.PAUSED: (Reason.END_PAUSE,),
    Reason.INVALID: (Reason.MEND_TEMPLATE,),
}


def decide(ref: ObjectRef, fleet: Fleet, turns: Turns, draft: Draft) -> Decision | None:
    """None for what is not there, or is no business of ours."""
    if ref.kind == "Node":
        node = next((node for node in fleet.snapshot.nodes if node.metadata.name == ref.name), None)
        return None if node is None else _of_node(ref, node, fleet, draft)
    if ref.kind != names.KIND:
        return None
    turn = turns.get(ref.name)
    if turn is not None:
        return _of_template(ref, turn, fleet)
    unread = fleet.snapshot.malformed.get(ref.name)
    return None if unread is None else _decision(ref, Reason.INVALID, {"template": ref.name, "error": unread.error})


def _decision(ref: ObjectRef, rule: Reason, facts: Object, candidates: tuple[Candidate, ...] = ()) -> Decision:
    remedies = tuple(reason.value for reason in _REMEDIES.get(rule, ()))
    return Decision(object=ref, rule=rule.value, facts=facts, candidates=candidates, would_change=remedies)


# nodes


def _of_node(ref: ObjectRef, node: Node, fleet: Fleet, draft: Draft) -> Decision:
    spare = next((spare for spare in fleet.stock.spares if spare.node is node), None)
    rule, facts = _node_rule(node, spare, fleet, draft)
    candidates = tuple(_node_candidates(node, spare, fleet))
    return _decision(ref, rule, {"node": ref.name, **facts}, candidates)


def _node_rule(node: Node, spare: Spare | None, fleet: Fleet, draft: Draft) -> tuple[Reason, Object]:
    planned = next((each for each in draft.actions if each.id == f"node/{node.metadata.name}"), None)
    if planned is not None and planned.facts:
        return Reason(planned.reason), planned.facts
    if elsewhere := owner_elsewhere(node):
        return Reason.OWNED_ELSEWHERE, {"owner": elsewhere}
    owner = template_of(node)
    if owner is not None:
        is_known = any(template.name == owner for template in fleet.templates) or owner in fleet.snapshot.malformed
        return (_stay_rule(node, draft) if is_known else Reason.DANGLING), {"template": owner}
    if spare is None:
        was = node.metadata.labels.get(names.OUT_LABEL)
        return (Reason.NOT_SPARE, {}) if was is None else (Reason.WAS_MOVED_OUT, {"template": was})
    if spare.refusal is not None:
        return spare.refusal, {}
    return (Reason.HELD, {"template": spare.holder}) if spare.holder else (Reason.SPARE, {})


def _stay_rule(node: Node, draft: Draft) -> Reason:
    """A node on its way back waits for something; any other is simply kept."""
    if names.RELEASE not in node.metadata.annotations:
        return Reason.KEPT
    return draft.waits.get(node.metadata.name, Reason.WAITING)


def _node_candidates(node: Node, spare: Spare | None, fleet: Fleet) -> Iterator[Candidate]:
    """Every template, in the order in which they choose."""
    owner = template_of(node)
    for template in fleet.templates:
        is_kept = owner == template.name and template.matches(node)
        reason = Reason.KEPT if is_kept else _why_not(template, node, spare)
        yield _candidate(template.name, reason, _about(reason, template, node, spare))


def _candidate(name: str, reason: Reason, facts: Object) -> Candidate:
    return Candidate(name=name, is_taken=reason in (Reason.KEPT, Reason.CLAIMED), reason=reason.value, facts=facts)


def _about(reason: Reason, template: Resolved, node: Node, spare: Spare | None) -> Object:
    """What the reason's text speaks of: mostly the template that asks, else the one that came first."""
    if reason is Reason.INVALID:
        return {"template": template.name, "error": template.error}
    other = ""
    if reason is Reason.TAKEN:
        other = spare.taker if spare is not None else node.metadata.labels[names.TEMPLATE_LABEL]
    elif reason is Reason.HELD and spare is not None:
        other = spare.holder
    elif reason is Reason.OWNED_ELSEWHERE:
        return {"template": template.name, "owner": owner_elsewhere(node)}
    return {"template": other or template.name}


def _why_not(template: Resolved, node: Node, spare: Spare | None) -> Reason:
    if template.error:
        return Reason.INVALID
    if not template.matches(node):
        return Reason.MISMATCH
    if spare is None:
        if template_of(node) is not None:
            return Reason.TAKEN
        return Reason.OWNED_ELSEWHERE if owner_elsewhere(node) else Reason.NOT_SPARE
    if spare.taker == template.name:
        return Reason.CLAIMED
    if spare.taker:
        return Reason.TAKEN
    if template.idle is not None:
        return template.idle
    if template.template.is_deleting:
        return Reason.DELETING
    return refusal(spare, template) or Reason.ENOUGH


# templates


def _of_template(ref: ObjectRef, turn: Turn, fleet: Fleet) -> Decision:
    template = turn.template
    facts: Object = {"template": template.name, "desired": template.desired, "kept": len(turn.kept)}
    if template.error:
        return _decision(ref, Reason.INVALID, {**facts, "error": template.error})
    if turn.short:
        facts["missing"] = turn.short
    if turn.competitor:
        facts["higher"] = turn.competitor
    return _decision(ref, _template_rule(turn), facts, tuple(_template_candidates(turn, fleet)))


def _template_rule(turn: Turn) -> Reason:
    template = turn.template
    if template.idle is not None:
        return template.idle
    if template.template.is_deleting:
        return Reason.DELETING
    if not turn.short:
        return Reason.SUFFICIENT
    return Reason.HIGH_PRIORITY if turn.competitor else Reason.NO_SPARE


def _template_candidates(turn: Turn, fleet: Fleet) -> Iterator[Candidate]:
    """Its own nodes, and every spare."""
    for node in fleet.nodes_of(turn.template):
        reason = Reason.KEPT if turn.template.matches(node) else Reason.MISMATCH
        yield _candidate(node.metadata.name, reason, _about(reason, turn.template, node, None))
    for spare in fleet.stock.spares:
        reason = _why_not(turn.template, spare.node, spare)
        yield _candidate(spare.name, reason, _about(reason, turn.template, spare.node, spare))
