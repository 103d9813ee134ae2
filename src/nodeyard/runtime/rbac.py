"""The rights an operator process needs, made from what its capabilities declare; nothing is granted by hand."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.runtime.capability import Capability, Kind, Rule
from nodeyard.runtime.leader import lease_name
from nodeyard.runtime.webhooks import configuration_name

_API = "rbac.authorization.k8s.io/v1"
_LABELS = {"app.kubernetes.io/name": "nodeyard"}
_ENGINE = (Rule("events.k8s.io", ("events",), ("create", "patch")),)
"""What the loop itself needs, whatever it runs."""
_CONFIGURATIONS = {"validatingwebhookconfigurations": False, "mutatingwebhookconfigurations": True}
"""Of webhooks, by whether those mutate."""
_SECRETS = (
    Rule("", ("secrets",), ("get", "update"), (WEBHOOK_CERTIFICATES,)),
    Rule("", ("secrets",), ("create",)),
)
"""Of the certificates that webhooks are served with."""
_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete", "deletecollection")
_INSTALL = (
    Rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "create")),
    Rule("apiregistration.k8s.io", ("apiservices",), ("get",)),
)


def service_account(capability: Capability) -> str:
    """Each capability can run as a Deployment of its own, under an account of its own."""
    return f"nodeyard-{capability.name}"


def registering_role(capability: Capability) -> str:
    """Apart from its other rights: it owns what is registered, and goes where webhooks are switched off."""
    return f"{service_account(capability)}-webhooks"


def username(account: str) -> str:
    """As the API server calls a service account of our namespace."""
    return f"system:serviceaccount:{NAMESPACE}:{account}"


def rules(capability: Capability, *, installs_crds: bool = False) -> list[Object]:
    """Cluster-wide rights of one capability."""
    declared = (*_own(capability), *_registration(capability), *(_INSTALL if installs_crds else ()))
    return _rendered(declared)


def _own(capability: Capability) -> tuple[Rule, ...]:
    return *(rule for rule in capability.rbac if not rule.namespace), *_ENGINE


def rules_elsewhere(capability: Capability) -> dict[str, list[Object]]:
    """Rights in single namespaces other than the operator's own, by namespace."""
    found: dict[str, list[Object]] = {}
    for rule in capability.rbac:
        if rule.namespace:
            found.setdefault(rule.namespace, []).append(render(rule))
    return found


def aggregation_label(capability: Capability) -> str:
    """ClusterRoles that carry it, with the value "true", give the capability rights on kinds that users declare."""
    return f"rbac.nodeyard.dev/aggregate-to-{capability.name}"


def remedy(capability: Capability) -> str:
    """What to do about a right on such a kind that is missing, for people."""
    if not capability.has_declared:
        return f"give ClusterRole {service_account(capability)} the right"
    return f'give it, with list and watch, in a ClusterRole with the label {aggregation_label(capability)}: "true"'


def local_rules(capability: Capability) -> list[Object]:
    """Rights in the operator's own namespace."""
    return [render(rule) for rule in (*_election(capability), *(_SECRETS if capability.webhooks else ()))]


def _election(capability: Capability) -> tuple[Rule, ...]:
    """Of its own Lease alone, but that the name of what is created is not known to who judges it. Where replicas share
    the keys out, of all Leases in our namespace: one for each key and each replica, which go when those do."""
    group, leases = "coordination.k8s.io", ("leases",)
    if capability.is_shared:
        return (Rule(group, leases, ("get", "list", "create", "update", "delete")),)
    return Rule(group, leases, ("get", "update"), (lease_name(capability.name),)), Rule(group, leases, ("create",))


def _registration(capability: Capability) -> tuple[Rule, ...]:
    """Of its own webhook configurations alone: an apply that creates is judged by the name too. Of a kind that it has
    no webhooks of, only to take out what an earlier version put there.

    They are owned by the role that gives these rights, so that they go when it is deleted and nobody puts them back.
    """
    if not capability.webhooks:
        return ()
    group, name = "admissionregistration.k8s.io", configuration_name(capability.name)
    used = {webhook.mutates for webhook in capability.webhooks}
    return (
        Rule(group, tuple(_CONFIGURATIONS), ("get", "patch"), (name,)),
        Rule(group, tuple(each for each, mutates in _CONFIGURATIONS.items() if mutates in used), ("create",), (name,)),
        Rule("rbac.authorization.k8s.io", ("clusterroles",), ("get",), (registering_role(capability),)),
    )


