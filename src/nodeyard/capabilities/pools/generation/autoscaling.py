"""Annotations for the cluster-autoscaler on a MachineDeployment: min, max, and node properties to scale from zero.

They are set only with `autoscaling: ClusterAutoscaler` and both min and max: the autoscaler needs both, and Cluster
API's webhook defaults replicas from them.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.metadata import join_labels, node_labels
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, PoolTaint, WorkerPool


def autoscaler_annotations(
    lc: LatticeCluster, pool_id: str, pool: WorkerPool, node_class: LatticeNodeClass | None
) -> dict[str, str]:
    if not is_autoscaled(lc, pool):
        return {}
    taints = sorted(pool.taints, key=lambda taint: (taint.key, taint.effect))
    annotations = {
        names.AUTOSCALER_MIN: str(pool.min),
        names.AUTOSCALER_MAX: str(pool.max),
        **_capacity(node_class),
        names.CAPACITY_LABELS: join_labels(node_labels(pool_id, pool)),
    }
    if taints:
        annotations[names.CAPACITY_TAINTS] = ",".join(_format_taint(taint) for taint in taints)
    return annotations


def is_autoscaled(lc: LatticeCluster, pool: WorkerPool) -> bool:
    """Return True if the cluster-autoscaler owns this pool's replicas."""
    return lc.is_autoscaled and pool.min is not None and pool.max is not None


def _capacity(node_class: LatticeNodeClass | None) -> dict[str, str]:
    """Return capacity annotations from the class's resources; values that are not positive numbers are skipped."""
    resources = node_class.spec.resources if node_class else None
    if not isinstance(resources, Mapping):
        return {}
    amounts = (
        (names.CAPACITY_CPU, resources.get("cores"), ""),
        (names.CAPACITY_MEMORY, resources.get("memoryGi"), "Gi"),
        (names.CAPACITY_DISK, resources.get("storageGi"), "Gi"),
    )
    return {key: f"{amount}{unit}" for key, amount, unit in amounts if _is_amount(amount)}


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _format_taint(taint: PoolTaint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}"
