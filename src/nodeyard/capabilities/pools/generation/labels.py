"""Labels reach nodes on two ways, and each label takes the one that works for it.

Cluster API copies some from a Machine to its node, at once and for as long as both live; those go to the Machine alone.
All others are given to the kubelet, which sets them when the node joins and never again; the Machine has them as well,
so that it can be found by them.
"""

from __future__ import annotations

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.types import LatticeCluster, WorkerPool
from nodeyard.capabilities.pools.validity import is_synced_in_place


def machine_labels(lc: LatticeCluster, pool_id: str, pool: WorkerPool) -> dict[str, str]:
    """What Machines of the pool are labelled with, whatever their MachineDeployment is called."""
    ours = {names.CLUSTER_NAME_LABEL: lc.name, names.CLUSTER: lc.name, names.POOL: pool_id}
    return dict(sorted({**pool.labels, **ours}.items()))


def kubelet_labels(pool_id: str, pool: WorkerPool) -> dict[str, str]:
    """What nodes of the pool join with. A change replaces them."""
    joined = {key: value for key, value in pool.labels.items() if not is_synced_in_place(key)}
    return dict(sorted({**joined, names.POOL: pool_id}.items()))


def node_labels(pool_id: str, pool: WorkerPool) -> dict[str, str]:
    """All that nodes of the pool have in the end."""
    return dict(sorted({**pool.labels, names.POOL: pool_id}.items()))


def written(labels: dict[str, str]) -> str:
    """As flags and annotations have it."""
    return ",".join(f"{key}={value}" for key, value in labels.items())
