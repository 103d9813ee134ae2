"""Explanations for `nodeyard why`: the rule for a node or template, every candidate with its reason, the remedies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.allocation import Allocation
from nodeyard.capabilities.spares.planning.builder import PlanBuilder, Wait
from nodeyard.capabilities.spares.planning.claims import refusal
from nodeyard.capabilities.spares.planning.partition import Partition, members_of
from nodeyard.capabilities.spares.planning.spare_index import Spare
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.snapshot import owner_elsewhere, template_of
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.names import POOL_DRAINING, ROLE_PREFIX
from nodeyard.kube.objects import Node
from nodeyard.plan.builder import NAMED
from nodeyard.plan.model import Candidate, Decision, ObjectRef

Allocations = Mapping[str, Allocation]

_CONTROL_PLANE = (f"{ROLE_PREFIX}control-plane", f"{ROLE_PREFIX}master")
_NOT_SELECTED = frozenset({Reason.MISMATCH.value, Reason.INVALID.value})
_RELEASE_WAITS = (Reason.WAITING, Reason.SETTLING, Reason.PODS_UNKNOWN)
_REMEDIES: Mapping[Reason, tuple[Reason, ...]] = {
    Reason.CLAIMED: (Reason.CHANGE_SELECTOR, Reason.LOWER_NODES),
    Reason.UPDATED: (Reason.CHANGE_SELECTOR, Reason.LOWER_NODES),
    Reason.RESERVED: (Reason.ADD_SPARES, Reason.RAISE_PRIORITY),
    Reason.ENOUGH: (Reason.RAISE_NODES,),
    Reason.SELF_DEFEATING: (Reason.CHANGE_SELECTOR,),
    Reason.MISMATCH: (Reason.CHANGE_SELECTOR,),
    Reason.KEPT: (Reason.CHANGE_SELECTOR, Reason.LOWER_NODES),
    Reason.NOT_ADOPTED: (Reason.RAISE_NODES,),
    Reason.DANGLING: (Reason.CREATE_TEMPLATE,),
    Reason.NOT_READY: (Reason.MAKE_READY,),
    Reason.UNSCHEDULABLE: (Reason.UNCORDON,),
    Reason.NOT_EMPTY: (Reason.EMPTY_NODE,),
    Reason.WAITING: (Reason.EMPTY_NODE,),
    Reason.SUFFICIENT: (Reason.RAISE_NODES,),
    Reason.SURPLUS: (Reason.SET_RELEASE, Reason.RAISE_NODES),
    Reason.NO_SPARE: (Reason.ADD_SPARES, Reason.CHANGE_SELECTOR),
    Reason.HIGH_PRIORITY: (Reason.ADD_SPARES, Reason.RAISE_PRIORITY),
    Reason.DRY_RUN: (Reason.END_DRY_RUN,),
    Reason.PAUSED: (Reason.END_PAUSE,),
    Reason.INVALID: (Reason.FIX_TEMPLATE,),
}


def explain(ref: ObjectRef, partition: Partition, allocations: Allocations, builder: PlanBuilder) -> Decision | None:
    """Explain a node or a template; None if it does not exist or is of another kind."""
    if ref.kind == "Node":
        node = next((node for node in partition.snapshot.nodes if node.metadata.name == ref.name), None)
        return None if node is None else _explain_node(ref, node, partition, allocations, builder)
    if ref.kind != names.KIND:
        return None
    allocation = allocations.get(ref.name)
    if allocation is not None:
        return _explain_template(ref, allocation, partition, builder)
    malformed = partition.snapshot.malformed.get(ref.name)
    if malformed is None:
        return None
    return _decision(ref, Reason.INVALID, {"template": ref.name, "error": malformed.error})


def _decision(
    ref: ObjectRef,
    rule: Reason,
    facts: Object,
    candidates: tuple[Candidate, ...] = (),
    remedies: Iterable[Reason] | None = None,
) -> Decision:
    reasons = _REMEDIES.get(rule, ()) if remedies is None else remedies
    would_change = tuple(dict.fromkeys(reason.value for reason in reasons))
    return Decision(object=ref, rule=rule.value, facts=facts, candidates=candidates, would_change=would_change)


# nodes


def _explain_node(
    ref: ObjectRef, node: Node, partition: Partition, allocations: Allocations, builder: PlanBuilder
) -> Decision:
    spare = next((spare for spare in partition.spares.spares if spare.node is node), None)
    candidates = tuple(_node_candidates(node, spare, partition, allocations))
    rule, facts = _node_rule(node, spare, partition, allocations, builder, candidates)
    remedies = _node_remedies(rule, node, candidates)
    if Reason.RAISE_NODES in remedies and rule is Reason.SPARE:
        facts["enough"] = [each.name for each in candidates if each.reason == Reason.ENOUGH]
    return _decision(ref, rule, {"node": ref.name, **facts}, candidates, remedies)


def _node_rule(
    node: Node,
    spare: Spare | None,
    partition: Partition,
    allocations: Allocations,
    builder: PlanBuilder,
    candidates: Iterable[Candidate],
) -> tuple[Reason, Object]:
    planned = next((each for each in builder.actions if each.id == f"node/{node.metadata.name}"), None)
    if planned is not None and planned.facts:
        return Reason(planned.reason), planned.facts
    if elsewhere := owner_elsewhere(node):
        return Reason.OWNED_ELSEWHERE, {"owner": elsewhere}
    owner = template_of(node)
    if owner is not None:
        is_known = (
            any(template.name == owner for template in partition.templates) or owner in partition.snapshot.malformed
        )
        if not is_known:
            return Reason.DANGLING, {"template": owner}
        allocation = allocations.get(owner)
        if allocation is not None and _is_refused(node, allocation):
            return Reason.NOT_ADOPTED, {"template": owner}
        reason, facts = _owned_rule(node, builder)
        return reason, {"template": owner, **facts}
    if spare is None:
        was = node.metadata.labels.get(names.OUT_LABEL)
        if was is not None:
            return Reason.WAS_MOVED_OUT, {"template": was}
        return Reason.NOT_SPARE, {"role": "control-plane"} if _is_control_plane(node) else {}
    return _spare_rule(spare, allocations, candidates)


def _spare_rule(spare: Spare, allocations: Allocations, candidates: Iterable[Candidate]) -> tuple[Reason, Object]:
    """Explain a spare that no template claims: refused, reserved, refused by a short template, or not needed."""
    if spare.refusal is not None:
        return spare.refusal, {}
    if spare.reserved_for:
        return Reason.RESERVED, {"higher": spare.reserved_for}
    selecting = [each for each in candidates if each.reason not in _NOT_SELECTED]
    for each in selecting:
        if allocations[each.name].short:
            return Reason(each.reason), dict(each.facts)
    return Reason.SPARE, {"templates": [each.name for each in selecting]}


def _node_remedies(rule: Reason, node: Node, candidates: Iterable[Candidate]) -> list[Reason]:
    """Return only remedies that help: raising `spec.nodes` does not if the selector excludes the node."""
    reasons = [Reason(each.reason) for each in candidates]
    is_selected = any(reason not in (Reason.MISMATCH, Reason.INVALID) for reason in reasons)
    if rule is Reason.SPARE:
        if not reasons:
            return [Reason.ADD_TEMPLATE]
        relevant = [reason for reason in reasons if not is_selected or reason is not Reason.MISMATCH]
        return [remedy for reason in relevant for remedy in _REMEDIES.get(reason, ())]
    if rule in (Reason.NOT_SPARE, Reason.WAS_MOVED_OUT):
        taint = [] if _is_control_plane(node) else [Reason.ADD_SPARE_TAINT]
        return taint if is_selected else [*taint, Reason.CHANGE_SELECTOR]
    if rule is Reason.OWNED_ELSEWHERE:
        return [Reason.LEAVE_ELSEWHERE] if POOL_DRAINING in node.metadata.annotations else []
    return list(_REMEDIES.get(rule, ()))


def _is_control_plane(node: Node) -> bool:
    return any(key in node.metadata.labels for key in _CONTROL_PLANE)


def _is_refused(node: Node, allocation: Allocation) -> bool:
    return any(each is node for each in allocation.refused)


def _owned_rule(node: Node, builder: PlanBuilder) -> tuple[Reason, Object]:
    """Explain an owned node without action: it waits for its release, or is kept."""
    if names.RELEASE not in node.metadata.annotations:
        return Reason.KEPT, {}
    wait = builder.waits.get(node.metadata.name, Wait(Reason.WAITING))
    return wait.reason, {"pods": list(wait.pods[:NAMED]), "podCount": len(wait.pods)} if wait.pods else {}


def _node_candidates(
    node: Node, spare: Spare | None, partition: Partition, allocations: Allocations
) -> Iterator[Candidate]:
    """Yield every template, by priority."""
    owner = template_of(node)
    for template in partition.templates:
        reason = _candidate_reason(template, node, spare)
        if owner == template.name and reason is Reason.TAKEN:
            reason = Reason.NOT_ADOPTED if _is_refused(node, allocations[owner]) else Reason.KEPT
        yield _candidate(template.name, reason, _facts(reason, allocations[template.name], node, spare))


def _candidate(name: str, reason: Reason, facts: Object) -> Candidate:
    return Candidate(name=name, is_taken=reason in (Reason.KEPT, Reason.CLAIMED), reason=reason.value, facts=facts)


def _facts(reason: Reason, allocation: Allocation, node: Node, spare: Spare | None) -> Object:
    """Return the facts for the reason's text."""
    template = allocation.template
    if reason is Reason.INVALID:
        return {"template": template.name, "error": template.error}
    if reason is Reason.NOT_ADOPTED:
        return {"template": template.name, "node": node.metadata.name}
    if reason is Reason.MISMATCH:
        return {"template": template.name, **template.mismatch(node)}
    if reason is Reason.TAKEN:
        owner = spare.claimed_by if spare is not None else node.metadata.labels[names.TEMPLATE_LABEL]
        return {"template": owner or template.name}
    if reason is Reason.RESERVED and spare is not None:
        return {"template": template.name, "higher": spare.reserved_for}
    if reason is Reason.OWNED_ELSEWHERE:
        return {"template": template.name, "owner": owner_elsewhere(node)}
    if reason is Reason.ENOUGH and allocation.claims:
        return {"template": template.name, "claims": allocation.claims}
    return {"template": template.name}


