"""What every generated object has in common: where it lives and by which labels it is found again."""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Object


def describe(lc: LatticeCluster, name: str, *, pool: str = "", annotations: Mapping[str, str] | None = None) -> Object:
    """The metadata of an object in the cluster's namespace; of a pool if one is named."""
    labels = {names.CLUSTER_NAME_LABEL: lc.name, names.CLUSTER: lc.name}
    if pool:
        labels[names.POOL] = pool
    metadata: Object = {"name": name, "namespace": names.namespace(lc.name), "labels": labels}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return metadata


def given(**fields: object) -> Object:
    """The fields that have a value. Cluster API refuses many an empty list or map, and null means nothing to it."""
    return {name: value for name, value in fields.items() if value is not None and value != [] and value != {}}
