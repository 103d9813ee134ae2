"""What a Tenant says of itself: its namespace, the classes in effect, and what is wrong with either.

NamespaceReady    the Namespace is there and the tenant's, with the values that its applications are given
ClassesValid      every class that it names exists and is allowed; what is not is left out, and named here
Ready             both, and nothing of this pass failed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.inheritance import named_classes, standings
from nodeyard.capabilities.affinity.planning.namespaces import is_going, is_held
from nodeyard.capabilities.affinity.planning.naming import name_faults, tenant_facts, tenant_ref
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import Fault, Standing, TenantsSnapshot
from nodeyard.capabilities.affinity.statuses.verdicts import failure, said, with_all
from nodeyard.capabilities.affinity.types import ConditionType, Tenant, TenantStatus
from nodeyard.kube.conditions import FALSE, TRUE, to_wire
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Blocked, Plan
from nodeyard.runtime.capability import StatusWrite

_CLASSES: Final = frozenset({Reason.NOT_IN_PARENT, Reason.DEFAULT_NOT_ALLOWED, Reason.CLASS_MISSING})
_GOING: Final = frozenset({Reason.TENANT_IN_USE, Reason.UNWATCHED})
_Whose = tuple[str, str]
_T = TypeVar("_T", Blocked, ActionResult)


def status_tenants(snapshot: TenantsSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    if snapshot.is_served_elsewhere:
        return ()
    tree = standings(snapshot.tenants, snapshot.classes)
    blocked = _by_tenant((each.facts, each) for each in plan.blocked)
    results = _by_tenant((each.action.facts, each) for each in outcome.results)
    writes = []
    for tenant in snapshot.tenants:
        whose = (tenant.namespace, tenant.name)
        passed = _Pass(snapshot, tenant, blocked.get(whose, ()), Outcome(results=tuple(results.get(whose, ()))))
        standing = _standing(tenant, tree)
        if passed.is_let_go or tenant.is_paused:
            continue
        after = _status_of(passed, standing, now)
        if after != tenant.status:
            writes.append(StatusWrite(object=tenant_ref(tenant), status=wire(after)))
    return writes


def _standing(tenant: Tenant, tree: Mapping[str, Standing]) -> Standing:
    errors = name_faults(tenant.namespace, tenant.name)
    if not errors:
        return tree[tenant.own_namespace]
    return Standing(tenant=tenant, faults=(Fault(Reason.BAD_NAME, tenant_facts(tenant, errors=errors)),))


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


def _by_tenant(found: Iterable[tuple[Object, _T]]) -> Mapping[_Whose, list[_T]]:
    by: dict[_Whose, list[_T]] = {}
    for facts, each in found:
        by.setdefault((facts.get("namespace", ""), facts.get("name", "")), []).append(each)
    return by


# one tenant


@dataclass(frozen=True)
class _Pass:
    """What became of one tenant."""

    snapshot: TenantsSnapshot
    tenant: Tenant
    blocked: Sequence[Blocked]
    outcome: Outcome

    @property
    def is_let_go(self) -> bool:
        """Whether it is gone, or will be as soon as others let it go too."""
        if not self.tenant.is_deleting:
            return False
        return names.TENANT_FINALIZER not in self.tenant.metadata.finalizers or self._has_done(Reason.FINALIZER_REMOVED)

    @property
    def has_namespace(self) -> bool:
        """Whether its Namespace is there and its own, as this pass leaves it."""
        live = self.snapshot.namespaces.get(self.tenant.own_namespace)
        is_there = live is not None and is_held(live, self.tenant) and not is_going(live)
        return (is_there and not self._has_done(Reason.NAMESPACE_DELETED)) or self._has_done(Reason.NAMESPACE_APPLIED)

    def refusal(self, reasons: frozenset[Reason], *, others: bool = False) -> Blocked | None:
        return next((each for each in self.blocked if (each.reason in reasons) is not others), None)

    def _has_done(self, reason: Reason) -> bool:
        return any(each.action.reason == reason and each.result is Result.DONE for each in self.outcome.results)


def _status_of(passed: _Pass, standing: Standing, now: datetime) -> TenantStatus:
    tenant = passed.tenant
    parts = (_namespace_ready(passed), _classes_valid(tenant, standing))
    generation = tenant.metadata.generation
    return TenantStatus(
        observed_generation=generation,
        namespace=tenant.own_namespace if passed.has_namespace else "",
        default_affinity_class=standing.usable_default,
        allowed_affinity_classes=standing.allowed,
        conditions=with_all(tenant.status.conditions, (_ready(passed, parts), *parts), generation, now),
    )


def _namespace_ready(passed: _Pass) -> Condition:
    kind, facts = ConditionType.NAMESPACE_READY, tenant_facts(passed.tenant)
    refused = passed.refusal(_CLASSES | _GOING, others=True)
    if refused is not None:
        return said(kind, FALSE, refused.reason, refused.facts)
    if passed.has_namespace:
        return said(kind, TRUE, Reason.TENANT_READY, facts)
    waiting = Reason.DELETING if passed.tenant.is_deleting else Reason.NAMESPACE_PENDING
    return failure(kind, passed.outcome) or said(kind, FALSE, waiting, facts)


def _classes_valid(tenant: Tenant, standing: Standing) -> Condition:
    kind = ConditionType.CLASSES_VALID
    for wrong in standing.faults:
        return said(kind, FALSE, wrong.reason, wrong.facts)
    return said(kind, TRUE, Reason.CLASSES_VALID, tenant_facts(tenant, named=bool(named_classes(tenant))))


def _ready(passed: _Pass, parts: Sequence[Condition]) -> Condition:
    kind = ConditionType.READY
    if failed := failure(kind, passed.outcome):
        return failed
    if passed.tenant.is_deleting:
        refused = passed.refusal(frozenset(), others=True)
        facts = tenant_facts(passed.tenant)
        return said(kind, FALSE, *((refused.reason, refused.facts) if refused else (Reason.DELETING, facts)))
    wrong = next((each for each in parts if each.status == FALSE), parts[0])
    return msgspec.structs.replace(wrong, type=kind)
