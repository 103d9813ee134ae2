"""Which keys an event makes due: what it can change and nothing else, found by indexes.

Statuses that we write ourselves, heartbeats of nodes and what pods do while they run change nothing that is decided by.
A change of a tenant concerns the applications below it, one of a class those who use it; everything else concerns a few
keys, however much there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collecting import application_kinds, applications, rivals
from nodeyard.capabilities.affinity.planning.classes import violators
from nodeyard.capabilities.affinity.planning.compiled import compiled
from nodeyard.capabilities.affinity.planning.matching import is_in_class
from nodeyard.capabilities.affinity.surroundings import node_named
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.capabilities.affinity.users import users
from nodeyard.capabilities.affinity.watched import PlacedPod
from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Namespace, PartialObject
from nodeyard.runtime.capability import Key, View

_TENANTS = (names.TENANTS_KEY,)
_WEAKENING = (names.ENFORCEMENT, names.SYSTEM_NAMESPACE)
_DECIDING = ("uid", "generation", "labels", "annotations", "finalizers", "deletionTimestamp", "ownerReferences")


# ours


def class_keys(view: View, old: AffinityClass | None, new: AffinityClass | None) -> Iterable[Key]:
    affinity_class = new or old
    if affinity_class is None or (old and new and old.metadata.is_alike(new.metadata) and old.spec == new.spec):
        return
    name = affinity_class.name
    yield names.class_key(name)
    if old is None or new is None:
        yield names.TENANTS_KEY
    kinds = application_kinds(view)
    for user in users(view, name):
        if user.kind in kinds:
            yield names.application_key(user.kind, user.namespace, user.name)
    for tenant in view.indexed(names.TENANT_KIND, names.BY_CLASS, name):
        yield from _below(view, tenant)


def tenant_keys(view: View, old: Tenant | None, new: Tenant | None) -> Iterable[Key]:
    if old and new and old.metadata.is_alike(new.metadata) and old.spec == new.spec:
        return
    yield names.TENANTS_KEY
    for tenant in filter(None, (old, new)):
        yield from (names.class_key(each) for each in watched.tenant_classes(tenant))
    present = new or old
    if present is not None and (old is None or new is None or old.spec != new.spec):
        yield from _below(view, present)


def definition_keys(view: View, old: ApplicationDefinition | None, new: ApplicationDefinition | None) -> Iterable[Key]:
    if old and new and old.metadata.is_alike(new.metadata) and old.spec == new.spec:
        return
    for definition in filter(None, (old, new)):
        yield names.definition_key(definition.name)
        yield from (names.definition_key(each.name) for each in rivals(view, definition))
        yield from (_application_key(definition.kind, each) for each in applications(view, definition.kind))


# theirs


def application_keys(kind: str, view: View, old: Object | None, new: Object | None) -> Iterator[Key]:
    application = new or old
    if application is None or (old and new and _decides_alike(old, new)):
        return
    yield _application_key(kind, application)
    before, after = ([] if each is None else watched.application_classes(each) for each in (old, new))
    yield from (names.class_key(each) for each in sorted({*before} ^ {*after}))
    if old is None or new is None:
        definition = application_kinds(view).get(kind)
        yield from () if definition is None else (names.definition_key(definition.name),)
        yield from _of_leaving_tenant(view, application)


def release_keys(view: View, old: Object | None, new: Object | None) -> Iterator[Key]:
    """Its application, also of one that is refused because the name is taken; and whose pods its class is for."""
    release = new or old
    if release is None:
        return
    before, after = ([] if each is None else watched.release_classes(each) for each in (old, new))
    yield from (names.class_key(each) for each in sorted({*before} ^ {*after}))
    for each in filter(None, (old, new)):
        yield from _released(each)
    if old is None or new is None or watched.labels_of(old) != watched.labels_of(new):
        yield from _of_its_name(view, release)
        yield from _of_leaving_tenant(view, release)


def namespace_keys(view: View, old: Namespace | None, new: Namespace | None) -> Iterator[Key]:
    """A tenant's is planned with the tree; how hard a class is meant in it is said of the applications in any."""
    namespace = new or old
    if namespace is None:
        return
    name = namespace.metadata.name
    is_same = old and new and old.metadata.is_alike(new.metadata) and old.status.phase == new.status.phase
    if name.startswith(names.TENANT_PREFIX) and not is_same:
        yield names.TENANTS_KEY
    if old and new and any(old.metadata.labels.get(each) != new.metadata.labels.get(each) for each in _WEAKENING):
        for kind in application_kinds(view):
            yield from (_application_key(kind, each) for each in applications(view, kind, name))


