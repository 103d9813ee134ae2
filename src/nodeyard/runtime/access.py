"""What a capability's process may do: its own rules and those of the loop around it. The one source of RBAC.

The leader's Lease is named where Kubernetes can name it; `create` cannot be, since a name is not known before it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.kube.json import Object
from nodeyard.runtime.capability import Capability, Rule
from nodeyard.runtime.leader import lease_name

_EVENTS = Rule("events.k8s.io", ("events",), ("create", "patch"))
_NAMESPACE = Rule("", ("namespaces",), ("create",))
_INSTALL = Rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("create", "get"))


def rules(capability: Capability, *, installs: bool = False) -> Sequence[Rule]:
    """`installs`: with `--install-crds`."""
    election = (
        Rule("coordination.k8s.io", ("leases",), ("create",)),
        Rule("coordination.k8s.io", ("leases",), ("get", "update"), (lease_name(capability.name),)),
    )
    own = (*capability.rbac, *election, _EVENTS)
    return (*own, _NAMESPACE, _INSTALL) if installs else own


def policy_rules(rules: Sequence[Rule]) -> list[Object]:
    """As they stand in a ClusterRole."""
    return [
        {
            "apiGroups": [rule.group],
            "resources": list(rule.resources),
            "verbs": list(rule.verbs),
            **({"resourceNames": list(rule.names)} if rule.names else {}),
        }
        for rule in rules
    ]


def cluster_role(capability: Capability, *, installs: bool = False) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"nodeyard-{capability.name}"},
        "rules": policy_rules(rules(capability, installs=installs)),
    }
