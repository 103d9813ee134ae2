"""Status of a Tenant: its namespace, the effective classes, and their faults.

NamespaceReady    the Namespace exists, belongs to the tenant, and has the values for its applications
ClassesValid      all classes that it names exist and are allowed; others are ignored and named here
Ready             both, and no write of this reconcile failed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.objects import Deleting, ObjectMessage
from nodeyard.capabilities.affinity.messages.tenants import (
    BadTenantName,
    ClassesValid,
    NamespaceHeld,
    NamespacePending,
    TenantReady,
)
from nodeyard.capabilities.affinity.planning.inheritance import (
    EffectivePolicy,
    effective_policies,
    name_faults,
    named_classes,
)
from nodeyard.capabilities.affinity.planning.tenants import belongs_to, is_terminating
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.status import failure_condition, make_condition, set_conditions
from nodeyard.capabilities.affinity.snapshot import TenantsSnapshot
from nodeyard.capabilities.affinity.types import ConditionType, Tenant, TenantStatus
from nodeyard.kube.conditions import FALSE, TRUE, to_wire
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Plan
from nodeyard.plan.reasons import EngineReason, NeedsApproval
from nodeyard.runtime.capability import StatusWrite

_CLASSES: Final = frozenset({Reason.NOT_ALLOWED_BY_PARENT, Reason.DEFAULT_NOT_ALLOWED, Reason.AFFINITY_CLASS_NOT_FOUND})
_DELETION_REFUSALS: Final = frozenset({Reason.TENANT_IN_USE, Reason.APPLICATIONS_UNWATCHED})
_Whose = tuple[str, str]
_T = TypeVar("_T", Blocked, ActionResult)


def status_tenants(snapshot: TenantsSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    if snapshot.is_served_elsewhere:
        return ()
    tree = effective_policies(snapshot.tenants, snapshot.classes)
    blocked = _by_tenant((each.facts, each) for each in plan.blocked)
    results = _by_tenant((each.action.facts, each) for each in outcome.results)
    held = {
        each.object.name: each
        for each in plan.blocked
        if each.object.kind == "Namespace" and each.reason == EngineReason.NEEDS_APPROVAL
    }
    writes = []
    for tenant in snapshot.tenants:
        whose = (tenant.namespace, tenant.name)
        of_it = Outcome(results=tuple(results.get(whose, ())))
        passed = _Pass(snapshot, tenant, blocked.get(whose, ()), of_it, held.get(tenant.own_namespace))
        policy = _policy_of(tenant, tree)
        if passed.has_lost_finalizer or tenant.is_paused:
            continue
        after = _status_of(passed, policy, now)
        if after != tenant.status:
            writes.append(StatusWrite(object=tenant.ref, status=wire(after)))
    return writes


def _policy_of(tenant: Tenant, tree: Mapping[str, EffectivePolicy]) -> EffectivePolicy:
    errors = name_faults(tenant.namespace, tenant.name)
    if not errors:
        return tree[tenant.own_namespace]
    return EffectivePolicy(tenant=tenant, faults=(BadTenantName(object=tenant.ref, errors=errors),))


def wire(status: TenantStatus) -> Object:
    found: Object = {
        "observedGeneration": status.observed_generation,
        "conditions": to_wire(status.conditions),
    }
    if status.namespace:
        found["namespace"] = status.namespace
    if status.default_affinity_class:
        found["defaultAffinityClass"] = status.default_affinity_class
    if status.allowed_affinity_classes is not None:
        found["allowedAffinityClasses"] = list(status.allowed_affinity_classes)
    return found


def _by_tenant(found: Iterable[tuple[Message, _T]]) -> Mapping[_Whose, list[_T]]:
    by: dict[_Whose, list[_T]] = {}
    for message, each in found:
        if isinstance(message, ObjectMessage):
            by.setdefault((message.object.namespace, message.object.name), []).append(each)
    return by


# one tenant


@dataclass(frozen=True)
class _Pass:
    """The outcome of one tenant."""

    snapshot: TenantsSnapshot
    tenant: Tenant
    blocked: Sequence[Blocked]
    outcome: Outcome
    held: Blocked | None = None
    """The deletion of its Namespace, which waits for an approval."""

    @property
    def has_lost_finalizer(self) -> bool:
        """Return whether our finalizer is gone from a tenant being deleted."""
        if not self.tenant.is_deleting:
            return False
        return names.TENANT_FINALIZER not in self.tenant.metadata.finalizers or self._has_done(Reason.FINALIZER_REMOVED)

    @property
    def has_namespace(self) -> bool:
        """Return whether its Namespace exists and belongs to it after this reconcile."""
        live = self.snapshot.namespaces.get(self.tenant.own_namespace)
        is_there = live is not None and belongs_to(live, self.tenant) and not is_terminating(live)
        return (is_there and not self._has_done(Reason.NAMESPACE_DELETED)) or self._has_done(Reason.NAMESPACE_APPLIED)

    def refusal(self, reasons: frozenset[Reason], *, others: bool = False) -> Blocked | None:
        return next((each for each in self.blocked if (each.reason in reasons) is not others), None)

    def _has_done(self, reason: Reason) -> bool:
        return any(each.action.reason == reason and each.result is Result.DONE for each in self.outcome.results)


def _status_of(passed: _Pass, policy: EffectivePolicy, now: datetime) -> TenantStatus:
    tenant = passed.tenant
    parts = (_namespace_ready(passed), _classes_valid(tenant, policy))
    generation = tenant.metadata.generation
    return TenantStatus(
        observed_generation=generation,
        namespace=tenant.own_namespace if passed.has_namespace else "",
        default_affinity_class=policy.usable_default,
        allowed_affinity_classes=policy.allowed,
        conditions=set_conditions(tenant.status.conditions, (_ready(passed, parts), *parts), generation, now),
    )


def _namespace_ready(passed: _Pass) -> Condition:
    kind, ref = ConditionType.NAMESPACE_READY, passed.tenant.ref
    refused = passed.refusal(_CLASSES | _DELETION_REFUSALS, others=True)
    if refused is not None:
        return make_condition(kind, FALSE, refused.facts)
    if passed.has_namespace:
        return make_condition(kind, TRUE, TenantReady(object=ref))
    waiting = Deleting(object=ref) if passed.tenant.is_deleting else NamespacePending(object=ref)
    return failure_condition(kind, passed.outcome) or make_condition(kind, FALSE, waiting)


def _classes_valid(tenant: Tenant, policy: EffectivePolicy) -> Condition:
    kind = ConditionType.CLASSES_VALID
    for wrong in policy.faults:
        return make_condition(kind, FALSE, wrong)
    return make_condition(kind, TRUE, ClassesValid(object=tenant.ref, has_classes=bool(named_classes(tenant))))


def _held(passed: _Pass) -> Condition | None:
    """Return the condition of a Namespace deletion that waits for approval."""
    needs_approval = None if passed.held is None else passed.held.facts
    if not isinstance(needs_approval, NeedsApproval):
        return None
    left = passed.snapshot.left.get(passed.tenant.own_namespace, {})
    message = NamespaceHeld(object=passed.tenant.ref, left=left, id=needs_approval.id)
    return make_condition(ConditionType.READY, FALSE, message)


def _ready(passed: _Pass, parts: Sequence[Condition]) -> Condition:
    kind = ConditionType.READY
    if failed := failure_condition(kind, passed.outcome):
        return failed
    if held := _held(passed):
        return held
    if passed.tenant.is_deleting:
        refused = passed.refusal(frozenset(), others=True)
        return make_condition(kind, FALSE, refused.facts if refused else Deleting(object=passed.tenant.ref))
    wrong = next((each for each in parts if each.status == FALSE), parts[0])
    return msgspec.structs.replace(wrong, type=kind)