def values_keys(old: Object | None, new: Object | None) -> Iterable[Key]:
    secret = new or old
    namespace = "" if secret is None else secret["metadata"].get("namespace", "")
    is_ours = namespace.startswith(names.TENANT_PREFIX) or namespace == names.PLATFORM_NAMESPACE
    return _TENANTS if is_ours else ()


def crd_keys(old: Object | None, new: Object | None) -> Iterable[Key]:
    named = {watched.labels_of(each).get(names.DECLARED_BY) for each in (old, new) if each is not None}
    return [names.definition_key(each) for each in sorted(filter(None, named))]


def api_service_keys(view: View, old: Object | None, new: Object | None) -> Iterable[Key]:
    """Whoever serves the group: everything in it changes hands."""
    if watched.is_served_elsewhere(old) == watched.is_served_elsewhere(new):
        return ()
    return all_keys(view)


def registration_keys(view: View, old: Object | None, new: Object | None) -> Iterator[Key]:
    """Every application says whether pods are checked."""
    if watched.is_asked(old) == watched.is_asked(new):
        return
    for kind in application_kinds(view):
        yield from (_application_key(kind, each) for each in applications(view, kind))


def node_keys(view: View, old: PartialObject | None, new: PartialObject | None) -> Iterator[Key]:
    """The classes that it comes into or leaves."""
    if old and new and old.metadata.labels == new.metadata.labels:
        return
    for affinity_class in view.all(names.CLASS_KIND):
        before, after = (_zone_in(affinity_class, each) for each in (old, new))
        if before != after:
            yield names.class_key(affinity_class.name)


def pod_keys(view: View, old: PlacedPod | None, new: PlacedPod | None) -> Iterator[Key]:
    """The class that it may be outside of."""
    for pod in filter(None, (old, new)):
        for name in watched.pod_class(pod):
            affinity_class: AffinityClass | None = view.get(names.CLASS_KIND, name)
            if affinity_class is not None and violators(affinity_class, (pod,), partial(node_named, view)):
                yield names.class_key(name)


def all_keys(view: View) -> Iterator[Key]:
    yield names.TENANTS_KEY
    yield from (names.class_key(each.name) for each in view.all(names.CLASS_KIND))
    yield from (names.definition_key(each.name) for each in view.all(names.DEFINITION_KIND))
    for kind in application_kinds(view):
        yield from (_application_key(kind, each) for each in applications(view, kind))


# who is meant


def _application_key(kind: str, application: Object) -> Key:
    metadata = application["metadata"]
    return names.application_key(kind, metadata.get("namespace", ""), metadata["name"])


def _released(release: Object) -> Iterator[Key]:
    return (f"{names.APPLICATION_KEY_PREFIX}{each}" for each in watched.release_application(release))


def _of_its_name(view: View, release: Object) -> Iterator[Key]:
    """Applications whose release would have this name."""
    metadata = release["metadata"]
    for kind, definition in application_kinds(view).items():
        prefix = definition.spec.release.prefix
        if metadata["name"].startswith(prefix):
            yield names.application_key(kind, metadata["namespace"], metadata["name"][len(prefix) :])


def _of_leaving_tenant(view: View, obj: Object) -> Iterable[Key]:
    """A tenant that is to go waits until nothing is left in it."""
    tenants: Sequence[Tenant] = view.indexed(names.TENANT_KIND, names.BY_NAMESPACE, obj["metadata"]["namespace"])
    return _TENANTS if any(each.is_deleting for each in tenants) else ()


def _below(view: View, tenant: Tenant) -> Iterator[Key]:
    """The applications in a tenant's namespace and in those of the tenants within it."""
    top = tenant.own_namespace
    inside = {top, *(each.own_namespace for each in view.all(names.TENANT_KIND) if _is_within(each, top))}
    for kind in application_kinds(view):
        for namespace in sorted(inside):
            yield from (_application_key(kind, each) for each in applications(view, kind, namespace))


def _is_within(tenant: Tenant, top: str) -> bool:
    return top == names.TENANT_ROOT or tenant.own_namespace.startswith(f"{top}-")


def _decides_alike(old: Object, new: Object) -> bool:
    """A status says nothing new about the application itself."""
    return all(old["metadata"].get(each) == new["metadata"].get(each) for each in _DECIDING)


def _zone_in(affinity_class: AffinityClass, node: PartialObject | None) -> Any:
    """Where a node counts for a class; None where it does not."""
    if node is None or not is_in_class(compiled(affinity_class), node.metadata):
        return None
    return node.metadata.labels.get(ZONE, "")
