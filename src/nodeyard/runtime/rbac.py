"""RBAC of an operator process, generated from the rules that its capabilities declare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.runtime.capability import Capability, Kind, Rule
from nodeyard.runtime.leader.election import lease_name
from nodeyard.runtime.webhooks import configuration_name

_API = "rbac.authorization.k8s.io/v1"
_LABELS = {"app.kubernetes.io/name": "nodeyard"}
_ENGINE = (Rule("events.k8s.io", ("events",), ("create", "patch")),)
"""Rules of the engine itself, for every capability."""
_CONFIGURATIONS = {"validatingwebhookconfigurations": False, "mutatingwebhookconfigurations": True}
"""Webhook configuration resources, and whether they are for mutating webhooks."""
_SECRETS = (
    Rule("", ("secrets",), ("get", "update"), (WEBHOOK_CERTIFICATES,)),
    Rule("", ("secrets",), ("create",)),
)
"""Rules for the Secret with the webhook certificates."""
READER, APPROVER, GATHERER = "reader", "approver", "gatherer"
_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete", "deletecollection")
_INSTALL = (
    Rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "create")),
    Rule("apiregistration.k8s.io", ("apiservices",), ("get",)),
)


def service_account(capability: Capability) -> str:
    """Return the service account of a capability, which can run as its own Deployment."""
    return f"nodeyard-{capability.name}"


def registering_role(capability: Capability) -> str:
    """Return the ClusterRole for webhook registration. It owns the webhook configurations, and is deleted where
    webhooks are disabled."""
    return f"{service_account(capability)}-webhooks"


def username(account: str) -> str:
    """Return the username of a service account in the operator's namespace."""
    return f"system:serviceaccount:{NAMESPACE}:{account}"


def rules(capability: Capability, *, installs_crds: bool = False) -> list[Object]:
    """Return the cluster-wide rules of a capability."""
    declared = (*_own(capability), *_registration(capability), *(_INSTALL if installs_crds else ()))
    return _render_all(declared)


def _own(capability: Capability) -> tuple[Rule, ...]:
    return *(rule for rule in capability.rbac if not rule.namespace and not rule.grant), *_ENGINE


def grants(capability: Capability) -> dict[str, list[Object]]:
    """Return the rules for namespaces that an administrator chooses, by grant."""
    found: dict[str, list[Object]] = {}
    for rule in capability.rbac:
        if rule.grant:
            found.setdefault(rule.grant, []).append(render(rule))
    return found


def grant_role(capability: str, grant: str) -> str:
    """Return the ClusterRole that RoleBindings grant in those namespaces."""
    return f"nodeyard-{capability}-{grant}"


def grant_remedy(capability: str, grant: str, namespace: str) -> str:
    """Return the remedy for a right that is missing in a namespace."""
    return (
        f"add {namespace} to namespaceGrants.{capability}.{grant} in the values of the chart, or bind ClusterRole "
        f"{grant_role(capability, grant)} in namespace {namespace} to the operator's service account"
    )


def rules_elsewhere(capability: Capability) -> dict[str, list[Object]]:
    """Return the rules for single namespaces other than the operator's own, by namespace."""
    found: dict[str, list[Object]] = {}
    for rule in capability.rbac:
        if rule.namespace:
            found.setdefault(rule.namespace, []).append(render(rule))
    return found


def aggregation_label(capability: Capability) -> str:
    """Return the label with which ClusterRoles grant the capability rights on declared kinds (value "true")."""
    return f"rbac.nodeyard.dev/aggregate-to-{capability.name}"


def remedy(capability: Capability) -> str:
    """Return the remedy for a missing right on a declared kind."""
    if capability.dynamic is None:
        return f"add the right to ClusterRole {service_account(capability)}"
    return f'grant it, with list and watch, in a ClusterRole with the label {aggregation_label(capability)}: "true"'


def local_rules(capability: Capability) -> list[Object]:
    """Return the rules for the operator's own namespace."""
    return [render(rule) for rule in (*_election(capability), *(_SECRETS if capability.admission.webhooks else ()))]


def _election(capability: Capability) -> tuple[Rule, ...]:
    """Return the rules for Leases: only its own Lease, except for create, which RBAC cannot limit by name. If keys are
    sharded: all Leases of the namespace, one per key and replica, which are deleted with them."""
    group, leases = "coordination.k8s.io", ("leases",)
    if capability.is_sharded:
        return (Rule(group, leases, ("get", "list", "create", "update", "delete")),)
    return Rule(group, leases, ("get", "update"), (lease_name(capability.name),)), Rule(group, leases, ("create",))