def _candidate_reason(template: Resolved, node: Node, spare: Spare | None) -> Reason:
    if template.error:
        return Reason.INVALID
    if not template.matches(node):
        return Reason.MISMATCH
    if spare is None:
        if template_of(node) is not None:
            return Reason.TAKEN
        return Reason.OWNED_ELSEWHERE if owner_elsewhere(node) else Reason.NOT_SPARE
    if spare.claimed_by == template.name:
        return Reason.CLAIMED
    if spare.claimed_by:
        return Reason.TAKEN
    if template.idle is not None:
        return template.idle
    if template.template.is_deleting:
        return Reason.DELETING
    return refusal(spare, template) or Reason.ENOUGH


# templates


def _explain_template(ref: ObjectRef, allocation: Allocation, partition: Partition, builder: PlanBuilder) -> Decision:
    template = allocation.template
    if template.error:
        return _decision(ref, Reason.INVALID, {"template": template.name, "error": template.error})
    kept = (
        allocation.kept
        if template.idle is not Reason.PAUSED
        else members_of(template, partition.nodes_of(template)).kept
    )
    facts: Object = {"template": template.name, "desired": template.desired, "kept": len(kept)}
    if allocation.short:
        facts["missing"] = allocation.short
    leaving = [each for each in builder.actions if each.reason == Reason.MOVED_OUT]
    if count := sum(each.facts.get("template") == template.name for each in leaving):
        facts["leaving"] = count
    if allocation.competitor:
        facts["higher"] = allocation.competitor
    blocked = {Reason(each.reason): each.facts for each in builder.blocked if each.object == template.ref}
    refused = {reason.value: each["count"] for reason, each in blocked.items() if "count" in each}
    if refused:
        facts["refusals"] = refused
    rule, more = _template_rule(allocation, blocked)
    remedies = [*_REMEDIES.get(rule, ())]
    if rule in (Reason.NO_SPARE, Reason.HIGH_PRIORITY):
        remedies += [
            remedy
            for reason in blocked
            if reason not in (rule, Reason.RESERVED)
            for remedy in _REMEDIES.get(reason, ())
        ]
    return _decision(ref, rule, {**facts, **more}, tuple(_template_candidates(allocation, partition)), remedies)


