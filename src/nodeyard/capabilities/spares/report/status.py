"""Status of templates, computed from the plan and the outcome of its writes, not from the previous status.

Users and scripts read nodes, counts and reasons as soon as `observedGeneration` is current. A reconcile that ends
early, for example with a conflict that is planned again, therefore writes no status.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.spares.messages import (
    REFUSALS,
    DryRun,
    HighPriority,
    NodesMessage,
    NoSpare,
    ReconcileError,
    ReconcileSuccess,
    SparesMessage,
    Sufficient,
    Surplus,
    template_named,
)
from nodeyard.capabilities.spares.planning.allocation import LISTED
from nodeyard.capabilities.spares.planning.partition import members_of
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, template_of
from nodeyard.capabilities.spares.types import NodeTemplate, NodeTemplateStatus, ReconcileInfo, WouldDo
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition, Node
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.model import Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import StatusWrite

SUFFICIENT = "Sufficient"
SUCCESS = "ReconcileSuccess"
SURPLUS = "Surplus"
"""Present while a template retains more nodes than `spec.nodes`."""

_GAINS = (Reason.CLAIMED, Reason.TAKEN_BACK)
_LOSSES = (Reason.RELEASED, Reason.MOVED_OUT, Reason.DETACHED)
_FAILURES = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


class Account:
    """Nodes, errors and refusals of one template in a reconcile."""

    def __init__(self, template: NodeTemplate) -> None:
        self.template = template
        self.resolved = Resolved(template)
        self.nodes: dict[str, Node] = {}
        self.errors: list[str] = []
        self.blocked: dict[str, SparesMessage] = {}
        self.is_unfinished = False
        self.is_skipped = False
        self.is_removed = False

    @property
    def is_settled(self) -> bool:
        """Tell whether the reconcile finished for this template. Actions skipped after an error count as finished."""
        return not self.is_unfinished and (not self.is_skipped or bool(self.errors))

    def add(self, reason: str, node: Node | None, result: ActionResult | None) -> None:
        """Add one action of the plan and its result."""
        self.is_removed = self.is_removed or reason == Reason.FINALIZER_REMOVED
        if reason == Reason.EVICTED or _is_held_release(reason, result):
            return
        if result is not None and result.result is Result.DONE:
            self._update_nodes(reason, node)
        elif result is not None and result.result in _FAILURES:
            self.errors.append(result.message or result.result.value)
        elif result is not None and result.result is Result.SKIPPED:
            self.is_skipped = True
        else:
            self.is_unfinished = True

    def _update_nodes(self, reason: str, node: Node | None) -> None:
        if node is None:
            return
        if reason in _GAINS:
            self.nodes[node.metadata.name] = node
        elif reason in _LOSSES:
            self.nodes.pop(node.metadata.name, None)


def _is_held_release(reason: str, result: ActionResult | None) -> bool:
    """Tell whether the brake holds a release; the status is final all the same."""
    return reason == Reason.RELEASING and result is not None and result.result is Result.HELD


def status(accounts: Iterable[Account], now: datetime) -> Sequence[StatusWrite]:
    writes = []
    for account in accounts:
        if not account.is_settled or account.is_removed:
            continue
        after = to_wire(_status_of(account, now))
        if after != to_wire(account.template.status):
            writes.append(StatusWrite(object=account.resolved.ref, status=after))
    return writes


def collect_accounts(snapshot: SparesSnapshot, plan: Plan, outcome: Outcome) -> Collection[Account]:
    """Collect the account of every template in one pass over nodes and actions."""
    accounts = {template.name: Account(template) for template in snapshot.templates}
    results = {result.action.id: result for result in outcome.results}
    claimed = {action.object.name for action in plan.actions if action.reason in _GAINS}
    nodes: dict[str, Node] = {}
    owned: dict[str, list[Node]] = {}
    for node in snapshot.nodes:
        owner = template_of(node)
        if owner in accounts:
            owned.setdefault(owner, []).append(node)
        if owner in accounts or node.metadata.name in claimed:
            nodes[node.metadata.name] = node
    held = {each.object.name for each in plan.blocked if each.reason == EngineReason.NEEDS_APPROVAL}
    for name, candidates in owned.items():
        resolved = accounts[name].resolved
        kept = candidates if resolved.error else members_of(resolved, candidates).kept
        accounts[name].nodes = {node.metadata.name: node for node in kept}
        if held:
            # Nodes whose move out of management the brake holds still belong to the template.
            leaving = (node for node in candidates if node.metadata.name in held and not resolved.matches(node))
            accounts[name].nodes |= {node.metadata.name: node for node in leaving}
    for action in plan.actions:
        account = accounts.get(template_named(action))
        if account is not None:
            account.add(action.reason, nodes.get(action.object.name), results.get(action.id))
    for blocked in plan.blocked:
        if blocked.object.name in accounts and isinstance(blocked.facts, SparesMessage):
            accounts[blocked.object.name].blocked[blocked.reason] = blocked.facts
    return accounts.values()


def _status_of(account: Account, now: datetime) -> NodeTemplateStatus:
    template = account.template
    zones = Counter(zone for zone in map(account.resolved.zone_of, account.nodes.values()) if zone)
    listed = dict(sorted(zones.items())[:LISTED])
    return NodeTemplateStatus(
        current_nodes=len(account.nodes),
        reconcile_info=ReconcileInfo(observed_generation=template.metadata.generation),
        conditions=_conditions(account, now),
        nodes=tuple(heapq.nsmallest(LISTED, account.nodes)),
        zones=listed,
        refusals={
            reason: refused.count
            for reason in REFUSALS
            if isinstance(refused := account.blocked.get(reason), NodesMessage)
        },
        dry_run=_would_do(account.blocked.get(Reason.DRY_RUN)),
    )


def _would_do(blocked: SparesMessage | None) -> WouldDo | None:
    if not isinstance(blocked, DryRun):
        return None
    return WouldDo(
        claims=blocked.claims or 0,
        updates=blocked.updates,
        moves=blocked.moves,
        releases=blocked.releases,
        nodes=blocked.nodes,
    )


def _conditions(account: Account, now: datetime) -> tuple[Condition, ...]:
    own = [sufficient(account), success(account), *surplus(account)]
    before = {condition.type: condition for condition in account.template.status.conditions}
    generation = account.template.metadata.generation
    current = tuple(_with_transition_time(condition, before.get(condition.type), generation, now) for condition in own)
    foreign = tuple(each for kind, each in before.items() if kind not in (SUFFICIENT, SUCCESS, SURPLUS))
    return (*current, *foreign)


def _with_transition_time(condition: Condition, before: Condition | None, generation: int, now: datetime) -> Condition:
    """Set `lastTransitionTime`, which is kept while the status is unchanged."""
    transition = now.replace(microsecond=0)
    if before is not None and before.status == condition.status and before.last_transition_time is not None:
        transition = before.last_transition_time
    return msgspec.structs.replace(condition, observed_generation=generation, last_transition_time=transition)


def sufficient(account: Account) -> Condition:
    if len(account.nodes) >= account.resolved.desired:
        return _condition(SUFFICIENT, "True", Sufficient())
    for message in (HighPriority(), NoSpare()):
        if message.reason in account.blocked:
            return _condition(SUFFICIENT, "False", message)
    for reason in (Reason.PAUSED, Reason.DRY_RUN):
        if not account.errors and reason in account.blocked:
            return _condition(SUFFICIENT, "False", account.blocked[reason])
    return _condition(SUFFICIENT, "False", ReconcileError())


def surplus(account: Account) -> list[Condition]:
    """Return the Surplus condition; empty without surplus or if it is released."""
    template, number = account.template, len(account.nodes) - account.resolved.desired
    if number <= 0 or template.releases or template.is_deleting or account.resolved.error:
        return []
    return [_condition(SURPLUS, "True", Surplus(template=template.name, surplus=number))]


def success(account: Account) -> Condition:
    errors = [account.resolved.error] if account.resolved.error else account.errors
    if not errors:
        return _condition(SUCCESS, "True", ReconcileSuccess())
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Condition(type=SUCCESS, status="False", reason=Reason.RECONCILE_ERROR.value, message=f"{errors[0]}{more}")


def _condition(kind: str, value: str, message: SparesMessage) -> Condition:
    return Condition(type=kind, status=value, reason=message.reason, message=message.text())


# encoding


def to_wire(status: NodeTemplateStatus) -> Object:
    """Encode as the API server stores it: nyallocator's fields always, Nodeyard's fields if not empty."""
    wire: Object = {
        "currentNodes": status.current_nodes,
        "reconcileInfo": {"observedGeneration": status.reconcile_info.observed_generation},
        "conditions": [_condition_wire(condition) for condition in status.conditions],
    }
    if status.nodes:
        wire["nodes"] = list(status.nodes)
    if status.zones:
        wire["zones"] = status.zones
    if status.refusals:
        wire["refusals"] = status.refusals
    if status.dry_run is not None:
        wire["dryRun"] = {**msgspec.to_builtins(status.dry_run), "nodes": list(status.dry_run.nodes)}
    return wire


def _condition_wire(condition: Condition) -> Object:
    wire: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.last_transition_time is not None:
        wire["lastTransitionTime"] = format_rfc3339(condition.last_transition_time)
    if condition.observed_generation:
        wire["observedGeneration"] = condition.observed_generation
    return wire
