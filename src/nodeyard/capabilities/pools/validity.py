"""Which label and taint keys a pool may give its nodes, and which of them Cluster API changes in place.

Three parties refuse keys, and none of them says so at the API: the kubelet does not start with a label of Kubernetes
that is not its own to set, NodeRestriction forbids a node to register with one, and Cluster API overwrites its own. A
pool with such a key would be machines that never become nodes. So the webhook refuses it, and where the webhook is off
the pool is blocked with a condition that says the same.
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
"""The labels reach the kubelet as one argument, and Cluster API takes none longer than this."""
SYNCED_EXACTLY: Final = ("node-role.kubernetes.io",)
SYNCED_DOMAINS: Final = ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
"""Domains whose labels Cluster API keeps on nodes as they are on Machines; the latter with their subdomains."""

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
"""What a kubelet may say of itself, beside its two domains."""
_CONTROL_PLANE_ROLES = (f"{ROLE_PREFIX}control-plane", f"{ROLE_PREFIX}master")
_LIFECYCLE_PREFIX = "node.kubernetes.io/"
_OUT_OF_SERVICE = f"{_LIFECYCLE_PREFIX}out-of-service"
_CLOUD_PREFIX = "node.cloudprovider.kubernetes.io/"


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a pool."""

    field: str
    value: str
    message: str
    """What is wrong and what to do."""

    def __str__(self) -> str:
        return f"{self.field}: Invalid value: {render_value(self.value)}: {self.message}"


def faults(pool_id: str, pool: WorkerPool) -> list[Fault]:
    """Everything that would keep the pool's machines from becoming nodes; empty where nothing does."""
    path = entry("spec.nodes.workerPools", pool_id)
    return [
        *_label_faults(child(path, "labels"), pool.labels),
        *_length_faults(child(path, "labels"), pool_id, pool.labels),
        *_taint_faults(child(path, "taints"), pool.taints),
    ]


def is_synced_in_place(key: str) -> bool:
    """Whether Cluster API brings a change of this label to nodes that exist."""
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
    """Why a pool cannot give its nodes a label with this key; empty where it can."""
    if key == names.POOL:
        return "this label is set by the operator, to the pool's id: leave it out"
    if key in _CONTROL_PLANE_ROLES:
        return "this label makes a node part of the control plane, and a pool has workers: leave it out"
    if is_synced_in_place(key):
        return ""
    domain = _domain(key)
    if _is_within(domain, (names.CAPI_GROUP,)):
        return (
            "Cluster API keeps this domain for itself and would overwrite the label: use "
            f"{SYNCED_DOMAINS[1]}/ or a domain of your own"
        )
    if _is_within(domain, _KUBERNETES_DOMAINS) and not _is_kubelets(key):
        return (
            "the kubelet does not start with this label and NodeRestriction forbids it, so no machine would ever join: "
            f"use {_KUBELET_DOMAINS[1]}/, {SYNCED_EXACTLY[0]}/, {SYNCED_DOMAINS[0]}/ or a domain of your own"
        )
    return ""


def _is_kubelets(key: str) -> bool:
    """Whether a kubelet may set this label of Kubernetes on its own node."""
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
            yield Fault(path, f"{taint_key}:{effect}", "a key and effect stand once: leave out the others")


def taint_refusal(key: str) -> str:
    """Why a pool cannot give its nodes a taint with this key; empty where it can."""
    if key in (names.UNINITIALIZED_TAINT, names.OUTDATED_TAINT):
        return "Cluster API sets and removes this taint itself: leave it out"
    if key in _CONTROL_PLANE_ROLES:
        return "this taint is of the control plane, and a pool has workers: leave it out"
    if key.startswith(_LIFECYCLE_PREFIX) and key != _OUT_OF_SERVICE:
        return (
            "Kubernetes sets and removes these taints by the state of the node: use a domain of your own, or "
            f"{_OUT_OF_SERVICE}"
        )
    if key.startswith(_CLOUD_PREFIX):
        return "the cloud provider sets and removes these taints itself: use a domain of your own"
    return ""
