"""Reads the state of Cluster API objects: counters, versions, template references, pause, initialization, pivot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
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


def is_infrastructure_provisioned(cluster: Object | None) -> bool:
    initialization = ((cluster or {}).get("status") or {}).get("initialization") or {}
    return bool(initialization.get("infrastructureProvisioned"))


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
