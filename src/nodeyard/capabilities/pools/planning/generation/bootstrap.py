"""Bootstrap configuration of nodes: settings for kubeadm and the kubelet.

Taints go to kubeadm and not to the kubelet flag --register-with-taints: the flag would override the taint with which
Cluster API keeps pods off until the node has its labels. On a cloud the kubelet also needs its node name or provider
id; otherwise Cluster API does not find the node of a machine.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.generation.metadata import drop_empty, join_labels, kubelet_labels
from nodeyard.capabilities.pools.planning.generation.template import Template, hash_inputs
from nodeyard.capabilities.pools.types import LatticeCluster, PoolTaint, WorkerPool
from nodeyard.kube.json import Object

_EXTERNAL: Final = {"name": "cloud-provider", "value": "external"}
# cloud-init expands this on the machine from the provider's instance metadata.
_NAME: Final = {"aws": "{{ ds.meta_data.local_hostname }}"}
_ARGUMENTS: Final[dict[str, list[Object]]] = {
    "aws": [_EXTERNAL],
    "proxmox": [{"name": "provider-id", "value": "proxmox://'{{ ds.meta_data.instance_id }}'"}],
}
_CONTROLLERS: Final[dict[str, list[Object]]] = {"aws": [_EXTERNAL]}


def bootstrap_template(lc: LatticeCluster, pool_id: str, pool: WorkerPool) -> Template:
    """Return the KubeadmConfigTemplate of a pool."""
    labels = join_labels(kubelet_labels(pool_id, pool))
    taints = [_taint(each) for each in sorted(pool.taints, key=lambda taint: (taint.key, taint.effect))]
    registration = _registration(lc, arguments=[{"name": "node-labels", "value": labels}], taints=taints)
    return Template(
        api_version=names.BOOTSTRAP_API_VERSION,
        kind="KubeadmConfigTemplate",
        prefix=names.deployment(lc.name, pool_id),
        spec={"template": {"spec": {"joinConfiguration": {"nodeRegistration": registration}}}},
        inputs=hash_inputs({"labels": labels, "taints": taints}),
        pool=pool_id,
    )


def control_plane_config(lc: LatticeCluster) -> Object:
    """Return the kubeadmConfigSpec of the control plane; empty if kubeadm's defaults suffice."""
    provider = lc.spec.provider.config.name
    cluster_configuration = drop_empty(
        apiServer=drop_empty(certSANs=list(lc.spec.provider.kubernetes.cert_sans)),
        controllerManager=drop_empty(extraArgs=_CONTROLLERS.get(provider)),
    )
    node = drop_empty(nodeRegistration=_registration(lc))
    return drop_empty(clusterConfiguration=cluster_configuration, initConfiguration=node, joinConfiguration=node)


def _registration(
    lc: LatticeCluster, *, arguments: list[Object] | None = None, taints: list[Object] | None = None
) -> Object:
    provider = lc.spec.provider.config.name
    return drop_empty(
        name=_NAME.get(provider),
        kubeletExtraArgs=[*_ARGUMENTS.get(provider, ()), *(arguments or ())],
        taints=taints,
    )


def _taint(taint: PoolTaint) -> Object:
    return drop_empty(key=taint.key, value=taint.value or None, effect=taint.effect)
