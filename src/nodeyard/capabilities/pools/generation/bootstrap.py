"""How a machine becomes a node: what kubeadm and the kubelet are told.

Taints are given to kubeadm and not to the kubelet: a flag of the same name would replace the taint by which Cluster API
keeps pods away until the node has its labels. On a cloud the kubelet also has to learn its name or its provider id,
or Cluster API never finds the node that belongs to a machine.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.labels import kubelet_labels, written
from nodeyard.capabilities.pools.generation.metadata import given
from nodeyard.capabilities.pools.generation.template import Template, hashed
from nodeyard.capabilities.pools.types import LatticeCluster, PoolTaint, WorkerPool
from nodeyard.kube.json import Object

_EXTERNAL: Final = {"name": "cloud-provider", "value": "external"}
# Filled in on the machine, by cloud-init from the metadata that the provider gives it.
_NAME: Final = {"aws": "{{ ds.meta_data.local_hostname }}"}
_ARGUMENTS: Final[dict[str, list[Object]]] = {
    "aws": [_EXTERNAL],
    "proxmox": [{"name": "provider-id", "value": "proxmox://'{{ ds.meta_data.instance_id }}'"}],
}
_CONTROLLERS: Final[dict[str, list[Object]]] = {"aws": [_EXTERNAL]}


def bootstrap_template(lc: LatticeCluster, pool_id: str, pool: WorkerPool) -> Template:
    """The KubeadmConfigTemplate of a pool."""
    labels = written(kubelet_labels(pool_id, pool))
    taints = [_taint(each) for each in sorted(pool.taints, key=lambda taint: (taint.key, taint.effect))]
    joining = _registration(lc, arguments=[{"name": "node-labels", "value": labels}], taints=taints)
    return Template(
        api_version=names.BOOTSTRAP_API_VERSION,
        kind="KubeadmConfigTemplate",
        prefix=names.deployment(lc.name, pool_id),
        spec={"template": {"spec": {"joinConfiguration": {"nodeRegistration": joining}}}},
        inputs=hashed({"labels": labels, "taints": taints}),
        pool=pool_id,
    )


def control_plane_config(lc: LatticeCluster) -> Object:
    """The kubeadmConfigSpec of the control plane; empty where kubeadm's own defaults do."""
    provider = lc.spec.provider.config.name
    whole = given(
        apiServer=given(certSANs=list(lc.spec.provider.kubernetes.cert_sans)),
        controllerManager=given(extraArgs=_CONTROLLERS.get(provider)),
    )
    node = given(nodeRegistration=_registration(lc))
    return given(clusterConfiguration=whole, initConfiguration=node, joinConfiguration=node)


def _registration(
    lc: LatticeCluster, *, arguments: list[Object] | None = None, taints: list[Object] | None = None
) -> Object:
    provider = lc.spec.provider.config.name
    return given(
        name=_NAME.get(provider),
        kubeletExtraArgs=[*_ARGUMENTS.get(provider, ()), *(arguments or ())],
        taints=taints,
    )


def _taint(taint: PoolTaint) -> Object:
    return given(key=taint.key, value=taint.value or None, effect=taint.effect)
