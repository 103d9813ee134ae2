"""Generates the Cluster API objects of a LatticeCluster, with pure functions.

Read in this order: `kinds` (provider kinds and versions), `docker`, `aws` and `proxmox` (machine settings by provider),
`infrastructure` (provider objects), `metadata` and `bootstrap` (labels, taints and kubeadm settings of nodes),
`deployments` (MachineDeployments), `clusters` (namespace, Cluster and control plane). `template` names templates by
their content.
"""

from nodeyard.capabilities.pools.planning.generation.bootstrap import bootstrap_template
from nodeyard.capabilities.pools.planning.generation.clusters import cluster, control_plane, namespace
from nodeyard.capabilities.pools.planning.generation.deployments import machine_deployment
from nodeyard.capabilities.pools.planning.generation.infrastructure import (
    class_inputs,
    control_plane_template,
    infrastructure_cluster,
    worker_template,
)
from nodeyard.capabilities.pools.planning.generation.kinds import InvalidSpec, NotServed, keep_family
from nodeyard.capabilities.pools.planning.generation.metadata import kubelet_labels, machine_labels
from nodeyard.capabilities.pools.planning.generation.template import Template

__all__ = [
    "InvalidSpec",
    "NotServed",
    "Template",
    "bootstrap_template",
    "class_inputs",
    "cluster",
    "control_plane",
    "control_plane_template",
    "infrastructure_cluster",
    "keep_family",
    "kubelet_labels",
    "machine_deployment",
    "machine_labels",
    "namespace",
    "worker_template",
]
