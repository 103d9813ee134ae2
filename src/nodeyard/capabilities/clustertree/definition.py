"""The CRD of Cluster: Kosmos' fields with their defaults, and Nodeyard's own. `validation` has the rules."""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.clustertree import names, validation
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.schema.crd import Column, Definition

CLUSTER: Final = Definition(
    type=Cluster,
    group=names.GROUP,
    version=names.VERSION,
    kind=names.KIND,
    plural=names.PLURAL,
    description="A Cluster is a leaf: a cluster that appears in this one, the root, as one or more nodes.",
    namespaced=False,
    short_names=("kcl",),
    columns=(
        Column("Nodes", ".status.nodes", "integer", description="Nodes of the root that mirror the leaf."),
        Column("Leaf-Nodes", ".status.leafNodes", "integer", description="Nodes of the leaf."),
        Column("Reachable", '.status.conditions[?(@.type=="Reachable")].status'),
        Column("Leases", '.status.conditions[?(@.type=="LeasesRenewed")].status'),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column(
            "Renewed",
            ".status.leasesRenewedTime",
            "date",
            description="Time since the leases of all its nodes were renewed, accurate to a minute.",
            priority=1,
        ),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Network_Type", ".spec.clusterLinkOptions.networkType", priority=1),
        Column("IP_Family", ".spec.clusterLinkOptions.ipFamily", priority=1),
        Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
    ),
    overlay=validation.CLUSTER,
)
