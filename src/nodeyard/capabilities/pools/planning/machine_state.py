"""Reads the state of Cluster API objects: counters, versions, template references, pause, initialization, pivot.

The MachineDeployment of a pool is found by exact name, and for the pool `default` also by Lattice's legacy name.
`{cluster}-md-0` is the pool `default` for as long as it exists; no pool ever gets a second MachineDeployment. Other
MachineDeployments without Nodeyard's labels are not managed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.snapshot import Management, PoolsSnapshot
from nodeyard.capabilities.pools.types import Pivot
from nodeyard.kube.json import Object


@dataclass(frozen=True)
class Counters:
    """Replica counters of a MachineDeployment or a control plane; absent counters are 0."""

    replicas: int
    ready: int
    available: int
    up_to_date: int
    is_current: bool
    """True if observedGeneration is current; otherwise the counters must not be used for a decision."""


def counters(obj: Object) -> Counters:
    status: Mapping[str, Any] = obj.get("status") or {}
    observed = status.get("observedGeneration") or 0
    return Counters(
        replicas=status.get("replicas") or 0,
        ready=status.get("readyReplicas") or 0,
        available=status.get("availableReplicas") or 0,
        up_to_date=status.get("upToDateReplicas") or 0,
        is_current=observed >= (obj["metadata"].get("generation") or 0),
    )


def replicas(obj: Object) -> int:
    """Return spec.replicas; absent means 1, the default of Cluster API."""
    wanted = (obj.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def is_settled(obj: Object) -> bool:
    """Return True if all replicas exist, are up to date and are available."""
    counted, wanted = counters(obj), replicas(obj)
    present = (counted.replicas, counted.up_to_date, counted.available)
    return counted.is_current and present == (wanted, wanted, wanted)


def is_paused(obj: Object | None) -> bool:
    """Return True if it is paused, by spec.paused or by annotation."""
    if obj is None:
        return False
    annotations = obj["metadata"].get("annotations") or {}
    return bool((obj.get("spec") or {}).get("paused")) or names.PAUSED_ANNOTATION in annotations


def machine_version(deployment: Object) -> str:
    """Return the Kubernetes version in a MachineDeployment's template."""
    return str(_machine_spec(deployment).get("version") or "")


def infrastructure_of(deployment: Object) -> tuple[str, str]:
    """Return kind and name of its machine template."""
    ref = _machine_spec(deployment).get("infrastructureRef") or {}
    return ref.get("kind", ""), ref.get("name", "")


def bootstrap_of(deployment: Object) -> tuple[str, str]:
    """Return kind and name of its bootstrap template."""
    ref = (_machine_spec(deployment).get("bootstrap") or {}).get("configRef") or {}
    return ref.get("kind", ""), ref.get("name", "")


def control_plane_infrastructure(control_plane: Object) -> tuple[str, str]:
    spec = ((control_plane.get("spec") or {}).get("machineTemplate") or {}).get("spec") or {}
    ref = spec.get("infrastructureRef") or {}
    return ref.get("kind", ""), ref.get("name", "")


def _machine_spec(deployment: Object) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    return spec


def is_control_plane_initialized(cluster: Object | None, control_plane: Object | None) -> bool:
    """Return True once the control plane is initialized; Cluster API never resets it."""
    for obj in (cluster, control_plane):
        initialization = ((obj or {}).get("status") or {}).get("initialization") or {}
        if initialization.get("controlPlaneInitialized"):
            return True
    return False


def is_initialized(snapshot: PoolsSnapshot) -> bool:
    """Return True once the control plane of the cluster is initialized."""
    return is_control_plane_initialized(snapshot.management.cluster, snapshot.management.control_plane)


def is_pivoted(snapshot: PoolsSnapshot) -> bool:
    """Return True if the kubeconfig points to the local cluster. It is observed each time and never stored."""
    return is_initialized(snapshot) and snapshot.workload.is_own


def may_scale(snapshot: PoolsSnapshot) -> bool:
    """Return True if workers may be scaled: after the pivot, or with pivot Never after the control plane."""
    if snapshot.cluster.spec.pivot == Pivot.NEVER:
        return is_initialized(snapshot)
    return is_pivoted(snapshot)


# the MachineDeployment of a pool


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
