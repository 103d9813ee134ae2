"""Collect the snapshot of a key from the informer caches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.enforcement import is_webhook_registered
from nodeyard.capabilities.affinity.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.placement_context import PlacementContext, node_named, policy_of
from nodeyard.capabilities.affinity.planning.classes import NAMED_PODS, is_inside, required_nodes, violators
from nodeyard.capabilities.affinity.planning.compiled_classes import compiled, count_by_zone
from nodeyard.capabilities.affinity.planning.containment import node_of_daemon
from nodeyard.capabilities.affinity.planning.definitions import CRD_API_VERSION, CRD_KIND
from nodeyard.capabilities.affinity.pods import PodSnapshot, collect_pod
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    TenantsSnapshot,
    release_name,
)
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.capabilities.affinity.users import users
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import Key, View

Snapshot = TenantsSnapshot | ApplicationSnapshot | DefinitionSnapshot | ClassSnapshot | PodSnapshot


def collect(view: View, key: Key, _now: datetime) -> Snapshot | None:
    if key == names.TENANTS_KEY:
        return collect_tenants(view)
    match key.split("/"):
        case ["application", kind, namespace, name]:
            return collect_application(view, kind, namespace, name)
        case ["definition", name]:
            return collect_definition(view, name)
        case ["class", name]:
            return collect_class(view, name)
        case ["pod", namespace, name]:
            return collect_pod(view, namespace, name)
    return None


# tenants


def collect_tenants(view: View) -> TenantsSnapshot:
    tenants: Sequence[Tenant] = view.all(names.TENANT_KIND)
    deleting = [each.own_namespace for each in tenants if each.is_deleting]
    inside = {each.own_namespace for each in tenants}
    context = inside | {each.namespace for each in tenants} | {names.TENANT_ROOT}
    return TenantsSnapshot(
        tenants=tenants,
        classes=frozenset(each.name for each in view.all(names.CLASS_KIND)),
        namespaces=_get_all(view, watched.TENANT_NAMESPACES.kind, ((name, "") for name in context)),
        values={
            namespace: secret
            for namespace in sorted(context | {names.PLATFORM_NAMESPACE})
            if (secret := view.get(watched.VALUES.kind, names.VALUES_SECRET, namespace)) is not None
        },
        applications=_count_applications(view, deleting),
        left={namespace: left for namespace in deleting if (left := left_in(view, namespace))},
        is_served_elsewhere=is_served_elsewhere(view),
        watch_error=_unknown_contents(view) if deleting else "",
    )


def _get_all(view: View, kind: str, wanted: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    found = {name: view.get(kind, name, namespace) for name, namespace in sorted(wanted)}
    return {name: each for name, each in found.items() if each is not None}


def _count_applications(view: View, namespaces: Iterable[str]) -> Mapping[str, int]:
    """Count the applications in the namespaces of tenants being deleted, both watched and only released."""
    return {
        namespace: len({*_applications_in(view, namespace), *_released_in(view, namespace)}) for namespace in namespaces
    }


_COUNTED_KINDS: Final = (watched.CLAIMS.kind, *(each.kind for each in watched.OWNERS), watched.PLACED_PODS.kind)
"""Kinds whose objects in a tenant's namespace hold its deletion, beside applications."""


def _unknown_contents(view: View) -> str:
    """Return why it is not known what a namespace contains; empty if every kind that counts is synced."""
    for kind in _COUNTED_KINDS:
        if not view.is_synced(kind):
            return view.watch_error(kind) or f"the cache of {kind} has not synced yet"
    return next(filter(None, (_unknown_applications(view, kind) for kind in application_kinds(view))), "")


def left_in(view: View, namespace: str) -> Mapping[str, int]:
    """Count the objects that would be deleted with a namespace, by kind, without applications."""
    found = {kind: view.counted(kind, names.BY_NAMESPACE, namespace) for kind in _COUNTED_KINDS}
    return {kind: number for kind, number in found.items() if number}


