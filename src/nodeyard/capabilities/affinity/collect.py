"""Collect the snapshot of a key from the informer caches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.caches.applications import (
    age,
    application_kinds,
    applications,
    find_application,
    rivals,
    unknown_applications,
    watch_error,
)
from nodeyard.capabilities.affinity.caches.owners import cached, is_served_elsewhere, without_foreign_records
from nodeyard.capabilities.affinity.caches.placement_context import PlacementContext, node_named, policy_of
from nodeyard.capabilities.affinity.caches.tenant_contents import count_applications, left_in, unknown_contents
from nodeyard.capabilities.affinity.caches.users import users
from nodeyard.capabilities.affinity.planning.classes import NAMED_PODS, is_inside, required_nodes, violators
from nodeyard.capabilities.affinity.planning.compiled_classes import compiled, count_by_zone
from nodeyard.capabilities.affinity.planning.containment import node_of_daemon
from nodeyard.capabilities.affinity.planning.definitions import CRD_API_VERSION, CRD_KIND, crd_name
from nodeyard.capabilities.affinity.planning.lineage import Find, LookupResult, Pending, walk
from nodeyard.capabilities.affinity.planning.placement import Subject, is_exempt, place
from nodeyard.capabilities.affinity.reviews.pod_webhooks import is_webhook_registered
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    PodSnapshot,
    Snapshot,
    TenantsSnapshot,
    release_name,
)
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Key, View
from nodeyard.runtime.webhooks import Cause, Missing, Unreadable


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
        applications={namespace: count_applications(view, namespace) for namespace in deleting},
        left={namespace: left for namespace in deleting if (left := left_in(view, namespace))},
        is_served_elsewhere=is_served_elsewhere(view),
        watch_error=unknown_contents(view) if deleting else "",
    )


def _get_all(view: View, kind: str, wanted: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    found = {name: view.get(kind, name, namespace) for name, namespace in sorted(wanted)}
    return {name: each for name, each in found.items() if each is not None}


# applications


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


# pods

_POD: Final = watched.PLACED_PODS.kind


def collect_pod(view: View, namespace: str, name: str) -> PodSnapshot | None:
    pod: watched.PlacedPod | None = view.get(_POD, name, namespace)
    if pod is None:
        return None
    lineage = walk(_ref(pod), pod.metadata, _finder(view, waits=False))
    if isinstance(lineage, Pending):
        return None
    context = PlacementContext(view, namespace)
    required = None if pod.spec.affinity is None else pod.spec.affinity.required_nodes
    node = node_of_daemon(pod.metadata, required)
    subject = Subject(f"pod {namespace}/{name}", namespace, pod.spec.node_selector, required, node)
    placement = place(subject, lineage, context)
    return PodSnapshot(
        ref=_ref(pod),
        lineage=lineage,
        placement=placement,
        policy=context.policy(),
        affinity_class=context.affinity_class(placement.affinity_class) if placement.affinity_class else None,
        is_exempt=is_exempt(namespace, context.namespace_labels()),
    )


def unwatched_owner_kinds(view: View, ref: ObjectRef) -> Iterator[tuple[str, str]]:
    """Yield the kinds of a pod's owners that are not watched yet, as apiVersion and kind."""
    pod: watched.PlacedPod | None = view.get(_POD, ref.name, ref.namespace) if ref.kind == _POD else None
    if pod is None:
        return
    found = walk(_ref(pod), pod.metadata, _finder(view, waits=True))
    if isinstance(found, Pending):
        yield from dict.fromkeys((each.api_version, each.kind) for each in found.refs)


def _ref(pod: watched.PlacedPod) -> ObjectRef:
    metadata = pod.metadata
    return ObjectRef(
        api_version="v1",
        kind=_POD,
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
    )


def _finder(view: View, *, waits: bool) -> Find:
    """Return a lookup in the caches. With `waits`, None stands for owners whose kind is not watched yet."""

    def find(ref: ObjectRef) -> LookupResult:
        # The walk itself compares the uid.
        found = cached(view, msgspec.structs.replace(ref, uid=""))
        return found or _absent(view, ref, waits=waits)

    return without_foreign_records(find, view)


def _absent(view: View, ref: ObjectRef, *, waits: bool) -> LookupResult:
    group = ref.api_version.rpartition("/")[0]
    kind = f"{ref.kind}.{group or 'core'}"
    try:
        watch_error, is_synced = view.watch_error(kind), view.is_synced(kind)
    except KeyError:
        return None if waits else Unreadable(f"{kind} is not watched", Cause.ERROR)
    if watch_error:
        return Unreadable(watch_error, Cause.FORBIDDEN if "forbidden" in watch_error else Cause.ERROR)
    if not is_synced:
        return Unreadable(f"the cache of {kind} has not synced yet", Cause.TIMEOUT)
    if not view.versions(group, ref.kind):
        return Unreadable(f"the API server does not serve {kind}", Cause.NOT_SERVED)
    return Missing()
