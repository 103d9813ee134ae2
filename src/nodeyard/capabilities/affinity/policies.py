"""An admission policy that holds stamped pods to their class inside the API server, also while no webhook answers.

It is optional, a net below the webhooks. It sees the stamp that the mutating webhook leaves on a pod and compares its
nodeSelector with the class of that name. What it cannot see: pods without a stamp, since it knows no owners; a class
that does not exist; node affinity of a class; and of a pod's node affinity only terms that all name the one value. A
pod that says the same in another way is refused by it, though the webhook would admit it.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.types import Enforcement
from nodeyard.kube.json import Object

NET: Final = "nodeyard-affinity-placement"
_API: Final = "admissionregistration.k8s.io/v1"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

_STAMP: Final = f"object.metadata.labels['{names.AFFINITY_CLASS}']"
_IS_MEANT: Final = f"{_STAMP} == params.metadata.name"
# Said by the nodeSelector, or by each of the required terms.
_IS_SAID: Final = (
    "(k in variables.selector && variables.selector[k] == params.spec.nodeSelector[k])"
    " || (variables.terms.size() > 0 && variables.terms.all(t, has(t.matchExpressions) && t.matchExpressions.exists(e,"
    " e.key == k && e.operator == 'In' && e.values == [params.spec.nodeSelector[k]])))"
)
_KEEPS_TO_IT: Final = f"!has(params.spec.nodeSelector) || params.spec.nodeSelector.all(k, {_IS_SAID})"


def policies(username: str) -> list[Object]:
    """Policy and binding. Nobody is left out, not even the operator, `username`: it makes no pods."""
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
                # Only what is stamped can be refused, whatever becomes of the classes.
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
                    "expression": f"!({_IS_MEANT}) || variables.enforcement != '{Enforcement.DENY}' || {_KEEPS_TO_IT}",
                    "messageExpression": _message(),
                    "message": "the pod's nodeSelector does not keep to the AffinityClass of its application",
                    "reason": "Forbidden",
                }
            ],
        },
    }
    return [policy, _binding()]


def _enforcement() -> str:
    """As the class has it, or weaker where it lets the namespace."""
    own = f"params.spec.?enforcement.orValue('{Enforcement.DENY}')"
    wanted = f"namespaceObject.metadata.?labels['{names.ENFORCEMENT}'].orValue('')"
    weaker = f"['{Enforcement.WARN}', '{Enforcement.AUDIT}']"
    return f"params.spec.?allowNamespaceOverride.orValue(false) && {wanted} in {weaker} ? {wanted} : {own}"


def _message() -> str:
    named = "object.metadata.?namespace.orValue('') + '/' + object.metadata.?name.orValue('')"
    lacking = f"params.spec.nodeSelector.filter(k, !({_IS_SAID})).map(k, k + '=' + params.spec.nodeSelector[k])"
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
