"""Collect an ApplicationDefinition with its CRD and its rivals."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.kinds import age, applications, unknown_applications, watch_error
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