def _registration(capability: Capability) -> tuple[Rule, ...]:
    """Return the rules for the capability's own webhook configurations. RBAC checks an apply that creates by name too.
    For the kind without webhooks of its own, they only allow removing what an earlier version registered.

    The role that grants these rules owns the configurations, so that they are deleted with it and nobody restores them.
    """
    if not capability.admission.webhooks:
        return ()
    group, name = "admissionregistration.k8s.io", configuration_name(capability.name)
    used = {webhook.mutates for webhook in capability.admission.webhooks}
    return (
        Rule(group, tuple(_CONFIGURATIONS), ("get", "patch"), (name,)),
        Rule(group, tuple(each for each, mutates in _CONFIGURATIONS.items() if mutates in used), ("create",), (name,)),
        Rule("rbac.authorization.k8s.io", ("clusterroles",), ("get",), (registering_role(capability),)),
    )


def _render_all(declared: Iterable[Rule]) -> list[Object]:
    return [render(rule) for rule in declared]


def render(rule: Rule) -> Object:
    shown: Object = {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
    return {**shown, "resourceNames": list(rule.names)} if rule.names else shown


def manifests(capability: Capability) -> list[Object]:
    """Return the service account, roles and bindings."""
    account = service_account(capability)
    metadata = {"name": account, "labels": _LABELS, "namespace": NAMESPACE}
    granted = [*roles(capability, account), *registering_roles(capability, account)]
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, *granted]


def roles(capability: Capability, account: str) -> list[Object]:
    """Return the roles, their bindings to a service account (the capability's own, or that of several), and the
    policies that narrow what they grant.

    The role for webhook registration is separate (`registering_roles`).
    """
    name = service_account(capability)
    cluster = {"name": name, "labels": _LABELS}
    local = {**cluster, "namespace": NAMESPACE}
    subjects = _subjects(account)
    return [
        {"apiVersion": _API, "kind": "ClusterRole", "metadata": cluster, "rules": _render_all(_own(capability))},
        _binding("ClusterRole", cluster, name, subjects),
        {"apiVersion": _API, "kind": "Role", "metadata": local, "rules": local_rules(capability)},
        _binding("Role", local, name, subjects),
        *_namespace_roles(capability, cluster, subjects),
        *_grant_roles(capability),
        *_declared_kind_roles(capability, cluster, subjects),
        *capability.admission.confinement(username(account)),
    ]


def registering_roles(capability: Capability, account: str) -> list[Object]:
    """Return the role for webhook registration and its binding; empty without webhooks."""
    if not capability.admission.webhooks:
        return []
    name = registering_role(capability)
    metadata: Object = {"name": name, "labels": _LABELS}
    granted = _render_all(_registration(capability))
    return [
        {"apiVersion": _API, "kind": "ClusterRole", "metadata": metadata, "rules": granted},
        _binding("ClusterRole", metadata, name, _subjects(account)),
    ]


def _namespace_roles(capability: Capability, metadata: Object, subjects: list[Object]) -> list[Object]:
    found: list[Object] = []
    for namespace, granted in sorted(rules_elsewhere(capability).items()):
        local = {**metadata, "namespace": namespace}
        found.append({"apiVersion": _API, "kind": "Role", "metadata": local, "rules": granted})
        found.append(_binding("Role", local, metadata["name"], subjects))
    return found


def _grant_roles(capability: Capability) -> list[Object]:
    """Return the ClusterRoles of grants; the administrator binds them."""
    return [
        {
            "apiVersion": _API,
            "kind": "ClusterRole",
            "metadata": {"name": grant_role(capability.name, grant), "labels": _LABELS},
            "rules": granted,
        }
        for grant, granted in sorted(grants(capability).items())
    ]


def _declared_kind_roles(capability: Capability, metadata: Object, subjects: list[Object]) -> list[Object]:
    role = declared_role(capability)
    if role is None:
        return []
    name = role["metadata"]["name"]
    return [role, _binding("ClusterRole", {**metadata, "name": name}, name, subjects)]


def declared_role(capability: Capability) -> Object | None:
    """Return the aggregated ClusterRole for declared kinds, which are unknown beforehand; None if users cannot declare
    any.

    It has no `rules` field: applying it again keeps the aggregated rules.
    """
    if capability.dynamic is None or not capability.dynamic.aggregates_rights:
        return None
    return {
        "apiVersion": _API,
        "kind": "ClusterRole",
        "metadata": {"name": f"{service_account(capability)}-declared", "labels": _LABELS},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {aggregation_label(capability): "true"}}]},
    }


