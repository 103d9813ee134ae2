"""Where a mirrored node is, and what it runs on: the leaf node's own, or no more than is true of several."""

from __future__ import annotations

import msgspec

from nodeyard.capabilities.clustertree.planning.labels import platform
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.snapshot import NodeAddress, NodeInfo


def addresses_of(mirror: Mirror) -> tuple[NodeAddress, ...]:
    if not mirror.is_single:
        return (NodeAddress(type="Hostname", address=mirror.placement.name),)
    # The server refuses a list in which one stands twice.
    return tuple(dict.fromkeys(address for node in mirror.members for address in node.status.addresses))


def node_info_of(mirror: Mirror) -> NodeInfo:
    """The version of several is that of their server; before it is known the node keeps what it has."""
    if mirror.is_single and mirror.members:
        return mirror.members[0].status.node_info
    arch, system = platform(mirror)
    version = mirror.snapshot.leaf.version or mirror.present.status.node_info.kubelet_version
    return msgspec.structs.replace(NodeInfo(), kubelet_version=version, architecture=arch, operating_system=system)
