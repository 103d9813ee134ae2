"""What affinity watches, and what it is made of. Which events concern which keys is in `keys`; no decisions here.

The tree of tenants is planned as a whole, every application, definition and class by itself. Kinds of applications are
declared by ApplicationDefinitions; owners of pods that are of kinds nobody knew are watched from when they are met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from nodeyard.capabilities.affinity import definition, keys, names, watched
from nodeyard.capabilities.affinity.collecting import application_kinds, collect, is_served_elsewhere
from nodeyard.capabilities.affinity.events import events
from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.metrics import AffinityMetrics
from nodeyard.capabilities.affinity.originals import living_original
from nodeyard.capabilities.affinity.plan import plan
from nodeyard.capabilities.affinity.pods import POD, pod_key, sights
from nodeyard.capabilities.affinity.policies import policies
from nodeyard.capabilities.affinity.status import status
from nodeyard.capabilities.affinity.webhook import WEBHOOKS
from nodeyard.client.resources import of_kind
from nodeyard.kube.objects import PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Capability, Key, Kind, Rule, View, Watch

_APPLICATION: Final = "application"
_NAMESPACE: Final = "Namespace"


def _has_classes(view: View) -> bool:
    return bool(view.all(names.CLASS_KIND))


def _declared(view: View) -> Iterable[Watch]:
    """Applications of the declared kinds, where they are ours to serve, and owners of kinds that were met."""
    if not is_served_elsewhere(view):
        for kind in application_kinds(view):
            yield Watch(
                of_kind(names.APPS_API_VERSION, kind),
                keys_in=partial(keys.application_keys, kind),
                indexes={names.BY_CLASS: watched.application_classes, names.BY_NAMESPACE: watched.namespace_of},
                optional=True,
            )
    for api_version, kind in view.sightings:
        yield Watch(of_kind(api_version, kind).decoded_as(PartialObject), metadata_only=True, optional=True)


def _roots(view: View, key: Key) -> Sequence[Any]:
    if key == names.TENANTS_KEY:
        return view.all(names.TENANT_KIND)
    match key.split("/"):
        case ["class", name]:
            found = view.get(names.CLASS_KIND, name)
        case ["definition", name]:
            found = view.get(names.DEFINITION_KIND, name)
        case ["application", kind, namespace, name]:
            found = _application(view, kind, namespace, name)
        case _:
            found = None
    return () if found is None else (found,)


def _application(view: View, kind: str, namespace: str, name: str) -> Any | None:
    try:
        found = view.get(watched.viewed(kind), name, namespace)
    except KeyError:
        return None
    return None if found is None else {**found, "apiVersion": names.APPS_API_VERSION, "kind": kind}


def _keys_of(view: View, ref: ObjectRef) -> Iterable[Key]:
    """Everything explains itself; a release, its application; a namespace, its tenant."""
    group = ref.api_version.rpartition("/")[0]
    match group, ref.kind:
        case "", _ if ref.kind == POD:
            yield pod_key(ref.namespace, ref.name)
        case "", _ if ref.kind == _NAMESPACE:
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


def _meant(name: str) -> Sequence[ObjectRef]:
    """What `application/KIND/NAMESPACE/NAME` means."""
    kind, _, rest = name.partition("/")
    namespace, _, own = rest.partition("/")
    if not (kind and namespace and own):
        return ()
    return (ObjectRef(api_version=names.APPS_API_VERSION, kind=kind, namespace=namespace, name=own),)


_READ: Final = ("get", "list", "watch")

AFFINITY: Final = Capability(
    name=names.CAPABILITY,
    kinds=(
        Kind(watched.CLASS_RESOURCE, definition.AFFINITY_CLASS.render),
        Kind(watched.TENANT_RESOURCE, definition.TENANT.render),
        Kind(watched.DEFINITION_RESOURCE, definition.APPLICATION_DEFINITION.render),
    ),
    watches=(
        Watch(watched.CLASS_RESOURCE, keys_in=keys.class_keys),
        Watch(
            watched.TENANT_RESOURCE,
            keys_in=keys.tenant_keys,
            indexes={names.BY_CLASS: watched.tenant_classes, names.BY_NAMESPACE: watched.tenant_own_namespace},
            optional=True,
        ),
        Watch(watched.DEFINITION_RESOURCE, keys_in=keys.definition_keys),
        Watch(watched.TENANT_NAMESPACES, keys_in=keys.namespace_keys),
        Watch(watched.VALUES, keys.values_keys, field_selector=f"metadata.name={names.VALUES_SECRET}"),
        Watch(
            watched.RELEASES,
            keys_in=keys.release_keys,
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
            keys_in=keys.api_service_keys,
            field_selector=f"metadata.name={watched.APPS_API_SERVICE}",
            optional=True,
        ),
        Watch(
            watched.REGISTRATIONS,
            keys_in=keys.registration_keys,
            field_selector=f"metadata.name={watched.REGISTRATION}",
        ),
        Watch(watched.NODE_METADATA, keys_in=keys.node_keys, metadata_only=True),
        Watch(
            watched.PLACED_PODS,
            keys_in=keys.pod_keys,
            indexes={names.BY_CLASS: watched.pod_class},
            needed=_has_classes,
        ),
        *(Watch(each, metadata_only=True) for each in watched.OWNERS),
    ),
    declared=_declared,
    collect=collect,
    plan=plan,
    status=status,
    events=events,
    messages=text,
    rbac=(
        Rule(names.GROUP, (names.CLASS_PLURAL, names.DEFINITION_PLURAL), (*_READ, "patch")),
        Rule(names.GROUP, (f"{names.CLASS_PLURAL}/status", f"{names.DEFINITION_PLURAL}/status"), ("patch",)),
        # Whatever kinds are declared, they are in this group: tenants and applications are read, and taken into care.
        Rule(names.APPS_GROUP, ("*",), (*_READ, "patch")),
        # Where OwnerReferencesPermissionEnforcement is on: releases and namespaces of children hold their owners back.
        Rule(names.APPS_GROUP, ("*/finalizers",), ("update",)),
        Rule("", ("namespaces/finalizers",), ("update",)),
        Rule("", ("namespaces",), (*_READ, "create", "patch", "delete")),
        # An apply that creates is judged by the name too, and so is a list by field selector.
        Rule("", ("secrets",), (*_READ, "create", "patch"), (names.VALUES_SECRET,)),
        # We never delete one. The right is asked for where one is adopted and OwnerReferencesPermissionEnforcement is
        # on: an owner reference can have it deleted.
        Rule(names.FLUX_GROUP, (names.RELEASE_PLURAL,), (*_READ, "create", "patch", "delete")),
        Rule(watched.CRDS.group, (watched.CRDS.plural,), (*_READ, "create", "patch", "delete")),
        Rule(watched.APISERVICES.group, (watched.APISERVICES.plural,), ("list", "watch"), (watched.APPS_API_SERVICE,)),
        Rule(watched.REGISTRATIONS.group, (watched.REGISTRATIONS.plural,), ("list", "watch"), (watched.REGISTRATION,)),
        Rule("", ("nodes", "pods"), _READ),
        Rule("apps", ("replicasets", "deployments", "statefulsets", "daemonsets"), _READ),
        Rule("batch", ("jobs", "cronjobs"), _READ),
    ),
    roots=_roots,
    keys_of=_keys_of,
    sights=sights,
    all_keys=keys.all_keys,
    metrics=AffinityMetrics,
    original=living_original,
    webhooks=WEBHOOKS,
    policies=policies,
    aliases={_APPLICATION: _meant},
    stages=("releases",),
    example="03-affinity",
)
