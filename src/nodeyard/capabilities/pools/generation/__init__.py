"""What a LatticeCluster is in Cluster API: pure functions from what was asked for to whole objects.

Read in this order: `kinds` (which kinds and versions there are to write), `docker`, `aws` and `proxmox` (what a machine
is on each), `infrastructure` (which of them is meant), `labels` and `bootstrap` (how a machine becomes a node),
`deployments` (how many machines of which template), `clusters` (all that is there once). `template` names what must not
change by what is in it.
"""

from nodeyard.capabilities.pools.generation.bootstrap import bootstrap_template
from nodeyard.capabilities.pools.generation.clusters import cluster, control_plane, namespace
from nodeyard.capabilities.pools.generation.deployments import machine_deployment
from nodeyard.capabilities.pools.generation.infrastructure import (
    control_plane_template,
    infrastructure_cluster,
    worker_template,
)
from nodeyard.capabilities.pools.generation.kinds import Unserved, kept
from nodeyard.capabilities.pools.generation.labels import kubelet_labels, machine_labels
from nodeyard.capabilities.pools.generation.template import Template
from nodeyard.capabilities.pools.generation.unfit import Unfit

__all__ = [
    "Template",
    "Unfit",
    "Unserved",
    "bootstrap_template",
    "cluster",
    "control_plane",
    "control_plane_template",
    "infrastructure_cluster",
    "kept",
    "kubelet_labels",
    "machine_deployment",
    "machine_labels",
    "namespace",
    "worker_template",
]
