"""How what a plan sees is taken from the cache, key by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.planning.choice import wanted_class
from nodeyard.capabilities.affinity.planning.classes import violators
from nodeyard.capabilities.affinity.planning.compiled import compiled
from nodeyard.capabilities.affinity.planning.definitions import CRD_API_VERSION, CRD_KIND
from nodeyard.capabilities.affinity.planning.matching import count_by_zone
from nodeyard.capabilities.affinity.planning.releases import release_name
from nodeyard.capabilities.affinity.pods import PodSnapshot, collect_pod
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    TenantsSnapshot,
)
from nodeyard.capabilities.affinity.surroundings import Surroundings, node_named, standing_of
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


def is_served_elsewhere(view: View) -> bool:
    """Whether tenants and applications are somebody else's to serve."""
    return watched.is_served_elsewhere(view.get(watched.APISERVICES.kind, watched.APPS_API_SERVICE))


# tenants


def collect_tenants(view: View) -> TenantsSnapshot:
    tenants: Sequence[Tenant] = view.all(names.TENANT_KIND)
    leaving = [each.own_namespace for each in tenants if each.is_deleting]
    inside = {each.own_namespace for each in tenants}
    around = inside | {each.namespace for each in tenants} | {names.TENANT_ROOT}
    return TenantsSnapshot(
        tenants=tenants,
        classes=frozenset(each.name for each in view.all(names.CLASS_KIND)),
        namespaces=_found(view, watched.TENANT_NAMESPACES.kind, ((name, "") for name in around)),
        values={
            namespace: secret
            for namespace in sorted(around | {names.PLATFORM_NAMESPACE})
            if (secret := view.get(watched.VALUES.kind, names.VALUES_SECRET, namespace)) is not None
        },
        applications=_counted(view, leaving),
        is_served_elsewhere=is_served_elsewhere(view),
        trouble=next(filter(None, (_untold(view, kind) for kind in application_kinds(view))), "") if leaving else "",
    )


def _found(view: View, kind: str, wanted: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    found = {name: view.get(kind, name, namespace) for name, namespace in sorted(wanted)}
    return {name: each for name, each in found.items() if each is not None}


def _counted(view: View, namespaces: Iterable[str]) -> Mapping[str, int]:
    """Of tenants that are to go: what is left in them, whether it is watched or only released."""
    return {
        namespace: len({*_applications_in(view, namespace), *_released_in(view, namespace)}) for namespace in namespaces
    }


def _applications_in(view: View, namespace: str) -> Iterator[str]:
    for kind in application_kinds(view):
        for each in applications(view, kind, namespace):
            yield f"{kind}/{namespace}/{each['metadata']['name']}"


def _released_in(view: View, namespace: str) -> Iterator[str]:
    for release in view.indexed(names.RELEASE_KIND, names.BY_NAMESPACE, namespace):
        yield from watched.release_application(release)


# applications


def application_kinds(view: View) -> Mapping[str, ApplicationDefinition]:
    """The kinds that are declared, each with the definition that counts: the oldest."""
    found: dict[str, ApplicationDefinition] = {}
    for each in sorted(view.all(names.DEFINITION_KIND), key=_age):
        if each.kind and each.kind != names.TENANT_KIND:
            found.setdefault(each.kind, each)
    return found


def applications(view: View, kind: str, namespace: str = "") -> Sequence[Object]:
    """Those of a kind, or only those of one namespace; none where they are not watched yet."""
    try:
        if namespace:
            return view.indexed(watched.viewed(kind), names.BY_NAMESPACE, namespace)
        return view.all(watched.viewed(kind))
    except KeyError:
        return ()


def collect_application(view: View, kind: str, namespace: str, name: str) -> ApplicationSnapshot | None:
    definition = application_kinds(view).get(kind)
    if definition is None or is_served_elsewhere(view):
        return None
    try:
        application: Object | None = view.get(watched.viewed(kind), name, namespace)
    except KeyError:
        return None
    if application is None:
        return None
    release: Object | None = view.get(names.RELEASE_KIND, release_name(definition, name), namespace)
    standing = standing_of(view, namespace)
    wanted = {wanted_class(application) or "", standing.default}
    if release is not None:
        wanted |= set(watched.release_classes(release))
    return ApplicationSnapshot(
        application={**application, "apiVersion": names.APPS_API_VERSION, "kind": kind},
        definition=definition,
        standing=standing,
        classes=_found(view, names.CLASS_KIND, ((each, "") for each in wanted if each)),
        release=release,
        is_release_served=names.FLUX_VERSION in view.versions(names.FLUX_GROUP, names.RELEASE_KIND),
        other_release="" if release is not None else _other_release(view, kind, namespace, name),
        namespace_labels=Surroundings(view, namespace).namespace_labels(),
        is_asked=watched.is_asked(view.get(watched.REGISTRATIONS.kind, watched.REGISTRATION)),
    )


def _other_release(view: View, kind: str, namespace: str, name: str) -> str:
    """What it was released as before its definition changed the prefix."""
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
        trouble=_trouble(view, definition),
    )


def _age(definition: ApplicationDefinition) -> tuple[float, str]:
    created = definition.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, definition.name)


def rivals(view: View, definition: ApplicationDefinition) -> Iterator[ApplicationDefinition]:
    """Others that declare the kind or one of its names."""
    mine = _words(definition)
    for each in view.all(names.DEFINITION_KIND):
        if each.name != definition.name and (each.kind == definition.kind or mine & _words(each)):
            yield each


def _words(definition: ApplicationDefinition) -> set[str]:
    given = definition.spec.application
    return {given.plural, given.singular}


def _crd(view: View, definition: ApplicationDefinition) -> Object | None:
    """Only those that we made are watched: of another's, that its kind is served is all there is to know."""
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


def _trouble(view: View, definition: ApplicationDefinition) -> str:
    """While it is being deleted it matters that nothing is told yet; else only that something is wrong."""
    return _untold(view, definition.kind) if definition.is_deleting else _watch_trouble(view, definition.kind)


def _untold(view: View, kind: str) -> str:
    """Why it is not known which applications of a kind there are; empty where it is."""
    trouble = _watch_trouble(view, kind)
    return trouble or ("" if _is_synced(view, kind) else f"{watched.viewed(kind)} has not been told yet")


def _watch_trouble(view: View, kind: str) -> str:
    try:
        return view.trouble(watched.viewed(kind))
    except KeyError:
        return ""


def _is_synced(view: View, kind: str) -> bool:
    try:
        return view.is_synced(watched.viewed(kind))
    except KeyError:
        return False


# classes


def collect_class(view: View, name: str) -> ClassSnapshot | None:
    affinity_class: AffinityClass | None = view.get(names.CLASS_KIND, name)
    if affinity_class is None:
        return None
    nodes = (node.metadata for node in view.all(watched.NODE_METADATA.kind))
    return ClassSnapshot(
        affinity_class=affinity_class,
        zones=count_by_zone(compiled(affinity_class), nodes),
        users=users(view, name),
        violators=_violators(view, affinity_class),
        is_served_elsewhere=is_served_elsewhere(view),
    )


def _violators(view: View, affinity_class: AffinityClass) -> Sequence[str]:
    if not view.is_synced(watched.PLACED_PODS.kind):
        return ()
    pods = view.indexed(watched.PLACED_PODS.kind, names.BY_CLASS, affinity_class.name)
    return violators(affinity_class, pods, partial(node_named, view))
