"""The MachineDeployment of a pool.

What is in it decides what replaces nodes: the version and the names of both templates do; labels, annotations and the
deletion settings reach existing machines as they are. Replicas are told apart: whoever creates the object says 0, and
from then on another field manager says them, or the cluster-autoscaler.
"""

from __future__ import annotations

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.autoscaling import autoscaler_annotations
from nodeyard.capabilities.pools.generation.clusters import with_v
from nodeyard.capabilities.pools.generation.kinds import reference
from nodeyard.capabilities.pools.generation.labels import machine_labels
from nodeyard.capabilities.pools.generation.metadata import describe, given
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
    force: bool = False,
    node_class: LatticeNodeClass | None = None,
) -> Object:
    """The whole object.

    bootstrap, infrastructure: the names of the templates.
    replicas: None leaves the field out.
    selector: that of an adopted MachineDeployment, kept as it is; machines get the labels it asks for.
    force: machines go without a drain, and without waiting for their volumes.
    node_class: tells the autoscaler how large a node is that does not exist yet.
    """
    own = {names.CLUSTER_NAME_LABEL: lc.name, names.DEPLOYMENT_NAME_LABEL: name}
    selector = selector or {"matchLabels": own}
    labels = {**machine_labels(lc, pool_id, pool), **own, **(selector.get("matchLabels") or {})}
    return {
        "apiVersion": names.CAPI_API_VERSION,
        "kind": "MachineDeployment",
        "metadata": describe(lc, name, pool=pool_id, annotations=autoscaler_annotations(lc, pool_id, pool, node_class)),
        "spec": given(
            clusterName=lc.name,
            replicas=replicas,
            selector=selector,
            template={
                "metadata": given(labels=dict(sorted(labels.items())), annotations=_forced() if force else None),
                "spec": given(
                    clusterName=lc.name,
                    # What was there before us may have none, and gets one when it is its turn.
                    version=with_v(version) if version else None,
                    bootstrap={"configRef": reference(names.BOOTSTRAP_GROUP, "KubeadmConfigTemplate", bootstrap)},
                    infrastructureRef=reference(names.INFRASTRUCTURE_GROUP, infrastructure_kind, infrastructure),
                    deletion=_deletion(lc),
                ),
            },
        ),
    }


def _deletion(lc: LatticeCluster) -> Object:
    """Of single machines, as in a scale-down. Always said: without a limit one bad budget would hold it up for ever."""
    seconds = lc.spec.pool_drain_timeout
    return {"nodeDrainTimeoutSeconds": seconds, "nodeVolumeDetachTimeoutSeconds": seconds}


def _forced() -> dict[str, str]:
    return {names.EXCLUDE_DRAINING: names.TRUE, names.EXCLUDE_VOLUME_WAIT: names.TRUE}