def _template_rule(allocation: Allocation, blocked: Mapping[Reason, Object]) -> tuple[Reason, Object]:
    """Return the rule, and its facts other than the node counts."""
    template = allocation.template
    if template.idle is not None:
        return template.idle, blocked.get(template.idle, {})
    if template.template.is_deleting:
        waiting = next((blocked[reason] for reason in _RELEASE_WAITS if reason in blocked), {})
        return Reason.DELETING, waiting
    surplus = len(allocation.kept) - template.desired
    if surplus > 0 and not template.template.releases:
        return Reason.SURPLUS, {"surplus": surplus}
    if surplus > 0:
        waits = next((reason for reason in _RELEASE_WAITS if reason in blocked), None)
        return (Reason.RELEASING, {"count": surplus}) if waits is None else (waits, blocked[waits])
    if not allocation.short:
        return Reason.SUFFICIENT, {}
    return (Reason.HIGH_PRIORITY if allocation.competitor else Reason.NO_SPARE), {}


def _template_candidates(allocation: Allocation, partition: Partition) -> Iterator[Candidate]:
    """Yield the template's nodes and every spare."""
    for node in partition.nodes_of(allocation.template):
        reason = Reason.KEPT if allocation.template.matches(node) else Reason.MISMATCH
        if _is_refused(node, allocation):
            reason = Reason.NOT_ADOPTED
        yield _candidate(node.metadata.name, reason, _facts(reason, allocation, node, None))
    for spare in partition.spares.spares:
        reason = _candidate_reason(allocation.template, spare.node, spare)
        yield _candidate(spare.name, reason, _facts(reason, allocation, spare.node, spare))
