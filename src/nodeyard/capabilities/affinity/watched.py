"""The watched kinds and their index functions.

Applications, HelmReleases, CRDs and Secrets are cached as whole objects, since plans compare them with the result of an
apply. Pods are cached with the fields that decide their placement; owners and nodes only with their metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from nodeyard.admission.configurations import VALIDATING
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.choice import wanted_class
from nodeyard.capabilities.affinity.planning.class_record import previous_classes, stored_record
from nodeyard.capabilities.affinity.planning.containment import node_of_daemon
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.client.resources import (
    API_SERVICES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    Resource,
    untyped,
)
from nodeyard.kube.json import Object
from nodeyard.kube.node_affinity import Affinity
from nodeyard.kube.objects import Namespace, NullableStruct, ObjectMeta, PartialObject, PlainStruct, StringMap
from nodeyard.runtime.capability import Aggregate
from nodeyard.runtime.webhooks import configuration_name

_FINISHED: Final = ("Succeeded", "Failed")
APPS_API_SERVICE: Final = f"{names.VERSION}.{names.APPS_GROUP}"
"""The APIService by which the platform may serve tenants and applications."""


class PlacedSpec(NullableStruct, frozen=True):
    node_selector: StringMap = {}
    affinity: Affinity | None = None


class PlacedStatus(PlainStruct, frozen=True):
    phase: str = ""


class PlacedPod(PlainStruct, frozen=True):
    """The fields of a pod that decide its placement."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PlacedSpec = PlacedSpec()
    status: PlacedStatus = PlacedStatus()


CLASS_RESOURCE: Final = Resource(names.GROUP, names.VERSION, names.CLASS_PLURAL, names.CLASS_KIND, False, AffinityClass)
TENANT_RESOURCE: Final = Resource(names.APPS_GROUP, names.VERSION, names.TENANT_PLURAL, names.TENANT_KIND, True, Tenant)
DEFINITION_RESOURCE: Final = Resource(
    names.GROUP, names.VERSION, names.DEFINITION_PLURAL, names.DEFINITION_KIND, False, ApplicationDefinition
)
RELEASES: Final = untyped(names.FLUX_GROUP, names.FLUX_VERSION, names.RELEASE_PLURAL, names.RELEASE_KIND)
CRDS: Final = CUSTOM_RESOURCE_DEFINITIONS
APISERVICES: Final = API_SERVICES
REGISTRATIONS: Final = VALIDATING
REGISTRATION: Final = configuration_name(names.CAPABILITY)
"""Name of the ValidatingWebhookConfiguration with the pod webhook."""
VALUES: Final = SECRETS
TENANT_NAMESPACES: Final = NAMESPACES.decoded_as(Namespace)
NODE_METADATA: Final = NODES.decoded_as(PartialObject)
PLACED_PODS: Final = PODS.decoded_as(PlacedPod)
CLAIMS: Final = untyped("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim").decoded_as(PartialObject)
OWNERS: Final[tuple[Resource[PartialObject], ...]] = tuple(
    resource.decoded_as(PartialObject)
    for resource in (
        untyped("apps", "v1", "replicasets", "ReplicaSet"),
        untyped("apps", "v1", "deployments", "Deployment"),
        untyped("apps", "v1", "statefulsets", "StatefulSet"),
        DAEMON_SETS,
        untyped("batch", "v1", "jobs", "Job"),
        untyped("batch", "v1", "cronjobs", "CronJob"),
    )
)
"""Built-in workloads; other kinds of owners are watched once admission meets them."""


def view_kind(kind: str) -> str:
    """Return the name of an application kind in a view."""
    return f"{kind}.{names.APPS_GROUP}"


# indexes


def tenant_classes(tenant: Tenant) -> Iterable[str]:
    named = {tenant.spec.default_affinity_class, *(tenant.spec.allowed_affinity_classes or ())}
    return sorted(each for each in named if each)


def tenant_own_namespace(tenant: Tenant) -> Iterable[str]:
    return (tenant.own_namespace,)


