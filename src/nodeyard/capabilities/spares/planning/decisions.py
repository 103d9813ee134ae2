"""Explanations for `nodeyard why`: the rule for a node or template, every candidate with its reason, the remedies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import (
    REFUSALS,
    AddSpares,
    AddSpareTaint,
    AddTemplate,
    ChangeSelector,
    Claimed,
    CreateTemplate,
    Dangling,
    Deleting,
    DryRun,
    EmptyNode,
    EndDryRun,
    EndPause,
    FixTemplate,
    HighPriority,
    Invalid,
    Kept,
    LeaveElsewhere,
    LowerNodes,
    MakeReady,
    NodesMessage,
    NoSpare,
    NotAdopted,
    NotNeeded,
    NotSpare,
    OwnedElsewhere,
    Paused,
    RaiseNodes,
    RaisePriority,
    Releasing,
    Reserved,
    SetRelease,
    SparesMessage,
    Sufficient,
    Surplus,
    Taken,
    UnclaimedSpare,
    Uncordon,
    WaitingForPods,
    WasMovedOut,
)
from nodeyard.capabilities.spares.planning.allocation import Allocation, refusal
from nodeyard.capabilities.spares.planning.builder import PlanBuilder, Wait
from nodeyard.capabilities.spares.planning.partition import Partition, Spare, members_of
from nodeyard.capabilities.spares.planning.releases import release_message
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import owner_elsewhere, template_of
from nodeyard.kube.names import POOL_DRAINING, ROLE_PREFIX
from nodeyard.kube.objects import Node
from nodeyard.plan.message import Message
from nodeyard.plan.model import Candidate, Decision, ObjectRef

Allocations = Mapping[str, Allocation]
Remedies = tuple[type[SparesMessage], ...]

_CONTROL_PLANE = (f"{ROLE_PREFIX}control-plane", f"{ROLE_PREFIX}master")
_NOT_SELECTED = frozenset({Reason.MISMATCH.value, Reason.INVALID.value})
_NOT_CLAIMING = frozenset({Reason.PAUSED.value, Reason.DRY_RUN.value, Reason.DELETING.value})
_RELEASE_WAITS = (Reason.WAITING, Reason.SETTLING, Reason.PODS_UNKNOWN)
_ELIGIBILITY: Mapping[str, Remedies] = {
    Reason.NOT_READY: (MakeReady,),
    Reason.UNSCHEDULABLE: (Uncordon,),
    Reason.NOT_EMPTY: (EmptyNode,),
}
_REMEDIES: Mapping[str, Remedies] = {
    **_ELIGIBILITY,
    Reason.CLAIMED: (ChangeSelector, LowerNodes),
    Reason.UPDATED: (ChangeSelector, LowerNodes),
    Reason.ENOUGH: (RaiseNodes,),
    Reason.SELF_DEFEATING: (ChangeSelector,),
    Reason.MISMATCH: (ChangeSelector,),
    Reason.KEPT: (ChangeSelector, LowerNodes),
    Reason.NOT_ADOPTED: (RaiseNodes,),
    Reason.DANGLING: (CreateTemplate,),
    Reason.WAITING: (EmptyNode,),
    Reason.SUFFICIENT: (RaiseNodes,),
    Reason.SURPLUS: (SetRelease, RaiseNodes),
    Reason.DRY_RUN: (EndDryRun,),
    Reason.PAUSED: (EndPause,),
    Reason.INVALID: (FixTemplate,),
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
    return _decision(ref, Invalid(template=ref.name, error=malformed.error))


def _decision(
    ref: ObjectRef,
    rule: SparesMessage,
    candidates: Iterable[Candidate] = (),
    remedies: Iterable[type[SparesMessage]] | None = None,
    enough: tuple[str, ...] = (),
) -> Decision:
    """Build a decision. `enough` lists the templates whose `spec.nodes` could be raised, if not the rule's own."""
    kinds = dict.fromkeys(_REMEDIES.get(rule.reason, ()) if remedies is None else remedies)
    would_change = [
        RaiseNodes(template=rule.template, templates=enough) if kind is RaiseNodes else kind(template=rule.template)
        for kind in kinds
    ]
    return Decision.of(ref, rule, candidates, would_change)


# nodes


def _explain_node(
    ref: ObjectRef, node: Node, partition: Partition, allocations: Allocations, builder: PlanBuilder
) -> Decision:
    spare = next((spare for spare in partition.spares.spares if spare.node is node), None)
    candidates = tuple(_node_candidates(node, spare, partition, allocations))
    rule = _node_rule(node, spare, partition, allocations, builder, candidates)
    if not rule.node:
        rule = msgspec.structs.replace(rule, node=ref.name)
    enough = tuple(each.name for each in candidates if each.reason == Reason.ENOUGH)
    return _decision(ref, rule, candidates, _node_remedies(rule.reason, node, candidates), enough)


