"""Who has a profile: nodes that name it, nodes whose role does, and nodes that it selects by their labels.

The first two are told by annotations. Which profile selects a node depends on all the others that would: the node says
in its status what came of it, and is found by that.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.snapshot import Service
from nodeyard.runtime.capability import View


def members(view: View, service: Service, namespace: str, profile: str) -> int:
    """How many nodes have a profile; in time that does not grow with them."""
    choice = f"{namespace}/{service.annotation_key}={profile}"
    count = view.counted(names.NODE_KIND, names.BY_ANNOTATION, choice)
    for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice):
        value = f"{namespace}/{role.metadata.name}"
        count += view.counted(names.NODE_KIND, names.BY_ROLE, value)
        count -= view.counted(names.NODE_KIND, watched.BY_ROLE_KEY, f"{value}/{service.annotation_key}")
    return count + view.counted(names.NODE_KIND, watched.SELECTED, _selected(service, namespace, profile))


def users(view: View, service: Service, namespace: str, profile: str) -> Iterator[str]:
    """The nodes that have a profile, by name; the first cost no more than they are."""
    selected = view.indexed(names.NODE_KIND, watched.SELECTED, _selected(service, namespace, profile))
    return merge(choosers(view, service, namespace, profile), (node.name for node in selected))


def choosers(view: View, service: Service, namespace: str, profile: str) -> Iterator[str]:
    """The nodes that name a profile, by themselves or by their role, by name."""
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
    """The nodes of a role that leave the choice to it, by name."""
    for node in view.indexed(names.NODE_KIND, names.BY_ROLE, role):
        if service.annotation_key not in node.metadata.annotations:
            yield node.name
