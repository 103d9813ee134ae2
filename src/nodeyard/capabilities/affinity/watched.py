"""The kinds that are watched, and how their objects are found again.

Applications, HelmReleases, CRDs and Secrets are kept as the server has them, since they are compared with what an apply
would make of them. Of pods only what they are placed by is kept; of their owners, and of nodes, the metadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from nodeyard.admission.configurations import VALIDATING
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.choice import wanted_class
from nodeyard.capabilities.affinity.planning.previous import previous_classes
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
from nodeyard.runtime.webhooks import configuration_name, suffix

_FINISHED: Final = ("Succeeded", "Failed")
APPS_API_SERVICE: Final = f"{names.VERSION}.{names.APPS_GROUP}"
"""The APIService by which somebody else may serve tenants and applications."""


class PlacedSpec(NullableStruct, frozen=True):
    node_selector: StringMap = {}
    affinity: Affinity | None = None


class PlacedStatus(PlainStruct, frozen=True):
    phase: str = ""


class PlacedPod(PlainStruct, frozen=True):
    """A pod, by what it is placed by."""

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
"""By which the API server asks before it stores a pod."""
VALUES: Final = SECRETS
TENANT_NAMESPACES: Final = NAMESPACES.decoded_as(Namespace)
NODE_METADATA: Final = NODES.decoded_as(PartialObject)
PLACED_PODS: Final = PODS.decoded_as(PlacedPod)
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
"""Those of Kubernetes itself; others are watched from when they are first met."""


def viewed(kind: str) -> str:
    """How a view names a kind of application."""
    return f"{kind}.{names.APPS_GROUP}"


# how they are found


def tenant_classes(tenant: Tenant) -> Iterable[str]:
    named = {tenant.spec.default_affinity_class, *(tenant.spec.allowed_affinity_classes or ())}
    return sorted(each for each in named if each)


def tenant_own_namespace(tenant: Tenant) -> Iterable[str]:
    return (tenant.own_namespace,)


def application_classes(application: Object) -> Iterable[str]:
    name = wanted_class(application)
    return (name,) if name else ()


def release_classes(release: Object) -> Iterable[str]:
    labels = labels_of(release)
    return sorted({each for each in (labels.get(names.AFFINITY_CLASS), *previous_classes(labels)) if each})


def release_application(release: Object) -> Iterable[str]:
    """As `Kind/namespace/name`."""
    labels = labels_of(release)
    kind, name = labels.get(names.APPLICATION_KIND), labels.get(names.APPLICATION_NAME)
    if kind and name and labels.get(names.APPLICATION_GROUP) == names.APPS_GROUP:
        yield f"{kind}/{release['metadata']['namespace']}/{name}"


def pod_class(pod: PlacedPod) -> Iterable[str]:
    """Of a pod that has not finished: where the others were is over."""
    name = pod.metadata.labels.get(names.AFFINITY_CLASS)
    return (name,) if name and pod.status.phase not in _FINISHED else ()


def namespace_of(obj: Object) -> Iterable[str]:
    return (obj["metadata"].get("namespace", ""),)


def labels_of(obj: Any) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


def is_asked(registration: Object | None) -> bool:
    """Whether the API server asks where a pod may go, those of tenants at the least."""
    wanted = f"{names.PLACEMENT_TENANTS}{suffix(names.CAPABILITY)}"
    return registration is not None and any(each.get("name") == wanted for each in registration.get("webhooks") or ())


def is_served_elsewhere(service: Object | None) -> bool:
    """Whether a service of somebody else answers for the group; an APIService of a CRD names none."""
    return service is not None and bool((service.get("spec") or {}).get("service"))