def application_classes(application: Object) -> Iterable[str]:
    """Return the class in its spec and those in its record."""
    record = stored_record(application)
    named = {wanted_class(application), *(record.classes if record is not None else ())}
    return sorted(each for each in named if each)


def application_release(application: Object) -> Iterable[str]:
    """Return the HelmRelease in its record as `namespace/name`."""
    record = stored_record(application)
    return () if record is None else (f"{application['metadata']['namespace']}/{record.release}",)


def release_classes(release: Object) -> Iterable[str]:
    labels = labels_of(release)
    return sorted({each for each in (labels.get(names.AFFINITY_CLASS), *previous_classes(labels)) if each})


def release_application(release: Object) -> Iterable[str]:
    """Return the application of a HelmRelease as `Kind/namespace/name`."""
    labels = labels_of(release)
    kind, name = labels.get(names.APPLICATION_KIND), labels.get(names.APPLICATION_NAME)
    if kind and name and labels.get(names.APPLICATION_GROUP) == names.APPS_GROUP:
        yield f"{kind}/{release['metadata']['namespace']}/{name}"


def pod_class(pod: PlacedPod) -> Iterable[str]:
    """Return the class of a pod that has neither finished nor is being deleted."""
    name = pod.metadata.labels.get(names.AFFINITY_CLASS)
    is_finished = pod.status.phase in _FINISHED or pod.metadata.deletion_timestamp is not None
    return (name,) if name and not is_finished else ()


class Shape(NamedTuple):
    """Pods of a class with the same placement fields."""

    number: int
    pod: PlacedPod
    """A current or former pod of this shape."""


def pod_shape(pod: PlacedPod) -> Iterable[str]:
    """Return class and shape. The node name of a DaemonSet's pod is not part of its shape."""
    for name in pod_class(pod):
        yield f"{name} {shape_of(pod)}"


def shape_of(pod: PlacedPod) -> str:
    required = None if pod.spec.affinity is None else pod.spec.affinity.required_nodes
    is_daemon = bool(node_of_daemon(pod.metadata, required))
    fields = (sorted(pod.spec.node_selector.items()), None if is_daemon else required, is_daemon)
    return blake2b(msgspec.json.encode(fields), digest_size=12).hexdigest()


def _add_shape(shapes: Mapping[str, Shape], pod: PlacedPod) -> Mapping[str, Shape]:
    shape = shape_of(pod)
    known = shapes.get(shape)
    return {**shapes, shape: Shape(1, pod) if known is None else known._replace(number=known.number + 1)}


def _remove_shape(shapes: Mapping[str, Shape], pod: PlacedPod) -> Mapping[str, Shape]:
    shape = shape_of(pod)
    known = shapes[shape]
    others = {each: value for each, value in shapes.items() if each != shape}
    return others if known.number == 1 else {**others, shape: known._replace(number=known.number - 1)}


POD_SHAPES: Final = Aggregate(names.SHAPES, PLACED_PODS.kind, dict, pod_class, _add_shape, _remove_shape)
"""The cost per event depends on the number of shapes in the class, not of its pods."""


def namespace_of(obj: Object) -> Iterable[str]:
    return (obj["metadata"].get("namespace", ""),)


_COUNTED_CONTROLLERS: Final = frozenset((each.group, each.kind) for each in OWNERS)


def unmanaged_in(obj: PartialObject | PlacedPod) -> Iterable[str]:
    """Return the namespace of an object unless its controller is a workload, which is counted instead.

    Controllers of other kinds, such as the database of an operator, are not counted: what they control is.
    """
    controller = obj.metadata.controller
    if controller is not None and (controller.api_version.partition("/")[0], controller.kind) in _COUNTED_CONTROLLERS:
        return ()
    return (obj.metadata.namespace,)


def bare_pod_in(pod: PlacedPod) -> Iterable[str]:
    """Return the namespace of a pod that no workload controls and that has not finished."""
    return () if pod.status.phase in _FINISHED else unmanaged_in(pod)


def labels_of(obj: Any) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


def is_served_elsewhere(service: Object | None) -> bool:
    """Return whether the APIService names a service; an APIService of CRDs names none."""
    return service is not None and bool((service.get("spec") or {}).get("service"))
