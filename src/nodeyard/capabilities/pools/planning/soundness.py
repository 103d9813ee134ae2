"""What the API server would have refused, and a laxer definition let in: nothing is made of such a cluster."""

from __future__ import annotations

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.kube_version import parse
from nodeyard.capabilities.pools.types import PROVIDERS, LatticeCluster
from nodeyard.kube.names import LABEL_VALUE_MAX, label_faults


def cluster_fault(lc: LatticeCluster) -> str:
    """What is wrong with the cluster as a whole, and the remedy; empty where it is sound."""
    nodes, provider = lc.spec.nodes, lc.spec.provider
    if not provider.config.name:
        return f"spec.provider.config: exactly one of {', '.join(PROVIDERS)} has to be given"
    if provider.kubernetes.bootstrap != "kubeadm":
        return f"spec.provider.kubernetes.bootstrap: {provider.kubernetes.bootstrap} is not supported, use kubeadm"
    if parse(provider.kubernetes.version) is None:
        return f'spec.provider.kubernetes.version: "{provider.kubernetes.version}" is no version such as 1.32.0'
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
