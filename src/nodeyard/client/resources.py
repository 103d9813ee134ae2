"""Resources: group, version, plural and kind of an API, and the type its objects are decoded into.

    NODES                              every node as a dict
    NODES.decoded_as(NodeView)         the same nodes, only the fields that NodeView has

Built-in kinds that the engine uses are defined here; others come from discovery.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from nodeyard.kube.json import Object

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    view: type[T]
    """The type of decoded objects: dict, or a msgspec Struct with the needed fields."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def decoded_as(self, type: type[V]) -> Resource[V]:
        return replace(cast("Resource[Any]", self), view=type)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of all objects, of a namespace, of one object, or of its subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            if self.namespaced and not namespace:
                raise ValueError(f"{self.kind} {name}: the namespace is missing")
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def untyped(group: str, version: str, plural: str, kind: str, *, namespaced: bool = True) -> Resource[Object]:
    """Return a resource whose objects are plain dicts."""
    return Resource(group, version, plural, kind, namespaced, dict)


def of_kind(api_version: str, kind: str) -> Resource[Object]:
    """Return a resource by kind only. Discovery supplies its plural and scope; until then it has no path."""
    group, _, version = api_version.rpartition("/")
    return untyped(group, version, "", kind)


def view_kind(api_version: str, kind: str) -> str:
    """Return the unique name of a kind in a view: `Cluster.kosmos.io`, `Node.core`."""
    return f"{kind}.{api_version.rpartition('/')[0] or 'core'}"


NAMESPACES = untyped("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = untyped("", "v1", "nodes", "Node", namespaced=False)
PODS = untyped("", "v1", "pods", "Pod")
SECRETS = untyped("", "v1", "secrets", "Secret")
CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")
EVENTS = untyped("events.k8s.io", "v1", "events", "Event")
LEASES = untyped("coordination.k8s.io", "v1", "leases", "Lease")
DAEMON_SETS = untyped("apps", "v1", "daemonsets", "DaemonSet")
CUSTOM_RESOURCE_DEFINITIONS = untyped(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
API_SERVICES = untyped("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