def _applications_in(view: View, namespace: str) -> Iterator[str]:
    for kind in application_kinds(view):
        for each in applications(view, kind, namespace):
            yield f"{kind}/{namespace}/{each['metadata']['name']}"


def _released_in(view: View, namespace: str) -> Iterator[str]:
    for release in view.indexed(names.RELEASE_KIND, names.BY_NAMESPACE, namespace):
        yield from watched.release_application(release)


# applications


def application_kinds(view: View) -> Mapping[str, ApplicationDefinition]:
    """Return the declared kinds, each with its oldest definition, which is the effective one."""
    found: dict[str, ApplicationDefinition] = {}
    for each in sorted(view.all(names.DEFINITION_KIND), key=_age):
        if each.kind and each.kind != names.TENANT_KIND:
            found.setdefault(each.kind, each)
    return found


def applications(view: View, kind: str, namespace: str = "") -> Sequence[Object]:
    """Return the applications of a kind, or only those of one namespace; empty if the kind is not watched yet."""
    try:
        if namespace:
            return view.indexed(watched.view_kind(kind), names.BY_NAMESPACE, namespace)
        return view.all(watched.view_kind(kind))
    except KeyError:
        return ()


def collect_application(view: View, kind: str, namespace: str, name: str) -> ApplicationSnapshot | None:
    definition = application_kinds(view).get(kind)
    if definition is None or is_served_elsewhere(view):
        return None
    try:
        application: Object | None = view.get(watched.view_kind(kind), name, namespace)
    except KeyError:
        return None
    if application is None:
        return None
    release: Object | None = view.get(names.RELEASE_KIND, release_name(definition, name), namespace)
    policy = policy_of(view, namespace)
    wanted = {policy.default, *watched.application_classes(application)}
    if release is not None:
        wanted |= set(watched.release_classes(release))
    return ApplicationSnapshot(
        application={**application, "apiVersion": names.APPS_API_VERSION, "kind": kind},
        definition=definition,
        policy=policy,
        classes=_get_all(view, names.CLASS_KIND, ((each, "") for each in wanted if each)),
        release=release,
        is_release_served=names.FLUX_VERSION in view.versions(names.FLUX_GROUP, names.RELEASE_KIND),
        other_release="" if release is not None else _other_release(view, kind, namespace, name),
        namespace_labels=PlacementContext(view, namespace).namespace_labels(),
        is_webhook_registered=is_webhook_registered(view.get(watched.REGISTRATIONS.kind, watched.REGISTRATION)),
    )


def _other_release(view: View, kind: str, namespace: str, name: str) -> str:
    """Return the name of its HelmRelease from before the prefix of its definition changed."""
    releases = view.indexed(names.RELEASE_KIND, names.BY_APPLICATION, f"{kind}/{namespace}/{name}")
    found = (str(release["metadata"]["name"]) for release in releases)
    return next((each for each in found if each.endswith(name)), "")


# definitions


def collect_definition(view: View, name: str) -> DefinitionSnapshot | None:
    definition: ApplicationDefinition | None = view.get(names.DEFINITION_KIND, name)
    if definition is None:
        return None
    return DefinitionSnapshot(
        definition=definition,
        crd=_crd(view, definition),
        former=list(_former(view, definition)),
        rivals=[each.name for each in rivals(view, definition) if _age(each) < _age(definition)],
        applications=len(applications(view, definition.kind)),
        is_served_elsewhere=is_served_elsewhere(view),
        watch_error=_definition_watch_error(view, definition),
    )


def _age(definition: ApplicationDefinition) -> tuple[float, str]:
    created = definition.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, definition.name)


def rivals(view: View, definition: ApplicationDefinition) -> Iterator[ApplicationDefinition]:
    """Yield other definitions that declare the same kind, plural or singular."""
    mine = _resource_names(definition)
    for each in view.all(names.DEFINITION_KIND):
        if each.name != definition.name and (each.kind == definition.kind or mine & _resource_names(each)):
            yield each


