"""Register the capability: its kinds, watches, RBAC rules and callbacks. `keys` maps events to keys.

The tree of tenants is one key; every application, definition and class is a key of its own. ApplicationDefinitions
declare the kinds of applications. Owners of pods whose kind is not watched yet are watched once admission meets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from nodeyard.capabilities.affinity import definition, keys, names, watched
from nodeyard.capabilities.affinity.collect.applications import collect_application
from nodeyard.capabilities.affinity.collect.classes import collect_class
from nodeyard.capabilities.affinity.collect.definitions import application_kinds, collect_definition, find_application
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.collect.pods import collect_pod, unwatched_owner_kinds
from nodeyard.capabilities.affinity.collect.tenants import collect_tenants
from nodeyard.capabilities.affinity.messages.objects import root_of
from nodeyard.capabilities.affinity.plan import plan
from nodeyard.capabilities.affinity.policies import confinement, policies
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report import report
from nodeyard.capabilities.affinity.report.metrics import AffinityMetrics
from nodeyard.capabilities.affinity.snapshot import Snapshot
from nodeyard.capabilities.affinity.webhook import WEBHOOKS
from nodeyard.client.resources import Resource, of_kind
from nodeyard.kube.objects import PartialObject
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
                map_with_view=partial(keys.application_keys, kind),
                indexes={names.BY_CLASS: watched.application_classes, names.BY_NAMESPACE: watched.namespace_of},
                optional=True,
            )
    for api_version, kind in view.recent_kinds:
        yield Watch(of_kind(api_version, kind).decoded_as(PartialObject), metadata_only=True, optional=True)


def _watch_unmanaged(resource: Resource[PartialObject], *, optional: bool = False) -> Watch:
    """Watch workloads and volumes, which would be deleted with the namespace of a tenant."""
    indexes = {names.BY_NAMESPACE: watched.unmanaged_in}
    return Watch(resource, map_with_view=keys.unmanaged_keys, metadata_only=True, indexes=indexes, optional=optional)


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
        Kind(watched.CLASS_RESOURCE, definition.AFFINITY_CLASS.render),
        Kind(watched.TENANT_RESOURCE, definition.TENANT.render),
        Kind(watched.DEFINITION_RESOURCE, definition.APPLICATION_DEFINITION.render),
    ),
    watches=(
        Watch(watched.CLASS_RESOURCE, map_with_view=keys.class_keys),
        Watch(
            watched.TENANT_RESOURCE,
            map_with_view=keys.tenant_keys,
            indexes={names.BY_CLASS: watched.tenant_classes, names.BY_NAMESPACE: watched.tenant_own_namespace},
            optional=True,
        ),
        Watch(watched.DEFINITION_RESOURCE, map_with_view=keys.definition_keys),
        Watch(watched.TENANT_NAMESPACES, map_with_view=keys.namespace_keys),
        Watch(watched.VALUES, keys.values_keys, field_selector=f"metadata.name={names.VALUES_SECRET}"),
        Watch(
            watched.RELEASES,
            map_with_view=keys.release_keys,
            indexes={
                names.BY_CLASS: watched.release_classes,
                names.BY_APPLICATION: watched.release_application,
                names.BY_NAMESPACE: watched.namespace_of,
            },
            optional=True,
        ),
        Watch(watched.CRDS, keys.crd_keys, label_selector=names.DECLARED_BY),
        Watch(
            watched.APISERVICES,
            map_with_view=keys.api_service_keys,
            field_selector=f"metadata.name={watched.APPS_API_SERVICE}",
            optional=True,
        ),
        Watch(
            watched.REGISTRATIONS,
            map_with_view=keys.registration_keys,
            field_selector=f"metadata.name={watched.REGISTRATION}",
        ),
        Watch(watched.NODE_METADATA, map_with_view=keys.node_keys, metadata_only=True),
        Watch(
            watched.PLACED_PODS,
            map_with_view=keys.pod_keys,
            indexes={names.BY_SHAPE: watched.pod_shape, names.BY_NAMESPACE: watched.bare_pod_in},
            aggregates=(watched.POD_SHAPES,),
            needed=_needs_pods,
        ),
        *(_watch_unmanaged(each) for each in watched.OWNERS),
        _watch_unmanaged(watched.CLAIMS, optional=True),
    ),
    all_keys=keys.all_keys,
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
)
