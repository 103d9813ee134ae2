"""Register the capability: its kinds, watches, RBAC rules and callbacks, and the mapping of events to keys.

The tree of tenants is one key; every application, definition and class is a key of its own. ApplicationDefinitions
declare the kinds of applications. Owners of pods whose kind is not watched yet are watched once admission meets them.

Indexes find the keys that an event can affect. Our own status writes, node heartbeats and status changes of pods affect
no decision. A change of a tenant affects the applications below it, a change of a class its users. Any other event
affects a few keys, whatever the cluster size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.collect.applications import (
    application_kinds,
    applications,
    collect_application,
    collect_definition,
    find_application,
    rivals,
)
from nodeyard.capabilities.affinity.collect.classes import collect_class, is_violator, users
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.collect.pods import collect_pod, unwatched_owner_kinds
from nodeyard.capabilities.affinity.collect.tenants import collect_tenants
from nodeyard.capabilities.affinity.definition import AFFINITY_CLASS, APPLICATION_DEFINITION, TENANT
from nodeyard.capabilities.affinity.messages.objects import root_of
from nodeyard.capabilities.affinity.plan import plan
from nodeyard.capabilities.affinity.planning.containment import compiled, is_in_class
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report import report
from nodeyard.capabilities.affinity.report.metrics import AffinityMetrics
from nodeyard.capabilities.affinity.reviews.pod_webhooks import is_webhook_registered
from nodeyard.capabilities.affinity.snapshot import Snapshot
from nodeyard.capabilities.affinity.surface import SURFACE
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.capabilities.affinity.watched import PlacedPod
from nodeyard.capabilities.affinity.webhook import WEBHOOKS, confinement, policies
from nodeyard.client.resources import Resource, of_kind
from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Namespace, PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import (
    Admission,
    Alias,
    Capability,
    Dynamic,
    Explain,
    Key,
    Kind,
    PeerOperator,
    Roots,
    Rule,
    View,
    Watch,
)

_TENANTS = (names.TENANTS_KEY,)
_ENFORCEMENT_LABELS = (names.ENFORCEMENT, names.SYSTEM_NAMESPACE)
_CALM_SECONDS: Final = 1.0
"""Rate limit of what pods change: the count of a class, and the contents of a tenant that is being deleted."""
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
    if old is None or new is None or _whose(old) != _whose(new):
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
    if old is None or new is None or _placement_of(old) != _placement_of(new):
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
        if affinity_class is not None and is_violator(view, affinity_class, pod):
            return name
    return ""


def _placement_of(pod: PlacedPod) -> Any:
    """Return the fields of a pod that decide whether it is outside its class."""
    return (*watched.pod_class(pod), pod.spec, pod.metadata.owner_references)


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


def _whose(release: Object) -> Any:
    """Return the fields of a HelmRelease that can make it, or no longer make it, the release of an application."""
    return watched.labels_of(release), release["metadata"].get("ownerReferences")


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


# dispatch by key


_APPLICATION: Final = "application"


def _collect(view: View, key: Key, _now: datetime) -> Snapshot | None:
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


def _needs_pods(view: View) -> bool:
    """Classes place pods, and the pods of a tenant are counted before its namespace is deleted."""
    return bool(view.all(names.CLASS_KIND) or view.all(watched.TENANT_RESOURCE.kind))


def _declared(view: View) -> Iterable[Watch]:
    """Watch applications of declared kinds unless an APIService serves them, and recently met kinds of owners."""
    if not is_served_elsewhere(view):
        for kind in application_kinds(view):
            yield Watch(
                of_kind(names.APPS_API_VERSION, kind),
                map_with_view=partial(application_keys, kind),
                indexes={
                    names.BY_CLASS: watched.application_classes,
                    names.BY_NAMESPACE: watched.namespace_of,
                    names.BY_RELEASE: watched.application_release,
                },
                optional=True,
            )
    for api_version, kind in view.recent_kinds:
        # Applications are watched above, though one may be looked up before its cache has synced.
        if api_version != names.APPS_API_VERSION:
            yield Watch(of_kind(api_version, kind).decoded_as(PartialObject), metadata_only=True, optional=True)


def _watch_unmanaged(resource: Resource[PartialObject], *, optional: bool = False) -> Watch:
    """Watch workloads and volumes, which would be deleted with the namespace of a tenant."""
    indexes = {names.BY_NAMESPACE: watched.unmanaged_in}
    return Watch(resource, map_with_view=unmanaged_keys, metadata_only=True, indexes=indexes, optional=optional)


def _root_objects(view: View, key: Key) -> Sequence[Any]:
    if key == names.TENANTS_KEY:
        return view.all(names.TENANT_KIND)
    match key.split("/"):
        case ["class", name]:
            found = view.get(names.CLASS_KIND, name)
        case ["definition", name]:
            found = view.get(names.DEFINITION_KIND, name)
        case ["application", kind, namespace, name]:
            found = find_application(view, kind, namespace, name)
        case _:
            found = None
    return () if found is None else (found,)


def _keys_of(view: View, ref: ObjectRef) -> Iterable[Key]:
    """Map an object to the key that explains it: a HelmRelease to its application, a Namespace to its tenant."""
    group = ref.api_version.rpartition("/")[0]
    match group, ref.kind:
        case "", "Pod":
            yield names.pod_key(ref.namespace, ref.name)
        case "", "Namespace":
            yield names.TENANTS_KEY
        case names.GROUP, names.CLASS_KIND:
            yield names.class_key(ref.name)
        case names.GROUP, names.DEFINITION_KIND:
            yield names.definition_key(ref.name)
        case names.APPS_GROUP, names.TENANT_KIND:
            yield names.TENANTS_KEY
        case names.APPS_GROUP, _:
            yield names.application_key(ref.kind, ref.namespace, ref.name)
        case names.FLUX_GROUP, names.RELEASE_KIND:
            release = view.get(names.RELEASE_KIND, ref.name, ref.namespace)
            for each in () if release is None else watched.release_application(release):
                yield f"{names.APPLICATION_KEY_PREFIX}{each}"


def _parse_alias(name: str) -> Sequence[ObjectRef]:
    """Parse the NAME of `application/KIND/NAMESPACE/NAME`."""
    kind, _, rest = name.partition("/")
    namespace, _, own = rest.partition("/")
    if not (kind and namespace and own):
        return ()
    return (ObjectRef(api_version=names.APPS_API_VERSION, kind=kind, namespace=namespace, name=own),)


# CozyStack's API server registers an APIService with a service for the group of tenants and applications; the
# APIServices of our CRDs name no service. While it is there, plans do not touch its tenants, namespaces and releases.
# CozyStack has no AffinityClasses, so classes are enforced beside it, by the labels of its HelmReleases alone.
_COZYSTACK: Final = PeerOperator(
    "CozyStack's API server",
    f"It serves {names.APPS_API_VERSION}: tenants and applications are left to it, and pods are checked against the "
    f"class on their HelmReleases. To serve them here, delete APIService {watched.APPS_API_SERVICE}",
    is_apart=True,
)


def _find_cozystack(view: View, now: datetime) -> PeerOperator | None:
    return _COZYSTACK if is_served_elsewhere(view) else None


_READ: Final = ("get", "list", "watch")

AFFINITY: Final = Capability(
    name=names.CAPABILITY,
    kinds=(
        Kind(watched.CLASS_RESOURCE, AFFINITY_CLASS.render),
        Kind(watched.TENANT_RESOURCE, TENANT.render),
        Kind(watched.DEFINITION_RESOURCE, APPLICATION_DEFINITION.render),
    ),
    watches=(
        Watch(watched.CLASS_RESOURCE, map_with_view=class_keys),
        Watch(
            watched.TENANT_RESOURCE,
            map_with_view=tenant_keys,
            indexes={names.BY_CLASS: watched.tenant_classes, names.BY_NAMESPACE: watched.tenant_own_namespace},
            optional=True,
        ),
        Watch(watched.DEFINITION_RESOURCE, map_with_view=definition_keys),
        Watch(watched.TENANT_NAMESPACES, map_with_view=namespace_keys),
        Watch(watched.VALUES, values_keys, field_selector=f"metadata.name={names.VALUES_SECRET}"),
        Watch(
            watched.RELEASES,
            map_with_view=release_keys,
            indexes={
                names.BY_CLASS: watched.release_classes,
                names.BY_APPLICATION: watched.release_application,
                names.BY_NAMESPACE: watched.namespace_of,
            },
            optional=True,
        ),
        Watch(watched.CRDS, crd_keys, label_selector=names.DECLARED_BY),
        Watch(
            watched.APISERVICES,
            map_with_view=api_service_keys,
            field_selector=f"metadata.name={watched.APPS_API_SERVICE}",
            optional=True,
        ),
        Watch(
            watched.REGISTRATIONS,
            map_with_view=registration_keys,
            field_selector=f"metadata.name={watched.REGISTRATION}",
        ),
        Watch(watched.NODE_METADATA, map_with_view=node_keys, metadata_only=True),
        Watch(
            watched.PLACED_PODS,
            map_with_view=pod_keys,
            indexes={names.BY_SHAPE: watched.pod_shape, names.BY_NAMESPACE: watched.bare_pod_in},
            aggregates=(watched.POD_SHAPES,),
            needed=_needs_pods,
            min_interval=_CALM_SECONDS,
        ),
        *(_watch_unmanaged(each) for each in watched.OWNERS),
        _watch_unmanaged(watched.CLAIMS, optional=True),
    ),
    all_keys=all_keys,
    collect=_collect,
    plan=plan,
    report=report,
    rbac=(
        Rule(names.GROUP, (names.CLASS_PLURAL, names.DEFINITION_PLURAL), (*_READ, "patch")),
        Rule(names.GROUP, (f"{names.CLASS_PLURAL}/status", f"{names.DEFINITION_PLURAL}/status"), ("patch",)),
        # All declared kinds are in this group. Tenants and applications are read, and get finalizers and records.
        Rule(names.APPS_GROUP, ("*",), (*_READ, "patch")),
        # For OwnerReferencesPermissionEnforcement: HelmReleases and child namespaces set blockOwnerDeletion.
        Rule(names.APPS_GROUP, ("*/finalizers",), ("update",)),
        Rule("", ("namespaces/finalizers",), ("update",)),
        Rule("", ("namespaces",), (*_READ, "create", "patch", "delete")),
        # resourceNames also covers an apply that creates, and a list by field selector.
        Rule("", ("secrets",), (*_READ, "create", "patch"), (names.VALUES_SECRET,)),
        # The operator never deletes a HelmRelease. OwnerReferencesPermissionEnforcement requires the verb to adopt
        # one: the owner reference can cause its deletion.
        Rule(names.FLUX_GROUP, (names.RELEASE_PLURAL,), (*_READ, "create", "patch", "delete")),
        Rule(watched.CRDS.group, (watched.CRDS.plural,), (*_READ, "create", "patch", "delete")),
        Rule(watched.APISERVICES.group, (watched.APISERVICES.plural,), ("list", "watch"), (watched.APPS_API_SERVICE,)),
        Rule(watched.REGISTRATIONS.group, (watched.REGISTRATIONS.plural,), ("list", "watch"), (watched.REGISTRATION,)),
        Rule("", ("nodes", "pods"), _READ),
        # Counted before a tenant's namespace is deleted.
        Rule("", (watched.CLAIMS.plural,), ("list", "watch")),
        Rule("apps", ("replicasets", "deployments", "statefulsets", "daemonsets"), _READ),
        Rule("batch", ("jobs", "cronjobs"), _READ),
    ),
    metrics=AffinityMetrics,
    replaces=_find_cozystack,
    roots=Roots(_root_objects, of_action=root_of),
    explain=Explain(
        _keys_of,
        kinds=unwatched_owner_kinds,
        healthy=frozenset(
            {Reason.TENANT_READY, Reason.CLASSES_VALID, Reason.SERVED, Reason.ENFORCED, Reason.NODES_MATCH}
        ),
        aliases={_APPLICATION: Alias(_parse_alias, "KIND/NAMESPACE/NAME")},
    ),
    admission=Admission(WEBHOOKS, policies, confinement),
    dynamic=Dynamic(_declared),
    surface=SURFACE,
)
