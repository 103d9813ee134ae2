"""The rights an operator process needs, made from what its capabilities declare; nothing is granted by hand."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime.capability import Capability, Rule

_API = "rbac.authorization.k8s.io/v1"
_ENGINE = (
    Rule("events.k8s.io", ("events",), ("create", "patch")),
    Rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "watch")),
)
"""What the loop itself needs, whatever it runs."""
_ELECTION = Rule("coordination.k8s.io", ("leases",), ("get", "create", "update", "patch"))
_INSTALL = Rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("create",))


def service_account(capability: Capability) -> str:
    """Each capability can run as a Deployment of its own, under an account of its own."""
    return f"nodeyard-{capability.name}"


def username(capability: Capability) -> str:
    return f"system:serviceaccount:{NAMESPACE}:{service_account(capability)}"


def rules(capability: Capability, *, installs_crds: bool = False) -> list[Object]:
    """Cluster-wide rights of one capability."""
    declared = (*capability.rbac, *_ENGINE, *((_INSTALL,) if installs_crds else ()))
    return [render(rule) for rule in declared]


def render(rule: Rule) -> Object:
    shown: Object = {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
    return {**shown, "resourceNames": list(rule.names)} if rule.names else shown


def manifests(capability: Capability) -> list[Object]:
    """Service account, roles and bindings."""
    name = service_account(capability)
    cluster = {"name": name, "labels": {"app.kubernetes.io/name": "nodeyard"}}
    local = {**cluster, "namespace": NAMESPACE}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": local},
        {"apiVersion": _API, "kind": "ClusterRole", "metadata": cluster, "rules": rules(capability)},
        _binding("ClusterRole", cluster, name, subjects),
        {"apiVersion": _API, "kind": "Role", "metadata": local, "rules": [render(_ELECTION)]},
        _binding("Role", local, name, subjects),
    ]


def viewer_and_editor(capability: Capability) -> list[Object]:
    """Roles for people, which join the cluster's own view and edit."""
    kinds = [(kind.resource.group, kind.resource.plural) for kind in capability.kinds]
    if not kinds:
        return []
    return [
        _people(capability, "view", ("get", "list", "watch"), kinds),
        _people(capability, "edit", ("create", "update", "patch", "delete", "deletecollection"), kinds),
    ]


def _people(capability: Capability, what: str, verbs: tuple[str, ...], kinds: Iterable[tuple[str, str]]) -> Object:
    label = f"rbac.authorization.k8s.io/aggregate-to-{what}"
    granted = [render(Rule(group, (plural,), verbs)) for group, plural in kinds]
    return {
        "apiVersion": _API,
        "kind": "ClusterRole",
        "metadata": {"name": f"nodeyard-{capability.name}-{what}", "labels": {label: "true"}},
        "rules": granted,
    }


def _binding(kind: str, metadata: Object, role: str, subjects: list[Object]) -> Object:
    return {
        "apiVersion": _API,
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": subjects,
    }
