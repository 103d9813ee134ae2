"""The watched kinds of spares, and their index function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.client import resources
from nodeyard.client.resources import Resource
from nodeyard.kube.objects import Lease, Node, Pod

TEMPLATES: Final = Resource(names.GROUP, names.VERSION, names.PLURAL, names.KIND, False, NodeTemplate)
NODES: Final = resources.NODES.decoded_as(Node)
PODS: Final = resources.PODS.decoded_as(Pod)
LEASES: Final = resources.LEASES.decoded_as(Lease)


def by_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()
