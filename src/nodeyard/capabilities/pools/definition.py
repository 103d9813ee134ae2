"""CRDs of LatticeCluster, LatticeNodeClass and LatticeService; `validation` has their rules."""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools import names, validation
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, LatticeService
from nodeyard.schema.crd import Column, Definition

_AGE = Column("Age", ".metadata.creationTimestamp", "date")

LATTICE_CLUSTER: Final = Definition(
    type=LatticeCluster,
    group=names.GROUP,
    version=names.VERSION,
    kind=names.CLUSTER_KIND,
    plural=names.CLUSTER_PLURAL,
    description="A LatticeCluster is a Kubernetes cluster on Cluster API with a control plane and named worker pools.",
    namespaced=False,
    short_names=("lc",),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Version", ".status.version", description="The version of the control plane."),
        Column("ControlPlane", ".status.readyControlPlane", "integer", description="Control plane machines ready."),
        Column("Workers", ".status.readyWorkers", "integer", description="Workers ready."),
        Column("Wanted", ".status.workers", "integer", description="Desired workers."),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        _AGE,
        Column("Pivoted", ".status.pivoted", "boolean", priority=1),
        Column("Message", ".status.message", priority=1),
    ),
    overlay=validation.CLUSTER,
)
LATTICE_NODE_CLASS: Final = Definition(
    type=LatticeNodeClass,
    group=names.GROUP,
    version=names.VERSION,
    kind=names.CLASS_KIND,
    plural=names.CLASS_PLURAL,
    description="A LatticeNodeClass defines the machines of the pools that use it, for each provider.",
    namespaced=False,
    short_names=("lnc",),
    columns=(
        Column("AWS", ".spec.providers.aws.instanceType", description="The instance type on AWS."),
        Column("Docker", ".spec.providers.docker.image", description="The node image on Docker."),
        Column("Proxmox", ".spec.providers.proxmox.memory", description="The memory on Proxmox."),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        _AGE,
    ),
    overlay=validation.NODE_CLASS,
)
LATTICE_SERVICE: Final = Definition(
    type=LatticeService,
    group=names.GROUP,
    version=names.VERSION,
    kind=names.SERVICE_KIND,
    plural=names.SERVICE_PLURAL,
    description="A LatticeService selects worker pools by labels and tolerations; its status lists the matching pools.",
    namespaced=True,
    short_names=("ls",),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Cluster", ".status.placements[0].cluster", description="The first matching cluster."),
        Column("Pool", ".status.placements[0].workerPool", description="The first matching pool."),
        Column("Ready", '.status.conditions[?(@.type=="Placed")].status'),
        _AGE,
        Column("Message", ".status.message", priority=1),
    ),
    overlay=validation.SERVICE,
)
DEFINITIONS: Final = (LATTICE_CLUSTER, LATTICE_NODE_CLASS, LATTICE_SERVICE)
