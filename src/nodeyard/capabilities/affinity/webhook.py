"""Which requests are looked at before they are stored.

Pods of tenants are refused while nobody answers: one that escaped its class would run there until somebody noticed.
Everywhere else a pod that cannot be checked is let in, and in namespaces of the system nothing is looked at, so that
the cluster, and what answers here, can always start. Updates of pods are never refused.

Everything else is said for quick answers: the plan says the same where a webhook is off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reviews import applications, definitions, tenants
from nodeyard.capabilities.affinity.reviews.classes import review_class
from nodeyard.capabilities.affinity.reviews.pods import review_lineage, review_placement
from nodeyard.capabilities.affinity.reviews.workloads import review_workload
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE_NAME
from nodeyard.runtime.webhooks import Intercepts, MatchCondition, Operation, Webhook

_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")
TIMEOUT_SECONDS: Final = 3

NOT_EXEMPT: Final[Object] = {
    "matchExpressions": [
        {"key": names.SYSTEM_NAMESPACE, "operator": "NotIn", "values": [names.TRUE]},
        {"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(names.EXEMPT_NAMESPACES)},
    ]
}
_IS_TENANT: Final = f"request.namespace.startsWith('{names.TENANT_PREFIX}')"
_TENANTS: Final = MatchCondition("of-a-tenant", _IS_TENANT)
_OTHERS: Final = MatchCondition("of-no-tenant", f"!{_IS_TENANT}")
_RELABELLED: Final = MatchCondition(
    "labels-or-owners-change",
    "object.metadata.?labels != oldObject.metadata.?labels"
    " || object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences",
)


def _created_pods(webhook: Webhook) -> tuple[Webhook, Webhook]:
    """The same twice: for tenants, where it has to be answered, and for the others."""
    webhook = replace(
        webhook,
        rules=(Intercepts("", ("pods",), operations=("CREATE",), scope="Namespaced"),),
        namespace_selector=NOT_EXEMPT,
        timeout_seconds=TIMEOUT_SECONDS,
        sees_own_writes=True,
    )
    name = f"{webhook.name}-tenants"
    return (
        replace(webhook, name=name, failure_policy="Fail", match_conditions=(_TENANTS,)),
        replace(webhook, failure_policy="Ignore", match_conditions=(_OTHERS,)),
    )


WEBHOOKS: Final[tuple[Webhook, ...]] = (
    *_created_pods(Webhook("lineage", rules=(), review=review_lineage, mutates=True, reinvocation="IfNeeded")),
    Webhook(
        name="lineage-updates",
        rules=(Intercepts("", ("pods",), operations=("UPDATE",), scope="Namespaced"),),
        review=review_lineage,
        mutates=True,
        namespace_selector=NOT_EXEMPT,
        match_conditions=(_RELABELLED,),
        timeout_seconds=TIMEOUT_SECONDS,
    ),
    *_created_pods(Webhook(names.PLACEMENT, rules=(), review=review_placement)),
    Webhook(
        name="workloads",
        rules=(
            Intercepts("apps", ("deployments", "statefulsets", "daemonsets", "replicasets"), scope="Namespaced"),
            Intercepts("batch", ("jobs", "cronjobs"), scope="Namespaced"),
        ),
        review=review_workload,
        namespace_selector=NOT_EXEMPT,
        timeout_seconds=TIMEOUT_SECONDS,
    ),
    Webhook(
        name="classes",
        rules=(Intercepts(names.GROUP, (names.CLASS_PLURAL,), operations=_ALL, scope="Cluster"),),
        review=review_class,
    ),
    Webhook(
        name="definitions",
        rules=(Intercepts(names.GROUP, (names.DEFINITION_PLURAL,), operations=_ALL, scope="Cluster"),),
        review=definitions.review,
    ),
    Webhook(
        name="tenants",
        rules=(Intercepts(names.APPS_GROUP, (names.TENANT_PLURAL,), operations=_ALL, scope="Namespaced"),),
        review=tenants.review,
    ),
    Webhook(
        name="applications",
        rules=(Intercepts(names.APPS_GROUP, ("*",), scope="Namespaced"),),
        review=applications.review,
        match_conditions=(MatchCondition("no-tenant", f"request.resource.resource != '{names.TENANT_PLURAL}'"),),
    ),
)
"""What is said about each kind before it is stored. A review is pure, and decides from the request and the cache."""
