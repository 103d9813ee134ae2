"""Declare the webhooks.

Pods of tenants are denied while no webhook responds: a pod that escaped its class would run until somebody noticed.
Other pods are then admitted. System namespaces are excluded, so that the cluster and the operator can always start.
Updates of pods are never denied.

The other webhooks give early feedback: the plan reports the same faults if a webhook is off.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reviews import applications, definitions, tenants
from nodeyard.capabilities.affinity.reviews.classes import review_class
from nodeyard.capabilities.affinity.reviews.pod_webhooks import NOT_EXEMPT, TIMEOUT_SECONDS, created_pods
from nodeyard.capabilities.affinity.reviews.pods import review_lineage, review_placement
from nodeyard.capabilities.affinity.reviews.workloads import review_workload
from nodeyard.runtime.webhooks import MatchCondition, Operation, Webhook, WebhookRule

_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")
_RELABELLED: Final = MatchCondition(
    "labels-or-owners-change",
    "object.metadata.?labels != oldObject.metadata.?labels"
    " || object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences",
)
_RECORD: Final = f".metadata.?annotations['{names.CLASS_RECORD}']"
_RECORD_CHANGES: Final = f"object{_RECORD} != oldObject{_RECORD}"


WEBHOOKS: Final[tuple[Webhook, ...]] = (
    *created_pods(Webhook("lineage", rules=(), review=review_lineage, mutates=True, reinvocation="IfNeeded")),
    Webhook(
        name="lineage-updates",
        rules=(WebhookRule("", ("pods",), operations=("UPDATE",), scope="Namespaced"),),
        review=review_lineage,
        mutates=True,
        namespace_selector=NOT_EXEMPT,
        match_conditions=(_RELABELLED,),
        timeout_seconds=TIMEOUT_SECONDS,
    ),
    *created_pods(Webhook(names.PLACEMENT, rules=(), review=review_placement)),
    Webhook(
        name="workloads",
        rules=(
            WebhookRule("apps", ("deployments", "statefulsets", "daemonsets", "replicasets"), scope="Namespaced"),
            WebhookRule("batch", ("jobs", "cronjobs"), scope="Namespaced"),
        ),
        review=review_workload,
        namespace_selector=NOT_EXEMPT,
        timeout_seconds=TIMEOUT_SECONDS,
    ),
    Webhook(
        name="classes",
        rules=(WebhookRule(names.GROUP, (names.CLASS_PLURAL,), operations=_ALL, scope="Cluster"),),
        review=review_class,
    ),
    Webhook(
        name="definitions",
        rules=(WebhookRule(names.GROUP, (names.DEFINITION_PLURAL,), operations=_ALL, scope="Cluster"),),
        review=definitions.review,
    ),
    Webhook(
        name="tenants",
        rules=(WebhookRule(names.APPS_GROUP, (names.TENANT_PLURAL,), operations=_ALL, scope="Namespaced"),),
        review=tenants.review,
    ),
    Webhook(
        name="records",
        rules=(WebhookRule(names.APPS_GROUP, ("*",), operations=("UPDATE",), scope="Namespaced"),),
        review=applications.review_record,
        mutates=True,
        # Called only if the record changes, so failing closed affects no other update.
        failure_policy="Fail",
        match_conditions=(MatchCondition("record-changes", _RECORD_CHANGES),),
    ),
    Webhook(
        name="applications",
        rules=(WebhookRule(names.APPS_GROUP, ("*",), scope="Namespaced"),),
        review=applications.review,
        match_conditions=(MatchCondition("no-tenant", f"request.resource.resource != '{names.TENANT_PLURAL}'"),),
    ),
)
"""Reviews are pure: they decide from the request and the caches."""