def _rendered(declared: Iterable[Rule]) -> list[Object]:
    return [render(rule) for rule in declared]


def render(rule: Rule) -> Object:
    shown: Object = {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
    return {**shown, "resourceNames": list(rule.names)} if rule.names else shown


def manifests(capability: Capability) -> list[Object]:
    """Service account, roles and bindings."""
    account = service_account(capability)
    metadata = {"name": account, "labels": _LABELS, "namespace": NAMESPACE}
    granted = [*roles(capability, account), *registering_roles(capability, account)]
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, *granted]


def roles(capability: Capability, account: str) -> list[Object]:
    """Roles, and their bindings to an account of our namespace: the capability's own, or one that runs several.

    Without that by which webhooks are registered, below.
    """
    name = service_account(capability)
    cluster = {"name": name, "labels": _LABELS}
    local = {**cluster, "namespace": NAMESPACE}
    subjects = _subjects(account)
    return [
        {"apiVersion": _API, "kind": "ClusterRole", "metadata": cluster, "rules": _rendered(_own(capability))},
        _binding("ClusterRole", cluster, name, subjects),
        {"apiVersion": _API, "kind": "Role", "metadata": local, "rules": local_rules(capability)},
        _binding("Role", local, name, subjects),
        *_roles_elsewhere(capability, cluster, subjects),
        *_declared(capability, cluster, subjects),
    ]


def registering_roles(capability: Capability, account: str) -> list[Object]:
    """By which the capability's webhooks are registered, and its binding; none where it has no webhooks."""
    if not capability.webhooks:
        return []
    name = registering_role(capability)
    metadata: Object = {"name": name, "labels": _LABELS}
    granted = _rendered(_registration(capability))
    return [
        {"apiVersion": _API, "kind": "ClusterRole", "metadata": metadata, "rules": granted},
        _binding("ClusterRole", metadata, name, _subjects(account)),
    ]


def _roles_elsewhere(capability: Capability, metadata: Object, subjects: list[Object]) -> list[Object]:
    found: list[Object] = []
    for namespace, granted in sorted(rules_elsewhere(capability).items()):
        local = {**metadata, "namespace": namespace}
        found.append({"apiVersion": _API, "kind": "Role", "metadata": local, "rules": granted})
        found.append(_binding("Role", local, metadata["name"], subjects))
    return found


def _declared(capability: Capability, metadata: Object, subjects: list[Object]) -> list[Object]:
    role = declared_role(capability)
    if role is None:
        return []
    name = role["metadata"]["name"]
    return [role, _binding("ClusterRole", {**metadata, "name": name}, name, subjects)]


def declared_role(capability: Capability) -> Object | None:
    """A role that gathers the rights on kinds that users declare, which nobody can know beforehand; None where they
    cannot declare any.

    It has no rules of its own, and does not say so: whoever applies it again leaves those that were gathered.
    """
    if not capability.has_declared:
        return None
    return {
        "apiVersion": _API,
        "kind": "ClusterRole",
        "metadata": {"name": f"{service_account(capability)}-declared", "labels": _LABELS},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {aggregation_label(capability): "true"}}]},
    }


def viewer_and_editor(capability: Capability) -> list[Object]:
    """Roles for people, which join the cluster's own view and edit; who edits may view."""
    viewed = [_on(kind, _READ) for kind in capability.kinds if not kind.holds_credentials]
    edited = [_on(kind, (*_READ, *_WRITE) if kind.holds_credentials else _WRITE) for kind in capability.kinds]
    roles = {"view": viewed, "edit": edited}
    return [_people(capability, what, granted) for what, granted in roles.items() if granted]


def _on(kind: Kind, verbs: tuple[str, ...]) -> Object:
    return render(Rule(kind.resource.group, (kind.resource.plural,), verbs))


def _people(capability: Capability, what: str, granted: list[Object]) -> Object:
    label = f"rbac.authorization.k8s.io/aggregate-to-{what}"
    return {
        "apiVersion": _API,
        "kind": "ClusterRole",
        "metadata": {"name": f"nodeyard-{capability.name}-{what}", "labels": {label: "true"}},
        "rules": granted,
    }


def _subjects(account: str) -> list[Object]:
    return [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]


def _binding(kind: str, metadata: Object, role: str, subjects: list[Object]) -> Object:
    return {
        "apiVersion": _API,
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": subjects,
    }
