"""Identity of an informer: the resource, the selectors and the namespace it watches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from nodeyard.client.resources import Resource
from nodeyard.kube.objects import PartialObject
from nodeyard.kube.selectors import parse_labels
from nodeyard.watch.cache import Selection


class InformerSpec(Protocol):
    """The part of a watch declaration that identifies its informer."""

    @property
    def resource(self) -> Resource[Any]: ...
    @property
    def label_selector(self) -> str: ...
    @property
    def field_selector(self) -> str: ...
    @property
    def metadata_only(self) -> bool: ...
    @property
    def fallback_versions(self) -> tuple[str, ...]: ...
    @property
    def namespace(self) -> str: ...


@dataclass(frozen=True, slots=True)
class InformerKey:
    """Watches with equal keys share one informer."""

    resource: Resource[Any]
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    fallback_versions: tuple[str, ...] = ()
    """Versions to watch if the server does not serve the resource's own, in order of preference."""
    namespace: str = ""
    """The only namespace to watch; empty for all namespaces."""

    def names(self, kind: str) -> str:
        """Return the name of the kind in a view."""
        return in_namespace(kind, self.namespace)

    def covers(self, namespace: str) -> bool:
        """Return True if the informer watches this namespace."""
        return self.namespace in ("", namespace)

    @property
    def selection(self) -> Selection | None:
        if not self.label_selector and not self.field_selector:
            return None
        return Selection(parse_labels(self.label_selector), takes_newcomers=not self.field_selector)

    @property
    def decoded(self) -> Resource[Any]:
        """The resource with the type of the cached objects: PartialObject for a metadata-only watch."""
        is_whole = not self.metadata_only or self.resource.view is not dict
        return self.resource if is_whole else self.resource.decoded_as(PartialObject)

    def __str__(self) -> str:
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        selected = f"{self.resource}[{selectors}]" if selectors else str(self.resource)
        return f"{selected} in {self.namespace}" if self.namespace else selected


def key_of(watch: InformerSpec) -> InformerKey:
    return InformerKey(
        watch.resource,
        watch.label_selector,
        watch.field_selector,
        watch.metadata_only,
        watch.fallback_versions,
        watch.namespace,
    )


def in_namespace(kind: str, namespace: str) -> str:
    """Return the name in a view of a kind that is watched in one namespace only: `Secret@openstack`."""
    return f"{kind}@{namespace}" if namespace else kind
