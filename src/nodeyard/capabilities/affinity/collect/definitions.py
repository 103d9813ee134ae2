"""Collect an ApplicationDefinition with its CRD and rivals, and find the declared kinds and their applications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.planning.definitions import CRD_API_VERSION, CRD_KIND, crd_name
from nodeyard.capabilities.affinity.snapshot import DefinitionSnapshot
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View


def collect_definition(view: View, name: str) -> DefinitionSnapshot | None:
    definition: ApplicationDefinition | None = view.get(names.DEFINITION_KIND, name)
    if definition is None:
        return None
    return DefinitionSnapshot(
        definition=definition,
        crd=_crd(view, definition),
        former=list(_former(view, definition)),
        rivals=[each.name for each in rivals(view, definition) if age(each) < age(definition)],
        applications=len(applications(view, definition.kind)),
        is_served_elsewhere=is_served_elsewhere(view),
        # An unsynced cache matters only for a deletion.
        watch_error=(unknown_applications if definition.is_deleting else watch_error)(view, definition.kind),
    )


def _crd(view: View, definition: ApplicationDefinition) -> Object | None:
    """Return the CRD of a definition.

    Only CRDs with our label are watched. For a foreign CRD, discovery only tells that the kind is served.
    """
    name = crd_name(definition)
    found: Object | None = view.get(CRD_KIND, name)
    if found is not None or not view.versions(names.APPS_GROUP, definition.kind):
        return found
    served = {"conditions": [{"type": "Established", "status": "True"}]}
    return {"apiVersion": CRD_API_VERSION, "kind": CRD_KIND, "metadata": {"name": name}, "spec": {}, "status": served}


def _former(view: View, definition: ApplicationDefinition) -> Iterator[str]:
    for crd in view.all(CRD_KIND):
        metadata = crd["metadata"]
        is_its = watched.labels_of(crd).get(names.DECLARED_BY) == definition.name
        if is_its and metadata["name"] != crd_name(definition) and not metadata.get("deletionTimestamp"):
            yield metadata["name"]


def rivals(view: View, definition: ApplicationDefinition) -> Iterator[ApplicationDefinition]:
    """Yield other definitions that declare the same kind, plural or singular."""
    mine = _resource_names(definition)
    for each in view.all(names.DEFINITION_KIND):
        if each.name != definition.name and (each.kind == definition.kind or mine & _resource_names(each)):
            yield each


def _resource_names(definition: ApplicationDefinition) -> set[str]:
    given = definition.spec.application
    return {given.plural, given.singular}


# declared kinds


def application_kinds(view: View) -> Mapping[str, ApplicationDefinition]:
    """Return the declared kinds, each with its oldest definition, which is the effective one."""
    found: dict[str, ApplicationDefinition] = {}
    for each in sorted(view.all(names.DEFINITION_KIND), key=age):
        if each.kind and each.kind != names.TENANT_KIND:
            found.setdefault(each.kind, each)
    return found


def age(definition: ApplicationDefinition) -> tuple[float, str]:
    """Return a sort key: of two definitions of one kind, the older one counts."""
    created = definition.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, definition.name)


def applications(view: View, kind: str, namespace: str = "") -> Sequence[Object]:
    """Return the applications of a kind, or only those of one namespace; empty if the kind is not watched yet."""
    try:
        if namespace:
            return view.indexed(watched.view_kind(kind), names.BY_NAMESPACE, namespace)
        return view.all(watched.view_kind(kind))
    except KeyError:
        return ()


def applications_with_class(view: View, kind: str, affinity_class: str) -> Sequence[Object]:
    """Return the applications of a kind whose spec or record names the class; empty if it is not watched yet."""
    try:
        return view.indexed(watched.view_kind(kind), names.BY_CLASS, affinity_class)
    except KeyError:
        return ()


def find_application(view: View, kind: str, namespace: str, name: str) -> Object | None:
    """Return an application with its apiVersion and kind, which list items lack."""
    try:
        found = view.get(watched.view_kind(kind), name, namespace)
    except KeyError:
        return None
    return None if found is None else {**found, "apiVersion": names.APPS_API_VERSION, "kind": kind}


def watch_error(view: View, kind: str) -> str:
    """Return why the applications of a kind cannot be watched; empty if they can, or the kind is not declared yet."""
    try:
        return view.watch_error(watched.view_kind(kind))
    except KeyError:
        return ""


def unknown_applications(view: View, kind: str) -> str:
    """Return why the applications of a kind are not known; empty if the cache has synced."""
    if error := watch_error(view, kind):
        return error
    try:
        is_synced = view.is_synced(watched.view_kind(kind))
    except KeyError:
        is_synced = False
    return "" if is_synced else f"the cache of {watched.view_kind(kind)} has not synced yet"


def get_all(view: View, kind: str, wanted: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    """Return the objects with these names and namespaces, by name, as far as they exist."""
    found = {name: view.get(kind, name, namespace) for name, namespace in sorted(wanted)}
    return {name: each for name, each in found.items() if each is not None}