def _node_rule(
    node: Node,
    spare: Spare | None,
    partition: Partition,
    allocations: Allocations,
    builder: PlanBuilder,
    candidates: Iterable[Candidate],
) -> SparesMessage:
    planned = next((each for each in builder.actions if each.id == f"node/{node.metadata.name}"), None)
    if planned is not None and isinstance(planned.facts, SparesMessage) and planned.facts.template:
        return planned.facts
    if elsewhere := owner_elsewhere(node):
        return OwnedElsewhere(owner=elsewhere)
    owner = template_of(node)
    if owner is not None:
        is_known = (
            any(template.name == owner for template in partition.templates) or owner in partition.snapshot.malformed
        )
        if not is_known:
            return Dangling(template=owner)
        allocation = allocations.get(owner)
        if allocation is not None and _is_refused(node, allocation):
            return NotAdopted(template=owner)
        return _owned_rule(owner, node, builder)
    if spare is None:
        was = node.metadata.labels.get(names.OUT_LABEL)
        if was is not None:
            return WasMovedOut(template=was)
        return NotSpare(role="control-plane" if _is_control_plane(node) else "")
    return _spare_rule(spare, allocations, candidates)


def _spare_rule(spare: Spare, allocations: Allocations, candidates: Iterable[Candidate]) -> SparesMessage:
    """Explain a spare that no template claims: refused, reserved, refused by a short template, or not needed."""
    if spare.refusal is not None:
        return REFUSALS[spare.refusal]()
    if spare.reserved_for:
        return Reserved(higher=(spare.reserved_for,))
    selecting = [each for each in candidates if each.reason not in _NOT_SELECTED]
    for each in selecting:
        if allocations[each.name].short and isinstance(each.facts, SparesMessage):
            return each.facts
    not_claiming = tuple(each.name for each in selecting if each.reason in _NOT_CLAIMING)
    return UnclaimedSpare(templates=tuple(each.name for each in selecting), not_claiming=not_claiming)


def _node_remedies(rule: str, node: Node, candidates: Iterable[Candidate]) -> list[type[SparesMessage]]:
    """Return only remedies that help: raising `spec.nodes` does not if the selector excludes the node."""
    reasons = [each.reason for each in candidates]
    is_selected = any(reason not in _NOT_SELECTED for reason in reasons)
    if rule == Reason.SPARE:
        if not reasons:
            return [AddTemplate]
        relevant = [reason for reason in reasons if not is_selected or reason != Reason.MISMATCH]
        return [remedy for reason in relevant for remedy in _REMEDIES.get(reason, ())]
    if rule == Reason.RESERVED:
        return [*(remedy for reason in reasons for remedy in _ELIGIBILITY.get(reason, ())), *_reservation(reasons)]
    if rule in (Reason.NOT_SPARE, Reason.WAS_MOVED_OUT):
        if _is_control_plane(node):
            return []
        return [AddSpareTaint] if is_selected else [AddSpareTaint, ChangeSelector]
    if rule == Reason.OWNED_ELSEWHERE:
        return [LeaveElsewhere] if POOL_DRAINING in node.metadata.annotations else []
    return list(_REMEDIES.get(rule, ()))


def _reservation(reasons: Collection[str]) -> tuple[type[SparesMessage], ...]:
    """Return what ends a reservation: a higher priority helps only a template that another one keeps a spare from."""
    is_kept_away = not {Reason.RESERVED.value, Reason.TAKEN.value}.isdisjoint(reasons)
    return (AddSpares, RaisePriority) if is_kept_away else (AddSpares,)


def _is_control_plane(node: Node) -> bool:
    keys = (*node.metadata.labels, *(taint.key for taint in node.spec.taints))
    return any(key in _CONTROL_PLANE for key in keys)


def _is_refused(node: Node, allocation: Allocation) -> bool:
    return any(each is node for each in allocation.refused)


def _owned_rule(owner: str, node: Node, builder: PlanBuilder) -> SparesMessage:
    """Explain an owned node without action: it waits for its release, or is kept."""
    if names.RELEASE not in node.metadata.annotations:
        return Kept(template=owner)
    wait = builder.waits.get(node.metadata.name, Wait(Reason.WAITING))
    return release_message(wait.reason, owner, wait.pods, node.metadata.name)


def _node_candidates(
    node: Node, spare: Spare | None, partition: Partition, allocations: Allocations
) -> Iterator[Candidate]:
    """Yield every template, by priority."""
    owner = template_of(node)
    for template in partition.templates:
        allocation = allocations[template.name]
        message = _candidate_message(allocation, node, spare)
        if owner == template.name and isinstance(message, Taken):
            message = (NotAdopted if _is_refused(node, allocation) else Kept)(template=owner, node=node.metadata.name)
        yield _candidate(template.name, message)


