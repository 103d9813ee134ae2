"""What a template says of itself after a pass: final, from the plan and what became of it, not from an earlier status.

People and scripts read nodes, counts and reasons as soon as `observedGeneration` has caught up. So a pass that did not
come to its end, because of a conflict that is being planned again, writes no status at all.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.spares.messages import text
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.planning.turns import LISTED
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, template_of
from nodeyard.capabilities.spares.types import NodeTemplate, NodeTemplateStatus, Reason, ReconcileInfo, WouldDo
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition, Node
from nodeyard.plan.model import Blocked, Plan
from nodeyard.runtime.capability import StatusWrite

SUFFICIENT = "Sufficient"
SUCCESS = "ReconcileSuccess"

_GAINS = (Reason.CLAIMED,)
_LOSSES = (Reason.RELEASED, Reason.MOVED_OUT, Reason.LET_GO)
_BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)
_REFUSALS = (
    Reason.NOT_READY,
    Reason.NOT_EMPTY,
    Reason.PODS_UNKNOWN,
    Reason.OWNED_ELSEWHERE,
    Reason.NODE_DELETING,
    Reason.HELD,
    Reason.SELF_DEFEATING,
)


class Account:
    """One template's part in a pass."""

    def __init__(self, template: NodeTemplate) -> None:
        self.template = template
        self.resolved = Resolved(template)
        self.nodes: dict[str, Node] = {}
        self.errors: list[str] = []
        self.blocked: dict[str, Blocked] = {}
        self.is_settled = True
        self.is_going = False

    def settle(self, reason: str, node: Node | None, result: ActionResult | None) -> None:
        """Book one action of the plan and what became of it."""
        self.is_going = self.is_going or reason == Reason.FINALIZER_REMOVED
        if reason == Reason.EVICTED or _is_held_back(reason, result):
            return
        if result is not None and result.result is Result.DONE:
            self._book(reason, node)
        elif result is not None and result.result in _BAD:
            self.errors.append(result.message or result.result.value)
        else:
            self.is_settled = False

    def _book(self, reason: str, node: Node | None) -> None:
        if node is None:
            return
        if reason in _GAINS:
            self.nodes[node.metadata.name] = node
        elif reason in _LOSSES:
            self.nodes.pop(node.metadata.name, None)


def _is_held_back(reason: str, result: ActionResult | None) -> bool:
    """A release that the brake holds leaves the rest of the pass as final as it is."""
    return reason == Reason.RELEASING and result is not None and result.result is Result.HELD


def status(snapshot: SparesSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    writes = []
    for account in accounts(snapshot, plan, outcome):
        if not account.is_settled or account.is_going:
            continue
        after = to_wire(_status_of(account, now))
        if after != to_wire(account.template.status):
            writes.append(StatusWrite(object=account.resolved.ref, status=after))
    return writes


def accounts(snapshot: SparesSnapshot, plan: Plan, outcome: Outcome) -> Iterable[Account]:
    """Every template's part, in one pass over nodes and actions."""
    books = {template.name: Account(template) for template in snapshot.templates}
    results = {result.action.id: result for result in outcome.results}
    claimed = {action.object.name for action in plan.actions if action.reason == Reason.CLAIMED}
    nodes: dict[str, Node] = {}
    for node in snapshot.nodes:
        name = node.metadata.name
        owner = template_of(node)
        account = None if owner is None else books.get(owner)
        if account is not None and (account.resolved.error or account.resolved.matches(node)):
            account.nodes[name] = node
        elif name in claimed:
            nodes[name] = node
        if account is not None:
            nodes[name] = node
    for action in plan.actions:
        account = books.get(action.facts.get("template", ""))
        if account is not None:
            account.settle(action.reason, nodes.get(action.object.name), results.get(action.id))
    for blocked in plan.blocked:
        if blocked.object.name in books:
            books[blocked.object.name].blocked[blocked.reason] = blocked
    return books.values()


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
            reason.value: int(account.blocked[reason].facts["count"])
            for reason in _REFUSALS
            if reason in account.blocked
        },
        dry_run=_would_do(account.blocked.get(Reason.DRY_RUN)),
    )


def _would_do(blocked: Blocked | None) -> WouldDo | None:
    if blocked is None:
        return None
    facts = {key: value for key, value in blocked.facts.items() if key != "template"}
    return WouldDo(**{**facts, "nodes": tuple(facts["nodes"])})


def _conditions(account: Account, now: datetime) -> tuple[Condition, ...]:
    fresh = (sufficient(account), success(account))
    before = {condition.type: condition for condition in account.template.status.conditions}
    generation = account.template.metadata.generation
    ours = tuple(_since(condition, before.get(condition.type), generation, now) for condition in fresh)
    theirs = tuple(each for kind, each in before.items() if kind not in (SUFFICIENT, SUCCESS))
    return (*ours, *theirs)


def _since(condition: Condition, before: Condition | None, generation: int, now: datetime) -> Condition:
    """With the moment at which its status changed, which may be long ago."""
    moment = now.replace(microsecond=0)
    if before is not None and before.status == condition.status and before.last_transition_time is not None:
        moment = before.last_transition_time
    return msgspec.structs.replace(condition, observed_generation=generation, last_transition_time=moment)


def sufficient(account: Account) -> Condition:
    if len(account.nodes) >= account.resolved.desired:
        return _condition(SUFFICIENT, "True", Reason.SUFFICIENT)
    for reason in (Reason.HIGH_PRIORITY, Reason.NO_SPARE):
        if reason in account.blocked:
            return _condition(SUFFICIENT, "False", reason)
    for reason in (Reason.PAUSED, Reason.DRY_RUN):
        if not account.errors and reason in account.blocked:
            return _condition(SUFFICIENT, "False", reason, account.blocked[reason].facts)
    return _condition(SUFFICIENT, "False", Reason.RECONCILE_ERROR)


def success(account: Account) -> Condition:
    errors = [account.resolved.error] if account.resolved.error else account.errors
    if not errors:
        return _condition(SUCCESS, "True", Reason.RECONCILE_SUCCESS)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Condition(type=SUCCESS, status="False", reason=Reason.RECONCILE_ERROR.value, message=f"{errors[0]}{more}")


def _condition(kind: str, value: str, reason: Reason, facts: Object | None = None) -> Condition:
    return Condition(type=kind, status=value, reason=reason.value, message=text(reason, facts or {}))


# the wire


def to_wire(status: NodeTemplateStatus) -> Object:
    """As the API server keeps it: nyallocator's fields always, ours where they say something."""
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
        wire["lastTransitionTime"] = condition.last_transition_time.strftime("%Y-%m-%dT%H:%M:%SZ")
    if condition.observed_generation:
        wire["observedGeneration"] = condition.observed_generation
    return wire