def _resource_names(definition: ApplicationDefinition) -> set[str]:
    given = definition.spec.application
    return {given.plural, given.singular}


def _crd(view: View, definition: ApplicationDefinition) -> Object | None:
    """Return the CRD of a definition.

    Only CRDs with our label are watched. For a foreign CRD, discovery only tells that the kind is served.
    """
    name = _crd_name(definition)
    found: Object | None = view.get(CRD_KIND, name)
    if found is not None or not view.versions(names.APPS_GROUP, definition.kind):
        return found
    served = {"conditions": [{"type": "Established", "status": "True"}]}
    return {"apiVersion": CRD_API_VERSION, "kind": CRD_KIND, "metadata": {"name": name}, "spec": {}, "status": served}


def _former(view: View, definition: ApplicationDefinition) -> Iterator[str]:
    for crd in view.all(CRD_KIND):
        metadata = crd["metadata"]
        is_its = watched.labels_of(crd).get(names.DECLARED_BY) == definition.name
        if is_its and metadata["name"] != _crd_name(definition) and not metadata.get("deletionTimestamp"):
            yield metadata["name"]


def _crd_name(definition: ApplicationDefinition) -> str:
    return f"{definition.spec.application.plural}.{names.APPS_GROUP}"


def _definition_watch_error(view: View, definition: ApplicationDefinition) -> str:
    """Return why the applications are not known. An unsynced cache counts only during deletion."""
    return (
        _unknown_applications(view, definition.kind) if definition.is_deleting else _watch_error(view, definition.kind)
    )


def _unknown_applications(view: View, kind: str) -> str:
    """Return why the applications of a kind are not known; empty if the cache has synced."""
    watch_error = _watch_error(view, kind)
    return watch_error or (
        "" if _is_synced(view, kind) else f"the cache of {watched.view_kind(kind)} has not synced yet"
    )


def _watch_error(view: View, kind: str) -> str:
    try:
        return view.watch_error(watched.view_kind(kind))
    except KeyError:
        return ""


def _is_synced(view: View, kind: str) -> bool:
    try:
        return view.is_synced(watched.view_kind(kind))
    except KeyError:
        return False


# classes


def collect_class(view: View, name: str) -> ClassSnapshot | None:
    affinity_class: AffinityClass | None = view.get(names.CLASS_KIND, name)
    if affinity_class is None:
        return None
    nodes = (node.metadata for node in view.all(watched.NODE_METADATA.kind))
    named, unnamed = _violators(view, affinity_class)
    return ClassSnapshot(
        affinity_class=affinity_class,
        zones=count_by_zone(compiled(affinity_class), nodes),
        users=users(view, name),
        violators=named,
        unnamed=unnamed,
        is_served_elsewhere=is_served_elsewhere(view),
    )


def _violators(view: View, affinity_class: AffinityClass) -> tuple[Sequence[str], int]:
    """Return the violators by name, and the number of further ones.

    Only one pod of each shape is checked. If the nodeSelector of a DaemonSet's template is not inside the class, each
    of its pods is checked by its node.
    """
    kind, name = watched.PLACED_PODS.kind, affinity_class.name
    if not view.is_synced(kind):
        return (), 0
    named: list[str] = []
    unnamed = 0
    for shape, (number, pod) in view.aggregate(names.SHAPES, name).items():
        is_daemon = bool(node_of_daemon(pod.metadata, required_nodes(pod)))
        # The terms of a DaemonSet's pod name its own node: check the shape by its nodeSelector alone.
        alike = msgspec.structs.replace(pod, spec=watched.PlacedSpec(node_selector=pod.spec.node_selector))
        if is_inside(affinity_class, alike if is_daemon else pod):
            continue
        if number > NAMED_PODS and not is_daemon:
            unnamed += number
            continue
        pods = view.indexed(kind, names.BY_SHAPE, f"{name} {shape}")
        named += violators(affinity_class, pods, partial(node_named, view))
    return sorted(named), unnamed
