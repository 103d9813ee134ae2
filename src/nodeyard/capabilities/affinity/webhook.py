"""Declare the webhooks, and the ValidatingAdmissionPolicies that work even while no webhook responds.

Pods of tenants are denied while no webhook responds: a pod that escaped its class would run until somebody noticed.
Other pods are then admitted. System namespaces are excluded, so that the cluster and the operator can always start.
Updates of pods are never denied. The other webhooks give early feedback: the plan reports the same faults if a webhook
is off.

Three policies are optional: one holds labelled pods to their class, two keep others from writing the class labels and
records. One always comes with the operator's RBAC: it confines the operator to CRDs that it declares.

The first is a safety net below the webhooks. It reads the class label that the mutating webhook sets on a pod, and
compares its nodeSelector with that class. It does not cover pods without the label, since it cannot follow owners,
missing classes, or the node affinity of a class. Of a pod's node affinity it understands only terms that all name the
one value. A pod that states the same otherwise is denied by the policy, though the webhook would admit it.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reviews import applications, definitions, tenants
from nodeyard.capabilities.affinity.reviews.classes import review_class
from nodeyard.capabilities.affinity.reviews.pod_webhooks import NOT_EXEMPT, TIMEOUT_SECONDS, created_pods
from nodeyard.capabilities.affinity.reviews.pods import review_lineage, review_placement
from nodeyard.capabilities.affinity.reviews.workloads import review_workload
from nodeyard.capabilities.affinity.types import Enforcement
from nodeyard.kube.json import Object
from nodeyard.runtime.webhooks import MatchCondition, Operation, Webhook, WebhookRule

# webhooks


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


# admission policies


NET: Final = "nodeyard-affinity-placement"
LABELS: Final = "nodeyard-affinity-release-labels"
RECORDS: Final = "nodeyard-affinity-records"
CONFINEMENT: Final = "nodeyard-affinity-definitions"
_API: Final = "admissionregistration.k8s.io/v1"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

_CLASS_LABEL: Final = f"object.metadata.labels['{names.AFFINITY_CLASS}']"
_IS_CLASS: Final = f"{_CLASS_LABEL} == params.metadata.name"
# The nodeSelector, or each required term, names the value.
_IS_SELECTED: Final = (
    "(k in variables.selector && variables.selector[k] == params.spec.nodeSelector[k])"
    " || (variables.terms.size() > 0 && variables.terms.all(t, has(t.matchExpressions) && t.matchExpressions.exists(e,"
    " e.key == k && e.operator == 'In' && e.values == [params.spec.nodeSelector[k]])))"
)
_IS_INSIDE: Final = f"!has(params.spec.nodeSelector) || params.spec.nodeSelector.all(k, {_IS_SELECTED})"


def policies(username: str) -> list[Object]:
    """Return policies and bindings; `username` is the operator's, exempt from all but the first: it creates no pods."""
    return [*_placement_policy(), *_label_guard(username), *_record_guard(username)]


def _placement_policy() -> list[Object]:
    policy: Object = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NET},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND},
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ],
                # Only labelled pods can be denied, even if the classes cannot be read.
                "objectSelector": {"matchExpressions": [{"key": names.AFFINITY_CLASS, "operator": "Exists"}]},
            },
            "variables": [
                {"name": "selector", "expression": "object.spec.?nodeSelector.orValue({})"},
                {
                    "name": "terms",
                    "expression": f"object.spec.?affinity.?nodeAffinity.?{_REQUIRED}.?nodeSelectorTerms.orValue([])",
                },
                {"name": "enforcement", "expression": _enforcement()},
            ],
            "validations": [
                {
                    "expression": f"!({_IS_CLASS}) || variables.enforcement != '{Enforcement.DENY}' || {_IS_INSIDE}",
                    "messageExpression": _message(),
                    "message": "the pod's nodeSelector does not keep to the AffinityClass of its application",
                    "reason": "Forbidden",
                }
            ],
        },
    }
    return [policy, _binding()]


