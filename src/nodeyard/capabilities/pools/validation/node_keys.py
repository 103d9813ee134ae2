"""Checks the label and taint keys of pools, and knows which labels Cluster API syncs in place.

Three components reject keys without an API error: the kubelet does not start with a Kubernetes label that it may not
set, NodeRestriction forbids a node to register with one, and Cluster API overwrites its own. Machines of a pool with
such a key would never join. So the webhook denies it, and if the webhook is off the planner blocks the pool with the
same message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.types import PoolTaint, WorkerPool
from nodeyard.kube.fields import child, index, render_value
from nodeyard.kube.fields import key as entry
from nodeyard.kube.names import (
    ARCH,
    HOSTNAME,
    INSTANCE_TYPE,
    OS,
    REGION,
    ROLE_PREFIX,
    ZONE,
    label_value_faults,
    qualified_name_faults,
)
from nodeyard.kube.taints import EFFECTS

NODE_LABELS_MAX: Final = 1024
"""The kubelet gets the labels as one argument, and Cluster API limits an argument to this length."""
SYNCED_EXACTLY: Final = ("node-role.kubernetes.io",)
SYNCED_DOMAINS: Final = ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
"""Domains whose labels Cluster API syncs from Machines to nodes; SYNCED_DOMAINS includes subdomains."""

_KUBERNETES_DOMAINS = ("kubernetes.io", "k8s.io")
_KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBELET_KEYS = frozenset(
    {
        HOSTNAME,
        ZONE,
        REGION,
        INSTANCE_TYPE,
        OS,
        ARCH,
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
"""Labels that a kubelet may set on its node, in addition to its two domains."""
_CONTROL_PLANE_ROLES = (f"{ROLE_PREFIX}control-plane", f"{ROLE_PREFIX}master")
_LIFECYCLE_PREFIX = "node.kubernetes.io/"
_OUT_OF_SERVICE = f"{_LIFECYCLE_PREFIX}out-of-service"
_CLOUD_PREFIX = "node.cloudprovider.kubernetes.io/"


@dataclass(frozen=True)
class Fault:
    """One fault of a pool."""

    field: str
    value: str
    message: str
    """The fault and its remedy."""

    def __str__(self) -> str:
        return f"{self.field}: Invalid value: {render_value(self.value)}: {self.message}"


def faults(pool_id: str, pool: WorkerPool) -> list[Fault]:
    """Return all faults that would keep the pool's machines from joining."""
    path = entry("spec.nodes.workerPools", pool_id)
    return [
        *_label_faults(child(path, "labels"), pool.labels),
        *_length_faults(child(path, "labels"), pool_id, pool.labels),
        *_taint_faults(child(path, "taints"), pool.taints),
    ]


def is_synced_in_place(key: str) -> bool:
    """Return True if Cluster API syncs a change of this label to existing nodes."""
    domain = key.split("/", 1)[0]
    return domain in SYNCED_EXACTLY or _is_within(domain, SYNCED_DOMAINS)


# labels


def _label_faults(path: str, labels: Mapping[str, str]) -> Iterator[Fault]:
    for key, value in sorted(labels.items()):
        yield from (Fault(path, key, fault) for fault in qualified_name_faults(key))
        yield from (Fault(entry(path, key), value, fault) for fault in label_value_faults(value))
        if refusal := label_refusal(key):
            yield Fault(path, key, refusal)


def label_refusal(key: str) -> str:
    """Return why a pool cannot set a label with this key; empty if it can."""
    if key == names.POOL:
        return "Nodeyard sets this label to the pool's id: remove it"
    if key in _CONTROL_PLANE_ROLES:
        return "this label is reserved for control plane nodes: remove it"
    if is_synced_in_place(key):
        return ""
    domain = _domain(key)
    if _is_within(domain, (names.CAPI_GROUP,)):
        return (
            "Cluster API reserves this domain and would overwrite the label: use "
            f"{SYNCED_DOMAINS[1]}/ or your own domain"
        )
    if _is_within(domain, _KUBERNETES_DOMAINS) and not _is_allowed_for_kubelet(key):
        return (
            "the kubelet does not start with this label and NodeRestriction forbids it, so machines could not join: "
            f"use {_KUBELET_DOMAINS[1]}/, {SYNCED_EXACTLY[0]}/, {SYNCED_DOMAINS[0]}/ or your own domain"
        )
    return ""


def _is_allowed_for_kubelet(key: str) -> bool:
    """Return True if a kubelet may set this Kubernetes label on its own node."""
    return key in _KUBELET_KEYS or _is_within(_domain(key), _KUBELET_DOMAINS)


def _domain(key: str) -> str:
    return key.split("/", 1)[0] if "/" in key else ""


def _is_within(domain: str, domains: tuple[str, ...]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in domains)


def _length_faults(path: str, pool_id: str, labels: Mapping[str, str]) -> Iterator[Fault]:
    brought = [f",{key}={value}" for key, value in labels.items() if not is_synced_in_place(key)]
    length = len(f"{names.POOL}={pool_id}{''.join(brought)}".encode())
    if length > NODE_LABELS_MAX:
        yield Fault(
            path,
            f"{len(labels)} labels",
            f"as one argument of the kubelet they have {length} bytes, and at most {NODE_LABELS_MAX} fit: use "
            f"fewer or shorter ones, or {SYNCED_DOMAINS[1]}/ keys, which do not count",
        )


# taints


def _taint_faults(path: str, taints: tuple[PoolTaint, ...]) -> Iterator[Fault]:
    seen = Counter((taint.key, taint.effect) for taint in taints)
    for position, taint in enumerate(taints):
        at = index(path, position)
        yield from (Fault(child(at, "key"), taint.key, fault) for fault in qualified_name_faults(taint.key))
        yield from (Fault(child(at, "value"), taint.value, fault) for fault in label_value_faults(taint.value))
        if taint.effect not in EFFECTS:
            yield Fault(child(at, "effect"), taint.effect, f"use one of {', '.join(EFFECTS)}")
        if refusal := taint_refusal(taint.key):
            yield Fault(child(at, "key"), taint.key, refusal)
    for (taint_key, effect), count in seen.items():
        if count > 1:
            yield Fault(path, f"{taint_key}:{effect}", "duplicate key and effect: remove the others")


def taint_refusal(key: str) -> str:
    """Return why a pool cannot set a taint with this key; empty if it can."""
    if key in (names.UNINITIALIZED_TAINT, names.OUTDATED_TAINT):
        return "Cluster API sets and removes this taint: remove it"
    if key in _CONTROL_PLANE_ROLES:
        return "this taint is reserved for control plane nodes: remove it"
    if key.startswith(_LIFECYCLE_PREFIX) and key != _OUT_OF_SERVICE:
        return (
            f"Kubernetes sets and removes these taints based on node state: use your own domain, or {_OUT_OF_SERVICE}"
        )
    if key.startswith(_CLOUD_PREFIX):
        return "the cloud provider sets and removes these taints: use your own domain"
    return ""
