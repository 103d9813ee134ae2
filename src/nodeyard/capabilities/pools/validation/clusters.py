"""Validation of LatticeCluster: control plane, pools, networks, and the length of derived names.

`CLUSTER` has the CEL rules of the CRD. `cluster_fault` repeats the essential ones for the planner, because a stored
object may have passed an older, laxer CRD.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.versions import parse_version
from nodeyard.capabilities.pools.types import PROVIDERS, Autoscaling, DeletionPolicy, LatticeCluster, Pivot
from nodeyard.capabilities.pools.validation.node_keys import NODE_LABELS_MAX, SYNCED_DOMAINS, SYNCED_EXACTLY
from nodeyard.capabilities.pools.validation.providers import PROVIDER, count, enum, object_name, taint_list, text
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, label_faults
from nodeyard.schema.rules import CONDITIONS, LABEL, checks, label_map, rule

_POOLS_MAX: Final = 100
_CLUSTER_NAME_MAX: Final = LABEL_VALUE_MAX - len(names.namespace(""))
_POOL_INFIX: Final = len(names.deployment("", ""))

_POOL_NAME = f"size(k) <= {LABEL_VALUE_MAX} && k.matches('^{LABEL}$')"
_TOO_LONG = f"size(self.metadata.name) + {_POOL_INFIX} + size(k) > {LABEL_VALUE_MAX}"
_IS_SYNCED = " || ".join(
    [
        *(f"k.split('/')[0] == '{domain}'" for domain in (*SYNCED_EXACTLY, *SYNCED_DOMAINS)),
        *(f"k.split('/')[0].endsWith('.{domain}')" for domain in SYNCED_DOMAINS),
    ]
)
_OWN_LABEL = len(f"{names.POOL}=")
_POOLS = checks(
    rule(
        f"self.all(k, {_POOL_NAME})",
        "invalid pool name: must be lowercase alphanumeric with hyphens",
        f'"invalid pool name \'" + self.filter(k, !({_POOL_NAME}))[0] + '
        '"\': must be lowercase alphanumeric with hyphens"',
    ),
    rule(
        f"self.all(p, !has(self[p].labels) || {_OWN_LABEL} + size(p) + self[p].labels.map(k, !({_IS_SYNCED}), "
        f"size(k) + size(self[p].labels[k]) + 2).sum() <= {NODE_LABELS_MAX})",
        "the labels of a pool are too long: the kubelet gets them as one argument, key=value,... with the label of the "
        f"pool itself, and at most {NODE_LABELS_MAX} characters fit",
    ),
    maxProperties=_POOLS_MAX,
)
_POOL = checks(
    rule(
        "!has(self.min) || !has(self.max) || self.min <= self.max",
        "min must not be greater than max",
    ),
    required=["replicas"],
)
_NODES: dict[str, Object] = {
    "spec.nodes": checks(
        rule(
            "!(has(self.workers) && has(self.workerPools))",
            "cannot specify both 'workers' and 'workerPools'",
        ),
        required=["controlPlane"],
    ),
    "spec.nodes.controlPlane": checks(
        rule("self >= 1", "control plane count must be at least 1"),
        rule("self < 1 || self % 2 == 1", "control plane count must be odd for HA"),
        format="int32",
    ),
    "spec.nodes.workers": count(),
    "spec.nodes.workerPools": _POOLS,
    "spec.nodes.workerPools.*": _POOL,
    "spec.nodes.workerPools.*.displayName": text(),
    "spec.nodes.workerPools.*.replicas": count(),
    "spec.nodes.workerPools.*.nodeClass": object_name(names.CLASS_KIND),
    **label_map("spec.nodes.workerPools.*.labels"),
    **taint_list("spec.nodes.workerPools.*.taints"),
    "spec.nodes.workerPools.*.min": count(),
    "spec.nodes.workerPools.*.max": count(),
}

_CIDR = checks(
    rule("isCIDR(self)", "must be a CIDR such as 10.0.0.0/16", '"\'" + self + "\' is not a CIDR"'),
    maxLength=43,
)
_NETWORKING: dict[str, Object] = {
    "spec.networking": checks(
        rule(
            "!has(self.podCIDRs) || !has(self.serviceCIDRs) || self.podCIDRs.all(p, !isCIDR(p) || "
            "self.serviceCIDRs.all(s, !isCIDR(s) || !(cidr(p).containsCIDR(s) || cidr(s).containsCIDR(p))))",
            "podCIDRs and serviceCIDRs must not overlap",
        )
    ),
    "spec.networking.podCIDRs": {"minItems": 1, "maxItems": 8},
    "spec.networking.podCIDRs[]": _CIDR,
    "spec.networking.serviceCIDRs": {"minItems": 1, "maxItems": 8},
    "spec.networking.serviceCIDRs[]": _CIDR,
    "spec.networking.serviceDomain": text(),
}

CLUSTER: Final[dict[str, Object]] = {
    "": checks(
        rule(
            f"size(self.metadata.name) <= {_CLUSTER_NAME_MAX} && self.metadata.name.matches('^{LABEL}$')",
            f"metadata.name must be lowercase alphanumeric with hyphens and at most {_CLUSTER_NAME_MAX} characters: "
            f"namespace {names.namespace('<name>')} is named after it",
        ),
        rule(
            f"!has(self.spec.nodes.workerPools) || !self.spec.nodes.workerPools.exists(k, {_TOO_LONG})",
            f"cluster and pool name together are too long: {names.deployment('<cluster>', '<pool>')} must have at "
            f"most {LABEL_VALUE_MAX} characters",
            "'pool name ' + self.spec.nodes.workerPools.filter(k, "
            f"{_TOO_LONG})[0] + ' is too long: {names.deployment('<cluster>', '<pool>')} must have at most "
            f"{LABEL_VALUE_MAX} characters'",
        ),
        rule(
            "!has(self.spec.nodes.workers) || size(self.metadata.name) + "
            f"{_POOL_INFIX + len(names.DEFAULT_POOL)} <= {LABEL_VALUE_MAX}",
            f"metadata.name is too long for 'workers': {names.deployment('<name>', names.DEFAULT_POOL)} must have at "
            f"most {LABEL_VALUE_MAX} characters",
        ),
        required=["spec"],
    ),
    "spec": checks(
        rule(
            f"!has(self.autoscaling) || self.autoscaling != '{Autoscaling.CLUSTER_AUTOSCALER}' "
            "|| !has(self.nodes.workerPools) || self.nodes.workerPools.all(k, "
            "has(self.nodes.workerPools[k].min) == has(self.nodes.workerPools[k].max))",
            "with autoscaling ClusterAutoscaler a pool has both min and max, or neither",
        ),
        required=["provider", "nodes"],
    ),
    "spec.poolDeletionPolicy": enum(*DeletionPolicy, default=DeletionPolicy.DRAIN),
    "spec.poolDrainTimeout": {**count(), "default": 300},
    "spec.pivot": enum(*Pivot, default=Pivot.SELF),
    "spec.autoscaling": enum(*Autoscaling, default=Autoscaling.NONE),
    "spec.environment": text(),
    "spec.region": text(),
    **PROVIDER,
    **_NODES,
    **_NETWORKING,
    "status.conditions": CONDITIONS,
}


def cluster_fault(lc: LatticeCluster) -> str:
    """Return the first fault of the whole cluster with its remedy; empty if it is valid."""
    nodes, provider = lc.spec.nodes, lc.spec.provider
    if not provider.config.name:
        return f"spec.provider.config: exactly one of {', '.join(PROVIDERS)} must be set"
    if provider.kubernetes.bootstrap != "kubeadm":
        return f"spec.provider.kubernetes.bootstrap: {provider.kubernetes.bootstrap} is not supported, use kubeadm"
    if parse_version(provider.kubernetes.version) is None:
        return f'spec.provider.kubernetes.version: "{provider.kubernetes.version}" is not a version such as 1.32.0'
    if nodes.control_plane < 1:
        return "control plane count must be at least 1"
    if nodes.control_plane % 2 == 0:
        return "control plane count must be odd for HA"
    if nodes.workers is not None and nodes.worker_pools is not None:
        return "cannot specify both 'workers' and 'workerPools'"
    return _name_fault(lc)


def _name_fault(lc: LatticeCluster) -> str:
    for pool in sorted(lc.spec.nodes.worker_pools or ()):
        if label_faults(pool):
            return f"invalid pool name '{pool}': must be lowercase alphanumeric with hyphens"
        if len(name := names.deployment(lc.name, pool)) > LABEL_VALUE_MAX:
            return (
                f"spec.nodes.workerPools[{pool}]: {name} is longer than {LABEL_VALUE_MAX} characters, use a shorter id"
            )
    return ""