def _enforcement() -> str:
    """Return the enforcement of the class, weakened by the namespace if the class allows that."""
    own = f"params.spec.?enforcement.orValue('{Enforcement.DENY}')"
    wanted = f"namespaceObject.metadata.?labels['{names.ENFORCEMENT}'].orValue('')"
    weaker = f"['{Enforcement.WARN}', '{Enforcement.AUDIT}']"
    return f"params.spec.?allowNamespaceOverride.orValue(false) && {wanted} in {weaker} ? {wanted} : {own}"


def _message() -> str:
    named = "object.metadata.?namespace.orValue('') + '/' + object.metadata.?name.orValue('')"
    lacking = f"params.spec.nodeSelector.filter(k, !({_IS_SELECTED})).map(k, k + '=' + params.spec.nodeSelector[k])"
    return (
        f"'pod ' + {named} + ' belongs to application with AffinityClass \"' + params.metadata.name + "
        f"'\" but missing required nodeSelector ' + {lacking}.join(',')"
    )


def _binding() -> Object:
    exempt = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(names.EXEMPT_NAMESPACES)}
    system = {"key": names.SYSTEM_NAMESPACE, "operator": "NotIn", "values": [names.TRUE]}
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NET},
        "spec": {
            "policyName": NET,
            "validationActions": ["Deny"],
            "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
            "matchResources": {"namespaceSelector": {"matchExpressions": [exempt, system]}},
        },
    }


# guards


def _label_guard(username: str) -> list[Object]:
    """The right to write HelmReleases in a tenant does not include choosing the class."""
    rule = _rule(names.FLUX_GROUP, names.RELEASE_PLURAL, "CREATE", "UPDATE")
    remedy = "of a HelmRelease belongs to Nodeyard: set spec.affinityClass of the application"
    shown = (names.AFFINITY_CLASS, names.PREVIOUS_CLASS)
    validations = [_unchanged("labels", key, f"the label {key} {remedy}") for key in shown]
    return _guard(LABELS, rule, f"!(request.userInfo.username in ['{username}'])", validations)


def _record_guard(username: str) -> list[Object]:
    """Guard updates only: a record set on creation has no valid uid and does not count."""
    rule = _rule(names.APPS_GROUP, "*", "UPDATE")
    remedy = f"the annotation {names.CLASS_RECORD} belongs to Nodeyard: leave it as it is"
    validation = _unchanged("annotations", names.CLASS_RECORD, remedy)
    return _guard(RECORDS, rule, f"request.userInfo.username != '{username}'", [validation])


def confinement(username: str) -> list[Object]:
    """Confine the operator, `username`, to CRDs that ApplicationDefinitions declare.

    RBAC cannot express that, since users choose the names.
    """
    rule = _rule("apiextensions.k8s.io", "customresourcedefinitions", "CREATE", "UPDATE", "DELETE")
    ours = f".spec.group == '{names.APPS_GROUP}'"
    declared = f".metadata.?labels['{names.DECLARED_BY}'].hasValue()"
    holds = [
        f"request.operation == '{operation}' || ({obj}{ours} && {obj}{declared})"
        for operation, obj in (("DELETE", "object"), ("CREATE", "oldObject"))
    ]
    message = f"affinity writes only CRDs in {names.APPS_GROUP} with the label {names.DECLARED_BY}"
    validations = [{"expression": each, "message": message, "reason": "Forbidden"} for each in holds]
    return _guard(CONFINEMENT, rule, f"request.userInfo.username == '{username}'", validations)


def _rule(group: str, plural: str, *operations: str) -> Object:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": [plural]}


def _unchanged(where: str, key: str, message: str) -> Object:
    """Return a validation: the key is absent on creation and unchanged on update."""
    value = f".metadata.?{where}['{key}']"
    expression = f"request.operation == 'CREATE' ? !object{value}.hasValue() : object{value} == oldObject{value}"
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _guard(name: str, rule: Object, condition: str, validations: list[Object]) -> list[Object]:
    spec: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "by-whom", "expression": condition}],
        "validations": validations,
    }
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": bound},
    ]
