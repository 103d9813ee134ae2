"""Map watch events to the keys that they can affect, by indexes.

Our own status writes, node heartbeats and status changes of pods affect no decision. A change of a tenant affects the
applications below it, a change of a class its users. Any other event affects a few keys, whatever the cluster size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.classes import users
from nodeyard.capabilities.affinity.collect.definitions import application_kinds, applications, rivals
from nodeyard.capabilities.affinity.collect.placement_context import node_named
from nodeyard.capabilities.affinity.planning.classes import is_inside
from nodeyard.capabilities.affinity.planning.compiled_classes import compiled, is_in_class
from nodeyard.capabilities.affinity.reviews.pod_webhooks import is_webhook_registered
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.capabilities.affinity.watched import PlacedPod
from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Namespace, PartialObject
from nodeyard.runtime.capability import Key, View

_TENANTS = (names.TENANTS_KEY,)
_ENFORCEMENT_LABELS = (names.ENFORCEMENT, names.SYSTEM_NAMESPACE)
_DECIDING_FIELDS = ("uid", "generation", "labels", "annotations", "finalizers", "deletionTimestamp", "ownerReferences")


# kinds of affinity


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
        yield from _descendant_keys(view, tenant)


def tenant_keys(view: View, old: Tenant | None, new: Tenant | None) -> Iterable[Key]:
    if old and new and old.metadata.is_alike(new.metadata) and old.spec == new.spec:
        return
    yield names.TENANTS_KEY
    for tenant in filter(None, (old, new)):
        yield from (names.class_key(each) for each in watched.tenant_classes(tenant))
    present = new or old
    if present is not None and (old is None or new is None or old.spec != new.spec):
        yield from _descendant_keys(view, present)


def definition_keys(view: View, old: ApplicationDefinition | None, new: ApplicationDefinition | None) -> Iterable[Key]:
    if old and new and old.metadata.is_alike(new.metadata) and old.spec == new.spec:
        return
    for definition in filter(None, (old, new)):
        yield names.definition_key(definition.name)
        yield from (names.definition_key(each.name) for each in rivals(view, definition))
        yield from (_application_key(definition.kind, each) for each in applications(view, definition.kind))


# other kinds


def application_keys(kind: str, view: View, old: Object | None, new: Object | None) -> Iterator[Key]:
    application = new or old
    if application is None or (old and new and _has_same_metadata(old, new)):
        return
    yield _application_key(kind, application)
    before, after = ([] if each is None else watched.application_classes(each) for each in (old, new))
    yield from (names.class_key(each) for each in sorted({*before} ^ {*after}))
    if old is None or new is None:
        # All definitions of the kind, also newer ones: their deletion waits for the applications too.
        yield from (names.definition_key(each.name) for each in view.all(names.DEFINITION_KIND) if each.kind == kind)
        yield from _deleting_tenant_keys(view, application["metadata"]["namespace"])


def release_keys(view: View, old: Object | None, new: Object | None) -> Iterator[Key]:
    """Map a HelmRelease to its application, to applications blocked by its name, and to its classes."""
    release = new or old
    if release is None:
        return
    before, after = ([] if each is None else watched.release_classes(each) for each in (old, new))
    yield from (names.class_key(each) for each in sorted({*before} ^ {*after}))
    for each in filter(None, (old, new)):
        yield from (f"{names.APPLICATION_KEY_PREFIX}{application}" for application in watched.release_application(each))
    if old is None or new is None or watched.labels_of(old) != watched.labels_of(new):
        yield from _same_name_keys(view, release)
        yield from _deleting_tenant_keys(view, release["metadata"]["namespace"])


def namespace_keys(view: View, old: Namespace | None, new: Namespace | None) -> Iterator[Key]:
    """Map a Namespace of a tenant to the tree, and a changed enforcement label to the applications in it."""
    namespace = new or old
    if namespace is None:
        return
    name = namespace.metadata.name
    is_same = old and new and old.metadata.is_alike(new.metadata) and old.status.phase == new.status.phase
    if name.startswith(names.TENANT_PREFIX) and not is_same:
        yield names.TENANTS_KEY
    if (
        old
        and new
        and any(old.metadata.labels.get(each) != new.metadata.labels.get(each) for each in _ENFORCEMENT_LABELS)
    ):
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
    """Map a change of who serves the group to all keys."""
    if watched.is_served_elsewhere(old) == watched.is_served_elsewhere(new):
        return ()
    return all_keys(view)


def registration_keys(view: View, old: Object | None, new: Object | None) -> Iterator[Key]:
    """Map a change of the pod webhook to all applications, whose status shows it."""
    if is_webhook_registered(old) == is_webhook_registered(new):
        return
    for kind in application_kinds(view):
        yield from (_application_key(kind, each) for each in applications(view, kind))


def node_keys(view: View, old: PartialObject | None, new: PartialObject | None) -> Iterator[Key]:
    """Map a Node to the classes that it joins or leaves."""
    if old and new and old.metadata.labels == new.metadata.labels:
        return
    for affinity_class in view.all(names.CLASS_KIND):
        before, after = (_zone_in(affinity_class, each) for each in (old, new))
        if before != after:
            yield names.class_key(affinity_class.name)


def pod_keys(view: View, old: PlacedPod | None, new: PlacedPod | None) -> Iterator[Key]:
    """Map a pod to the class that it leaves or joins, and to a tenant whose deletion waits for it."""
    before, after = (_outside(view, each) for each in (old, new))
    if before != after:
        yield from (names.class_key(each) for each in (before, after) if each)
    yield from _contents_keys(view, *([] if each is None else watched.bare_pod_in(each) for each in (old, new)))


def unmanaged_keys(view: View, old: PartialObject | None, new: PartialObject | None) -> Iterable[Key]:
    """Map workloads and volumes to a tenant whose deletion waits for them, or for an approval."""
    return _contents_keys(view, *([] if each is None else watched.unmanaged_in(each) for each in (old, new)))


def _outside(view: View, pod: PlacedPod | None) -> str:
    """Return the class of a pod that could run outside it; empty otherwise."""
    if pod is None:
        return ""
    for name in watched.pod_class(pod):
        affinity_class: AffinityClass | None = view.get(names.CLASS_KIND, name)
        if affinity_class is not None and not is_inside(affinity_class, pod, partial(node_named, view)):
            return name
    return ""


def all_keys(view: View) -> Iterator[Key]:
    yield names.TENANTS_KEY
    yield from (names.class_key(each.name) for each in view.all(names.CLASS_KIND))
    yield from (names.definition_key(each.name) for each in view.all(names.DEFINITION_KIND))
    for kind in application_kinds(view):
        yield from (_application_key(kind, each) for each in applications(view, kind))


# affected keys


def _application_key(kind: str, application: Object) -> Key:
    metadata = application["metadata"]
    return names.application_key(kind, metadata.get("namespace", ""), metadata["name"])


def _same_name_keys(view: View, release: Object) -> Iterator[Key]:
    """Yield applications whose HelmRelease would have this name."""
    metadata = release["metadata"]
    for kind, definition in application_kinds(view).items():
        prefix = definition.spec.release.prefix
        if metadata["name"].startswith(prefix):
            yield names.application_key(kind, metadata["namespace"], metadata["name"][len(prefix) :])


def _deleting_tenant_keys(view: View, namespace: str) -> Iterable[Key]:
    """Return the tenants' key if the deletion of the namespace's tenant waits for its contents."""
    tenants: Sequence[Tenant] = view.indexed(names.TENANT_KIND, names.BY_NAMESPACE, namespace)
    return _TENANTS if any(each.is_deleting for each in tenants) else ()


def _contents_keys(view: View, before: Iterable[str], after: Iterable[str]) -> Iterator[Key]:
    """Yield keys for namespaces in which a counted object appeared or disappeared."""
    for namespace in {*before} ^ {*after}:
        yield from _deleting_tenant_keys(view, namespace)


def _descendant_keys(view: View, tenant: Tenant) -> Iterator[Key]:
    """Yield the applications in a tenant's namespace and in those of its descendants."""
    top = tenant.own_namespace
    inside = {top, *(each.own_namespace for each in view.all(names.TENANT_KIND) if _is_within(each, top))}
    for kind in application_kinds(view):
        for namespace in sorted(inside):
            yield from (_application_key(kind, each) for each in applications(view, kind, namespace))


def _is_within(tenant: Tenant, top: str) -> bool:
    return top == names.TENANT_ROOT or tenant.own_namespace.startswith(f"{top}-")


def _has_same_metadata(old: Object, new: Object) -> bool:
    """Compare the metadata that decides: a change of status affects nothing."""
    return all(old["metadata"].get(each) == new["metadata"].get(each) for each in _DECIDING_FIELDS)


def _zone_in(affinity_class: AffinityClass, node: PartialObject | None) -> Any:
    """Return the zone of a node in the class; None if it is not in the class."""
    if node is None or not is_in_class(compiled(affinity_class), node.metadata):
        return None
    return node.metadata.labels.get(ZONE, "")
