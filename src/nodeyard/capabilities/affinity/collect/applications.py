"""Collect an ApplicationDefinition with its CRD and rivals, and an application with its policy, classes and release.

Also find the declared kinds and their applications, and read the state that decides a placement: namespace, tenant
policy, classes and nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere, metadata_of
from nodeyard.capabilities.affinity.planning.class_record import Record, stored_record
from nodeyard.capabilities.affinity.planning.definitions import CRD_API_VERSION, CRD_KIND, crd_name
from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy, effective_policies
from nodeyard.capabilities.affinity.planning.lineage import Application
from nodeyard.capabilities.affinity.reviews.pod_webhooks import is_webhook_registered
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot, DefinitionSnapshot, release_name
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta
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


def recorded_applications(view: View, namespace: str, release: str) -> Iterator[tuple[Application, Record | None]]:
    """Yield the applications whose record names this HelmRelease; none if an APIService serves them.

    Of a kind whose cache has not synced, yield the one that the HelmRelease is named after, without a record.
    """
    if is_served_elsewhere(view):
        return
    for kind, definition in application_kinds(view).items():
        if not is_cached(view, kind):
            prefix = definition.spec.release.prefix
            if release.startswith(prefix) and release != prefix:
                yield Application(names.APPS_GROUP, kind, release[len(prefix) :]), None
            continue
        for each in view.indexed(watched.view_kind(kind), names.BY_RELEASE, f"{namespace}/{release}"):
            if (record := stored_record(each)) is not None:
                yield Application(names.APPS_GROUP, kind, each["metadata"]["name"]), record


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
    return "" if is_cached(view, kind) else f"the cache of {watched.view_kind(kind)} has not synced yet"


def is_cached(view: View, kind: str) -> bool:
    """Return whether the cache of an application kind has synced."""
    try:
        return view.is_synced(watched.view_kind(kind))
    except KeyError:
        return False


def get_all(view: View, kind: str, wanted: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    """Return the objects with these names and namespaces, by name, as far as they exist."""
    found = {name: view.get(kind, name, namespace) for name, namespace in sorted(wanted)}
    return {name: each for name, each in found.items() if each is not None}


# what decides a placement


_NO_TENANT: Final = EffectivePolicy()


class PlacementContext:
    def __init__(self, view: View, namespace: str) -> None:
        self._view = view
        self._namespace = namespace

    def affinity_class(self, name: str) -> AffinityClass | None:
        found: AffinityClass | None = self._view.get(names.CLASS_KIND, name)
        return found

    def classes(self) -> Iterable[str]:
        return (each.name for each in self._view.all(names.CLASS_KIND))

    def classes_here(self) -> Iterable[str]:
        kinds = application_kinds(self._view)
        if not is_served_elsewhere(self._view) and not all(is_cached(self._view, kind) for kind in kinds):
            # Any class that may be chosen here may be recorded.
            allowed = self.policy().allowed
            yield from self.classes() if allowed is None else allowed
        for release in self._view.indexed(names.RELEASE_KIND, names.BY_NAMESPACE, self._namespace):
            name = metadata_of(release).labels.get(names.AFFINITY_CLASS)
            if name:
                yield name
        for kind in kinds:
            records = map(stored_record, applications(self._view, kind, self._namespace))
            yield from (each.affinity_class for each in records if each is not None and each.affinity_class)

    def namespace_labels(self) -> Mapping[str, str]:
        namespace = self._view.get("Namespace", self._namespace)
        return {} if namespace is None else metadata_of(namespace).labels

    def nodes(self) -> Iterable[ObjectMeta]:
        return map(metadata_of, self._view.all("Node"))

    def node(self, name: str) -> ObjectMeta | None:
        return node_named(self._view, name)

    def policy(self) -> EffectivePolicy:
        return policy_of(self._view, self._namespace)


def node_named(view: View, name: str) -> ObjectMeta | None:
    found = view.get("Node", name)
    return None if found is None else metadata_of(found)


class _PolicyCache:
    """Caches the policies of the tree while the informer caches return the same tuples."""

    def __init__(self) -> None:
        # One tuple, replaced as a whole: another thread never combines tenants with the policies of others.
        self._known: tuple[Sequence[Tenant], Sequence[AffinityClass], Mapping[str, EffectivePolicy]] | None = None

    def get(self, tenants: Sequence[Tenant], classes: Sequence[AffinityClass]) -> Mapping[str, EffectivePolicy]:
        known = self._known
        if known is None or tenants is not known[0] or classes is not known[1]:
            found = effective_policies(tenants, frozenset(each.name for each in classes))
            known = self._known = (tenants, classes, found)
        return known[2]


_policy_cache: Final = _PolicyCache()


def policy_of(view: View, namespace: str) -> EffectivePolicy:
    """Return the effective policy of a namespace; an empty one outside tenants."""
    if not namespace.startswith(names.TENANT_PREFIX):
        return _NO_TENANT
    tree = _policy_cache.get(view.all(names.TENANT_KIND), view.all(names.CLASS_KIND))
    return tree.get(namespace, _NO_TENANT)


def collect_application(view: View, kind: str, namespace: str, name: str) -> ApplicationSnapshot | None:
    definition = application_kinds(view).get(kind)
    if definition is None or is_served_elsewhere(view):
        return None
    application = find_application(view, kind, namespace, name)
    if application is None:
        return None
    release: Object | None = view.get(names.RELEASE_KIND, release_name(definition, name), namespace)
    policy = policy_of(view, namespace)
    wanted = {policy.default, *watched.application_classes(application)}
    if release is not None:
        wanted |= set(watched.release_classes(release))
    return ApplicationSnapshot(
        application=application,
        definition=definition,
        policy=policy,
        classes=get_all(view, names.CLASS_KIND, ((each, "") for each in wanted if each)),
        release=release,
        is_release_served=names.FLUX_VERSION in view.versions(names.FLUX_GROUP, names.RELEASE_KIND),
        other_release="" if release is not None else _other_release(view, application, definition),
        namespace_labels=PlacementContext(view, namespace).namespace_labels(),
        is_webhook_registered=is_webhook_registered(view.get(watched.REGISTRATIONS.kind, watched.REGISTRATION)),
    )


def _other_release(view: View, application: Object, definition: ApplicationDefinition) -> str:
    """Return the name of its HelmRelease from before the prefix of its definition changed.

    The record says which it is. Labels count only without one: anybody who may write HelmReleases sets them, and could
    keep the application from being released again.
    """
    namespace, name = application["metadata"]["namespace"], application["metadata"]["name"]
    record = stored_record(application)
    if record is not None:
        is_recorded = record.release != release_name(definition, name)
        return record.release if is_recorded and view.get(names.RELEASE_KIND, record.release, namespace) else ""
    releases = view.indexed(names.RELEASE_KIND, names.BY_APPLICATION, f"{definition.kind}/{namespace}/{name}")
    found = (str(release["metadata"]["name"]) for release in releases)
    return next((each for each in found if each.endswith(name)), "")