def _candidate(name: str, message: Message) -> Candidate:
    return Candidate.of(name, message, is_taken=message.reason in (Reason.KEPT, Reason.CLAIMED))


def _candidate_message(allocation: Allocation, node: Node, spare: Spare | None) -> SparesMessage:
    template, name = allocation.template, allocation.template.name
    if template.error:
        return Invalid(template=name, error=template.error)
    if not template.matches(node):
        return template.mismatch(node)
    if spare is None:
        if (owner := template_of(node)) is not None:
            return Taken(template=name, owner=owner)
        elsewhere = owner_elsewhere(node)
        return OwnedElsewhere(template=name, owner=elsewhere) if elsewhere else NotSpare(template=name)
    if spare.claimed_by == name:
        return Claimed(template=name)
    if spare.claimed_by:
        return Taken(template=name, owner=spare.claimed_by)
    if template.idle is not None:
        return Paused(template=name) if template.idle is Reason.PAUSED else DryRun(template=name)
    if template.template.is_deleting:
        return Deleting(template=name)
    return _refusal_message(allocation, node, spare)


def _refusal_message(allocation: Allocation, node: Node, spare: Spare) -> SparesMessage:
    name, reason = allocation.template.name, refusal(spare, allocation.template)
    if reason is None:
        return NotNeeded(template=name, claims=allocation.claims)
    if reason is Reason.RESERVED:
        return Reserved(template=name, higher=(spare.reserved_for,))
    if reason is Reason.OWNED_ELSEWHERE:
        return OwnedElsewhere(template=name, owner=owner_elsewhere(node))
    return REFUSALS[reason](template=name)


# templates


def _explain_template(ref: ObjectRef, allocation: Allocation, partition: Partition, builder: PlanBuilder) -> Decision:
    template = allocation.template
    blocked = {
        each.reason: each.facts
        for each in builder.blocked
        if each.object == template.ref and isinstance(each.facts, SparesMessage)
    }
    rule = _template_rule(allocation, partition, builder, blocked)
    remedies = [*_REMEDIES.get(rule.reason, ())]
    candidates = () if template.error else tuple(_template_candidates(allocation, partition))
    if rule.reason in (Reason.NO_SPARE, Reason.HIGH_PRIORITY):
        reasons = {each.reason for each in candidates}
        remedies = [*_reservation(reasons if rule.reason == Reason.HIGH_PRIORITY else ())]
        remedies += [ChangeSelector] if Reason.MISMATCH in reasons else []
        others = (reason for reason in blocked if reason != rule.reason)
        remedies += [remedy for reason in others for remedy in _REMEDIES.get(reason, ())]
    return _decision(ref, rule, candidates, remedies)


def _template_rule(
    allocation: Allocation, partition: Partition, builder: PlanBuilder, blocked: Mapping[str, SparesMessage]
) -> SparesMessage:
    template, name = allocation.template, allocation.template.name
    if template.error:
        return Invalid(template=name, error=template.error)
    if template.idle is Reason.PAUSED:
        kept = members_of(template, partition.nodes_of(template)).kept
        return Paused(template=name, desired=template.desired, kept=len(kept))
    waits = next((blocked[reason] for reason in _RELEASE_WAITS if reason in blocked), None)
    if template.idle is not None:
        return blocked.get(template.idle, DryRun(template=name))
    if template.template.is_deleting:
        return Deleting(template=name, waits_for_pods=waits.format_pods() if isinstance(waits, WaitingForPods) else "")
    surplus = len(allocation.kept) - template.desired
    if surplus > 0 and not template.template.releases:
        return Surplus(template=name, surplus=surplus)
    if surplus > 0:
        return waits or Releasing(template=name, count=surplus)
    kind = Sufficient if not allocation.short else HighPriority if allocation.competitor else NoSpare
    refused = {reason: each.count for reason, each in blocked.items() if isinstance(each, NodesMessage)}
    leaving = (each.facts for each in builder.actions if each.reason == Reason.MOVED_OUT)
    return kind(
        template=name,
        desired=template.desired,
        kept=len(allocation.kept),
        missing=allocation.short,
        leaving=sum(isinstance(each, SparesMessage) and each.template == name for each in leaving),
        higher=allocation.competitor,
        refusals={reason: count for reason, count in refused.items() if count},
    )


def _template_candidates(allocation: Allocation, partition: Partition) -> Iterator[Candidate]:
    """Yield the template's nodes and every spare."""
    template = allocation.template
    for node in partition.nodes_of(template):
        name = node.metadata.name
        if _is_refused(node, allocation):
            yield _candidate(name, NotAdopted(template=template.name, node=name))
        else:
            yield _candidate(name, Kept(template=template.name) if template.matches(node) else template.mismatch(node))
    for spare in partition.spares.spares:
        yield _candidate(spare.name, _candidate_message(allocation, spare.node, spare))
