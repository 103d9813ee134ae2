"""Collect an AffinityClass with its nodes, its users and the pods outside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.applications import application_kinds, applications_with_class, node_named
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.planning.classes import (
    NAMED_PODS,
    is_inside,
    is_of_daemon,
    is_shape_inside,
    violators,
)
from nodeyard.capabilities.affinity.planning.containment import compiled, count_by_zone
from nodeyard.capabilities.affinity.planning.lineage import application_of
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot
from nodeyard.capabilities.affinity.types import AffinityClass, ClassUser
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View


def collect_class(view: View, name: str) -> ClassSnapshot | None:
    affinity_class: AffinityClass | None = view.get(names.CLASS_KIND, name)
    if affinity_class is None:
        return None
    nodes = (node.metadata for node in view.all(watched.NODE_METADATA.kind))
    named, unnamed = find_violators(view, affinity_class)
    return ClassSnapshot(
        affinity_class=affinity_class,
        zones=count_by_zone(compiled(affinity_class), nodes),
        users=users(view, name),
        violators=named,
        unnamed=unnamed,
        is_served_elsewhere=is_served_elsewhere(view),
    )


def find_violators(view: View, affinity_class: AffinityClass) -> tuple[Sequence[str], int]:
    """Return the first violators by name, and the number of further ones.

    Only one pod of each shape is checked, and only once. If the nodeSelector of a DaemonSet's template is not inside
    the class, each of its pods is checked by its node.
    """
    kind, name = watched.PLACED_PODS.kind, affinity_class.name
    if not view.is_synced(kind):
        return (), 0
    shapes: Mapping[str, watched.Shape] = view.aggregate(names.SHAPES, name)
    outside = [shape for shape, (_, pod) in shapes.items() if not is_shape_inside(affinity_class, shape, pod)]
    named: list[str] = []
    unnamed = 0
    for shape in sorted(outside):
        number, pod = shapes[shape]
        if len(named) + number > NAMED_PODS and not is_of_daemon(pod):
            unnamed += number
            continue
        pods = view.indexed(kind, names.BY_SHAPE, f"{name} {shape}")
        if is_of_daemon(pod):
            named += violators(affinity_class, pods, partial(node_named, view))
        else:
            named += (f"{each.metadata.namespace}/{each.metadata.name}" for each in pods)
    return sorted(named), unnamed


def is_violator(view: View, affinity_class: AffinityClass, pod: watched.PlacedPod) -> bool:
    """Return whether a pod of the class could run outside it."""
    if is_shape_inside(affinity_class, watched.shape_of(pod), pod):
        return False
    return not (is_of_daemon(pod) and is_inside(affinity_class, pod, partial(node_named, view)))


# users


def users(view: View, name: str) -> Sequence[ClassUser]:
    """Return the users sorted by kind, namespace and name, including those being deleted."""
    tenants = view.indexed(names.TENANT_KIND, names.BY_CLASS, name)
    found = {(names.TENANT_KIND, each.namespace, each.name) for each in tenants}
    found.update(_release_user(release) for release in view.indexed(names.RELEASE_KIND, names.BY_CLASS, name))
    for kind in application_kinds(view):
        for application in applications_with_class(view, kind, name):
            metadata = application["metadata"]
            found.add((kind, metadata.get("namespace", ""), metadata["name"]))
    return [ClassUser(kind=kind, namespace=namespace, name=user) for kind, namespace, user in sorted(found)]


def _release_user(release: Object) -> tuple[str, str, str]:
    """Return the application of a HelmRelease, or the HelmRelease itself if it is of none."""
    metadata = release["metadata"]
    ref = ObjectRef(api_version=names.FLUX_API_VERSION, kind=names.RELEASE_KIND, name=metadata["name"])
    application = application_of(ref, watched.labels_of(release))
    kind, name = (ref.kind, ref.name) if application is None else (application.kind, application.name)
    return kind, metadata.get("namespace", ""), name
