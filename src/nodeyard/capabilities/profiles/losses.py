"""What nodes lose when their role no longer asks for a service: all of them at once, though each is planned by itself.

They are counted where one is about to go, and only there.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.planning.objects import is_told
from nodeyard.capabilities.profiles.planning.resolution import asking_key, resolve, wants_object
from nodeyard.capabilities.profiles.snapshot import Loss, NodeSnapshot, Service
from nodeyard.capabilities.profiles.types import annotation_of
from nodeyard.runtime.capability import View


def losses(view: View, snapshot: NodeSnapshot) -> Mapping[str, Loss]:
    """By service. A node that gives something up by itself is not among them."""
    found: dict[str, Loss] = {}
    role = snapshot.role
    if role is None or snapshot.node.is_deleting:
        return found
    for name, live in snapshot.objects.items():
        resolution = resolve(snapshot)[name]
        service = resolution.service
        is_unasked = resolution.is_settled and not wants_object(snapshot, resolution)
        is_lost = is_unasked and is_told(snapshot.node.metadata, service, live)
        if is_lost and annotation_of(snapshot.node, asking_key(service)) is None:
            lost = _count(view, service, f"{role.metadata.namespace}/{role.metadata.name}")
            found[name] = Loss(role.metadata.uid, lost, len(view.all(names.NODE_KIND)))
    return found


def _count(view: View, service: Service, role: str) -> int:
    """The nodes that leave it to this role whether they have the service's object, and have it."""
    kind, key = watched.viewed(service.object_api_version, service.object_kind), asking_key(service)
    followers = (
        node for node in view.indexed(names.NODE_KIND, names.BY_ROLE, role) if annotation_of(node, key) is None
    )
    pairs = ((node, view.get(kind, node.name, node.metadata.namespace)) for node in followers)
    return sum(obj is not None and is_told(node.metadata, service, obj) for node, obj in pairs)
