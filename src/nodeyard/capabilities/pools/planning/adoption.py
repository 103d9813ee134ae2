"""Which MachineDeployment is a pool's: by exact name, and for the pool `default` the one from before there were pools.

`{cluster}-md-0` is the pool `default` for as long as it exists; no pool ever has two. What carries no label of ours and
has none of these names is somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.observed import replicas
from nodeyard.capabilities.pools.snapshot import Management
from nodeyard.kube.json import Object


@dataclass(frozen=True)
class Belonging:
    """A pool and its MachineDeployment."""

    name: str
    """How it is, or will be, called."""
    deployment: Object | None
    """None where it is to be made."""
    other: str = ""
    """A second one that claims to be the same pool; it is left alone."""


def belonging(cluster: str, management: Management, pool: str) -> Belonging:
    found = management.deployments
    regular = names.deployment(cluster, pool)
    legacy = names.legacy_deployment(cluster)
    if pool != names.DEFAULT_POOL or not _is_of(found.get(legacy), cluster):
        return Belonging(regular, found.get(regular))
    if regular not in found:
        return Belonging(legacy, found[legacy])
    kept, other = (legacy, regular) if _is_kept(found, legacy, regular) else (regular, legacy)
    return Belonging(kept, found[kept], other)


def _is_kept(found: Mapping[str, Object], legacy: str, regular: str) -> bool:
    """Of two, the one that has machines; the older one where both have or neither has."""
    return replicas(found[legacy]) > 0 or replicas(found[regular]) == 0


def _is_of(deployment: Object | None, cluster: str) -> bool:
    return deployment is not None and (deployment.get("spec") or {}).get("clusterName") == cluster


def pool_of(cluster: str, deployment: Object) -> str:
    """The pool that a MachineDeployment is of; empty where it is not ours."""
    metadata = deployment["metadata"]
    labels = metadata.get("labels") or {}
    if labels.get(names.CLUSTER) == cluster and labels.get(names.POOL):
        return str(labels[names.POOL])
    is_legacy = metadata["name"] == names.legacy_deployment(cluster) and _is_of(deployment, cluster)
    return names.DEFAULT_POOL if is_legacy else ""


def is_adopted(cluster: str, deployment: Object) -> bool:
    """Whether it carries our labels already."""
    labels = deployment["metadata"].get("labels") or {}
    return labels.get(names.CLUSTER) == cluster and names.POOL in labels


def removed(cluster: str, management: Management, wanted: Mapping[str, object]) -> list[tuple[str, Object]]:
    """The MachineDeployments of pools that are not wanted any more, with the pool, by name."""
    found = []
    for _name, deployment in sorted(management.deployments.items()):
        pool = pool_of(cluster, deployment)
        if pool and pool not in wanted:
            found.append((pool, deployment))
    return found
