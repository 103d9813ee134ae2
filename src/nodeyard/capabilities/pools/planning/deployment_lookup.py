"""Finds the MachineDeployment of a pool: by exact name, and for the pool `default` also by Lattice's legacy name.

`{cluster}-md-0` is the pool `default` for as long as it exists; no pool ever gets a second MachineDeployment. Other
MachineDeployments without Nodeyard's labels are not managed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.machine_state import replicas
from nodeyard.capabilities.pools.snapshot import Management
from nodeyard.kube.json import Object


@dataclass(frozen=True)
class DeploymentLookup:
    """Result of the lookup of a pool's MachineDeployment."""

    name: str
    """The name of the MachineDeployment, whether it exists or not."""
    deployment: Object | None
    """None if it does not exist yet."""
    other: str = ""
    """The name of a second MachineDeployment for the same pool; it is left unchanged."""


def find_deployment(cluster: str, management: Management, pool: str) -> DeploymentLookup:
    found = management.deployments
    regular = names.deployment(cluster, pool)
    legacy = names.legacy_deployment(cluster)
    if pool != names.DEFAULT_POOL or not _belongs_to(found.get(legacy), cluster):
        return DeploymentLookup(regular, found.get(regular))
    if regular not in found:
        return DeploymentLookup(legacy, found[legacy])
    # The one with machines is used; the legacy one if both or neither have machines.
    is_legacy = replicas(found[legacy]) > 0 or replicas(found[regular]) == 0
    kept, other = (legacy, regular) if is_legacy else (regular, legacy)
    return DeploymentLookup(kept, found[kept], other)


def _belongs_to(deployment: Object | None, cluster: str) -> bool:
    return deployment is not None and (deployment.get("spec") or {}).get("clusterName") == cluster


def pool_of(cluster: str, deployment: Object) -> str:
    """Return the pool of a MachineDeployment by Nodeyard's labels; empty if it is not managed.

    A legacy MachineDeployment has no labels until it is adopted as the pool `default`. A spec without that pool does
    not remove it, because it was never managed.
    """
    labels = deployment["metadata"].get("labels") or {}
    return str(labels.get(names.POOL) or "") if labels.get(names.CLUSTER) == cluster else ""


def unclaimed(cluster: str, management: Management, wanted: Mapping[str, object]) -> Object | None:
    """Return the legacy MachineDeployment if it is unlabelled and the spec has no pool `default`."""
    found = management.deployments.get(names.legacy_deployment(cluster))
    is_unclaimed = names.DEFAULT_POOL not in wanted and _belongs_to(found, cluster)
    return found if is_unclaimed and found is not None and not pool_of(cluster, found) else None


def is_adopted(cluster: str, deployment: Object) -> bool:
    """Return True if it has Nodeyard's labels."""
    labels = deployment["metadata"].get("labels") or {}
    return labels.get(names.CLUSTER) == cluster and names.POOL in labels


def removed(cluster: str, management: Management, wanted: Mapping[str, object]) -> list[tuple[str, Object]]:
    """Return managed MachineDeployments whose pool is not in the spec, with the pool, sorted by name."""
    found = []
    for _name, deployment in sorted(management.deployments.items()):
        pool = pool_of(cluster, deployment)
        if pool and pool not in wanted:
            found.append((pool, deployment))
    return found
