"""The CRDs of LatticeCluster, LatticeNodeClass and LatticeService. What they check is in `validation`."""

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
    description="A LatticeCluster is a Kubernetes cluster on Cluster API: a control plane and named pools of workers.",
    namespaced=False,
    short_names=("lc",),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Version", ".status.version", description="The version of the control plane."),
        Column("ControlPlane", ".status.readyControlPlane", "integer", description="Control plane machines ready."),
        Column("Workers", ".status.readyWorkers", "integer", description="Workers ready."),
        Column("Wanted", ".status.workers", "integer", description="Workers wanted."),
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
    description="A LatticeNodeClass is a kind of machine: what a pool that names it runs on, on each provider.",
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
    description="A LatticeService says what a worker pool must be for it; its status says which pools are.",
    namespaced=True,
    short_names=("ls",),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Cluster", ".status.placements[0].cluster", description="The first cluster that fits."),
        Column("Pool", ".status.placements[0].workerPool", description="The first pool that fits."),
        Column("Ready", '.status.conditions[?(@.type=="Placed")].status'),
        _AGE,
        Column("Message", ".status.message", priority=1),
    ),
    overlay=validation.SERVICE,
)
DEFINITIONS: Final = (LATTICE_CLUSTER, LATTICE_NODE_CLASS, LATTICE_SERVICE)