def viewer_and_editor(capability: Capability) -> list[Object]:
    """Return the roles that aggregate to the cluster's view and edit roles."""
    viewed = [_rule_for(kind, _READ) for kind in capability.kinds if not kind.holds_credentials]
    edited = [_rule_for(kind, (*_READ, *_WRITE) if kind.holds_credentials else _WRITE) for kind in capability.kinds]
    roles = {"view": viewed, "edit": edited}
    return [_aggregated_role(capability, what, granted) for what, granted in roles.items() if granted]


def people(capability: Capability) -> list[Object]:
    """Return all roles for users: view and edit, and the capability's parts of the CLI roles."""
    parts = {READER: _read(capability), APPROVER: _patch(capability)}
    commands = [_command_role(capability, what, granted) for what, granted in parts.items() if granted]
    return [*viewer_and_editor(capability), *commands]


def command_roles() -> list[Object]:
    """Return the ClusterRoles for users of `nodeyard plan`, `why`, `approve` and `gather`, aggregated from each
    capability's part."""
    return [
        _aggregating_role(READER, (READER,)),
        _aggregating_role(APPROVER, (READER, APPROVER)),
        _aggregating_role(GATHERER, (READER, GATHERER)),
        {
            "apiVersion": _API,
            "kind": "ClusterRole",
            "metadata": {"name": "nodeyard-gatherer-context", "labels": {_command_label(GATHERER): "true"}},
            "rules": _render_all(_GATHERED),
        },
    ]


_GATHERED: Final = (
    Rule("", ("namespaces", "nodes", "pods"), ("list",)),
    Rule("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), ("list",)),
    Rule("batch", ("cronjobs", "jobs"), ("list",)),
    Rule("policy", ("poddisruptionbudgets",), ("list",)),
    Rule("events.k8s.io", ("events",), ("list",)),
    Rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("get",)),
    # Bootstrap objects, which hold tokens, are not gathered.
    *(
        Rule(group, ("*",), ("list",))
        for group in ("cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io")
    ),
)
"""Further kinds in a support bundle, beside the inputs of plans."""


def _aggregating_role(what: str, parts: tuple[str, ...]) -> Object:
    return {
        "apiVersion": _API,
        "kind": "ClusterRole",
        "metadata": {"name": f"nodeyard-{what}", "labels": _LABELS},
        "aggregationRule": {
            "clusterRoleSelectors": [{"matchLabels": {_command_label(each): "true"}} for each in parts]
        },
    }


def _command_label(what: str) -> str:
    return f"rbac.nodeyard.dev/aggregate-to-{what}"


def _command_role(capability: Capability, what: str, granted: list[Object]) -> Object:
    return {
        "apiVersion": _API,
        "kind": "ClusterRole",
        "metadata": {"name": f"nodeyard-{capability.name}-{what}", "labels": {_command_label(what): "true"}},
        "rules": granted,
    }


def _read(capability: Capability) -> list[Object]:
    """Return the rules to read a plan's inputs, except Secrets and kinds with credentials; and Leases, which show
    running operators and held plans. Sharded capabilities have one Lease per key."""
    hidden = {(kind.resource.group, kind.resource.plural) for kind in capability.kinds if kind.holds_credentials}
    hidden.add(("", "secrets"))
    rules = [Rule("coordination.k8s.io", ("leases",), ("get", "list"))]
    for rule in capability.rbac:
        shown = tuple(each for each in rule.resources if (rule.group, each) not in hidden and "/" not in each)
        verbs = tuple(verb for verb in rule.verbs if verb in _READ)
        if shown and verbs:
            rules.append(Rule(rule.group, shown, verbs, rule.names))
    return _render_all(rules)


def _patch(capability: Capability) -> list[Object]:
    """Return the rules to approve: an approval is an annotation, and RBAC cannot grant less than patching the object.
    Kinds with credentials are excluded, since a patch returns the object."""
    return [_rule_for(kind, ("get", "patch")) for kind in capability.kinds if not kind.holds_credentials]


def _rule_for(kind: Kind, verbs: tuple[str, ...]) -> Object:
    return render(Rule(kind.resource.group, (kind.resource.plural,), verbs))


def _aggregated_role(capability: Capability, what: str, granted: list[Object]) -> Object:
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
