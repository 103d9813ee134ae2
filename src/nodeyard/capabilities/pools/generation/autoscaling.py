"""What the cluster-autoscaler reads off a MachineDeployment: its bounds, and what a node is like when there is none.

Only with `autoscaling: ClusterAutoscaler` and both bounds: it acts on nothing less, and Cluster API's webhook takes
bounds for a reason to choose replicas.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.labels import node_labels, written
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
        names.CAPACITY_LABELS: written(node_labels(pool_id, pool)),
    }
    if taints:
        annotations[names.CAPACITY_TAINTS] = ",".join(_written_taint(taint) for taint in taints)
    return annotations


def is_autoscaled(lc: LatticeCluster, pool: WorkerPool) -> bool:
    """Whether the cluster-autoscaler has this pool's replicas."""
    return lc.is_autoscaled and pool.min is not None and pool.max is not None


def _capacity(node_class: LatticeNodeClass | None) -> dict[str, str]:
    """From the class' resources, which are for people and may be anything; what is no number is left out."""
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


def _written_taint(taint: PoolTaint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}"
