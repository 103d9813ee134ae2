"""Cluster API's objects, read: what a status counter is worth, whether something is paused, settled or failing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeyard.capabilities.pools import names
from nodeyard.kube.json import Object


@dataclass(frozen=True)
class Counters:
    """Of a MachineDeployment or a control plane. An absent one is 0: Cluster API leaves out what it has not counted."""

    replicas: int
    ready: int
    available: int
    up_to_date: int
    is_current: bool
    """Whether they are about the spec as it is; else they are of no use for a decision."""


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
    """What the spec wants. Absent is 1, as Cluster API has it."""
    wanted = (obj.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def is_settled(obj: Object) -> bool:
    """Whether every replica is there, made as the spec says, and available."""
    counted, wanted = counters(obj), replicas(obj)
    present = (counted.replicas, counted.up_to_date, counted.available)
    return counted.is_current and present == (wanted, wanted, wanted)


def is_paused(obj: Object | None) -> bool:
    """By its spec, or by the annotation of `clusterctl move`."""
    if obj is None:
        return False
    annotations = obj["metadata"].get("annotations") or {}
    return bool((obj.get("spec") or {}).get("paused")) or names.PAUSED_ANNOTATION in annotations


def is_deleting(obj: Object | None) -> bool:
    return obj is not None and "deletionTimestamp" in obj["metadata"]


def machine_version(deployment: Object) -> str:
    """The Kubernetes version that a MachineDeployment's machines shall have."""
    return str(_machine_spec(deployment).get("version") or "")


def infrastructure_of(deployment: Object) -> tuple[str, str]:
    """Kind and name of its machine template."""
    ref = _machine_spec(deployment).get("infrastructureRef") or {}
    return ref.get("kind", ""), ref.get("name", "")


def bootstrap_of(deployment: Object) -> tuple[str, str]:
    """Kind and name of its bootstrap template."""
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
    """Whether there has been an API server: Cluster API never takes it back."""
    for obj in (cluster, control_plane):
        initialization = ((obj or {}).get("status") or {}).get("initialization") or {}
        if initialization.get("controlPlaneInitialized"):
            return True
    return False


def is_infrastructure_provisioned(cluster: Object | None) -> bool:
    initialization = ((cluster or {}).get("status") or {}).get("initialization") or {}
    return bool(initialization.get("infrastructureProvisioned"))
