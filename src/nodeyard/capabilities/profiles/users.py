"""Nodes of a profile: nodes that name it, nodes whose role names it, and nodes that it selects by label.

The first two are found by annotation. The winning selector of a node depends on all selecting profiles, so selected
nodes are found by their status.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.runtime.capability import View


def count_users(view: View, service: Service, namespace: str, profile: str) -> int:
    """Count the nodes of a profile from indexes, without iterating over them."""
    choice = f"{namespace}/{service.annotation_key}={profile}"
    count = view.counted(names.NODE_KIND, names.BY_ANNOTATION, choice)
    for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice):
        value = f"{namespace}/{role.metadata.name}"
        count += view.counted(names.NODE_KIND, names.BY_ROLE, value)
        count -= view.counted(names.NODE_KIND, watched.BY_ROLE_KEY, f"{value}/{service.annotation_key}")
    return count + view.counted(names.NODE_KIND, watched.SELECTED, _selected(service, namespace, profile))


def list_users(view: View, service: Service, namespace: str, profile: str) -> Iterator[str]:
    """Iterate lazily over the nodes of a profile, sorted by name."""
    selected = view.indexed(names.NODE_KIND, watched.SELECTED, _selected(service, namespace, profile))
    return merge(list_choosing_nodes(view, service, namespace, profile), (node.name for node in selected))


def list_choosing_nodes(view: View, service: Service, namespace: str, profile: str) -> Iterator[str]:
    """Iterate over nodes that name a profile, by their own annotation or that of their role, sorted by name."""
    choice = f"{namespace}/{service.annotation_key}={profile}"
    return merge(
        (node.name for node in view.indexed(names.NODE_KIND, names.BY_ANNOTATION, choice)),
        *(
            _followers(view, service, f"{namespace}/{role.metadata.name}")
            for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice)
        ),
    )


def _selected(service: Service, namespace: str, profile: str) -> str:
    return names.profile_key(service.name, namespace, profile)


def _followers(view: View, service: Service, role: str) -> Iterator[str]:
    """Iterate over nodes of a role that do not override its choice, sorted by name."""
    for node in view.indexed(names.NODE_KIND, names.BY_ROLE, role):
        if service.annotation_key not in node.metadata.annotations:
            yield node.name
