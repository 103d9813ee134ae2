"""MachineDeployment of a pool.

A change of the version or of a template name replaces nodes; labels, annotations and deletion settings reach existing
machines in place. Replicas are separate: the object is created with 0, and after that another field manager or the
cluster-autoscaler sets them.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.generation.clusters import with_v
from nodeyard.capabilities.pools.planning.generation.infrastructure import class_inputs
from nodeyard.capabilities.pools.planning.generation.kinds import reference
from nodeyard.capabilities.pools.planning.generation.metadata import (
    drop_empty,
    join_labels,
    machine_labels,
    node_labels,
    object_metadata,
)
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, WorkerPool
from nodeyard.kube.json import Object


def machine_deployment(
    lc: LatticeCluster,
    pool_id: str,
    pool: WorkerPool,
    *,
    name: str,
    bootstrap: str,
    infrastructure_kind: str,
    infrastructure: str,
    version: str,
    replicas: int | None,
    selector: Object | None = None,
    node_class: LatticeNodeClass | None = None,
) -> Object:
    """Return the MachineDeployment.

    bootstrap, infrastructure: names of the templates.
    replicas: None omits the field.
    selector: selector of an adopted MachineDeployment, which is immutable; machines get its labels.
    node_class: recorded in annotations; its resources let the autoscaler scale from zero.
    """
    own = {names.CLUSTER_NAME_LABEL: lc.name, names.DEPLOYMENT_NAME_LABEL: name}
    selector = selector or {"matchLabels": own}
    labels = {**machine_labels(lc, pool_id, pool), **own, **(selector.get("matchLabels") or {})}
    return {
        "apiVersion": names.CAPI_API_VERSION,
        "kind": "MachineDeployment",
        "metadata": object_metadata(
            lc,
            name,
            pool=pool_id,
            annotations={**_class(lc, node_class), **_autoscaler_annotations(lc, pool_id, pool, node_class)},
        ),
        "spec": drop_empty(
            clusterName=lc.name,
            replicas=replicas,
            selector=selector,
            template={
                "metadata": {"labels": dict(sorted(labels.items()))},
                "spec": drop_empty(
                    clusterName=lc.name,
                    # An adopted MachineDeployment may have no version; it gets one at its turn of an upgrade.
                    version=with_v(version) if version else None,
                    bootstrap={"configRef": reference(names.BOOTSTRAP_GROUP, "KubeadmConfigTemplate", bootstrap)},
                    infrastructureRef=reference(names.INFRASTRUCTURE_GROUP, infrastructure_kind, infrastructure),
                    deletion=_deletion(lc),
                ),
            },
        ),
    }


def _class(lc: LatticeCluster, node_class: LatticeNodeClass | None) -> dict[str, str]:
    """Return annotations with the class and its hash, to distinguish an edit of the class from one of the cluster."""
    if node_class is None:
        return {}
    return {names.NODE_CLASS: node_class.metadata.name, names.CLASS_INPUTS: class_inputs(lc, node_class)}


def _deletion(lc: LatticeCluster) -> Object:
    """Return the deletion settings of single machines. Without a limit one budget could block a scale-down forever."""
    seconds = lc.spec.pool_drain_timeout
    return {"nodeDrainTimeoutSeconds": seconds, "nodeVolumeDetachTimeoutSeconds": seconds}


# annotations of the cluster-autoscaler


def _autoscaler_annotations(
    lc: LatticeCluster, pool_id: str, pool: WorkerPool, node_class: LatticeNodeClass | None
) -> dict[str, str]:
    """Return min, max and the node properties to scale from zero.

    Without both bounds there are none: the autoscaler needs both, and Cluster API's webhook defaults replicas from
    them.
    """
    if not lc.is_pool_autoscaled(pool):
        return {}
    taints = sorted(pool.taints, key=lambda taint: (taint.key, taint.effect))
    annotations = {
        names.AUTOSCALER_MIN: str(pool.min),
        names.AUTOSCALER_MAX: str(pool.max),
        **_capacity(node_class),
        names.CAPACITY_LABELS: join_labels(node_labels(pool_id, pool)),
    }
    if taints:
        annotations[names.CAPACITY_TAINTS] = ",".join(f"{each.key}={each.value}:{each.effect}" for each in taints)
    return annotations


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
