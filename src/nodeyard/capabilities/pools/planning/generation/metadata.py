"""Metadata of generated objects, and labels of Machines and nodes.

Cluster API syncs some labels from a Machine to its node continuously; those are set only on the Machine. The kubelet
sets all others once, when the node joins; the Machine has them too, so that it can be selected by them.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.types import LatticeCluster, WorkerPool
from nodeyard.capabilities.pools.validation.node_keys import is_synced_in_place
from nodeyard.kube.json import Object


def object_metadata(
    lc: LatticeCluster, name: str, *, pool: str = "", annotations: Mapping[str, str] | None = None
) -> Object:
    """Return the metadata of an object in the cluster's namespace, labelled with the pool if given."""
    labels = {names.CLUSTER_NAME_LABEL: lc.name, names.CLUSTER: lc.name}
    if pool:
        labels[names.POOL] = pool
    metadata: Object = {"name": name, "namespace": names.namespace(lc.name), "labels": labels}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return metadata


def drop_empty(**fields: object) -> Object:
    """Return the fields that have a value: Cluster API rejects many empty lists and maps."""
    return {name: value for name, value in fields.items() if value is not None and value != [] and value != {}}


def machine_labels(lc: LatticeCluster, pool_id: str, pool: WorkerPool) -> dict[str, str]:
    """Return the labels of the pool's Machines."""
    ours = {names.CLUSTER_NAME_LABEL: lc.name, names.CLUSTER: lc.name, names.POOL: pool_id}
    return dict(sorted({**pool.labels, **ours}.items()))


def kubelet_labels(pool_id: str, pool: WorkerPool) -> dict[str, str]:
    """Return the labels with which nodes join; a change replaces the nodes."""
    joined = {key: value for key, value in pool.labels.items() if not is_synced_in_place(key)}
    return dict(sorted({**joined, names.POOL: pool_id}.items()))


def node_labels(pool_id: str, pool: WorkerPool) -> dict[str, str]:
    """Return all labels of the pool's nodes."""
    return dict(sorted({**pool.labels, names.POOL: pool_id}.items()))


def join_labels(labels: dict[str, str]) -> str:
    """Format labels as key=value,... for flags and annotations."""
    return ",".join(f"{key}={value}" for key, value in labels.items())
