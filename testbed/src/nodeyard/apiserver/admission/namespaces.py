"""A cache of the namespaces for admission: labels and phase, without decoding."""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event, Store, Stored
from nodeyard.kube.json import Object

NAMESPACES = GroupResource("", "namespaces")


@dataclass(frozen=True, slots=True)
class Namespace:
    labels: dict[str, str]
    is_terminating: bool
    stored: Stored

    def object(self) -> Object:
        return self.stored.object()


class Namespaces:
    """Every namespace of a store, updated by its events."""

    def __init__(self, store: Store) -> None:
        self._known: dict[str, Namespace] = {}
        for stored in store.list(NAMESPACES):
            self._put(stored)
        self.close = store.listen(self._on_event)

    def get(self, name: str) -> Namespace | None:
        return self._known.get(name)

    def _on_event(self, resource: GroupResource, event: Event) -> None:
        if resource != NAMESPACES:
            return
        if event.type == "DELETED":
            self._known.pop(event.stored.key.name, None)
        else:
            self._put(event.stored)

    def _put(self, stored: Stored) -> None:
        phase = (stored.object().get("status") or {}).get("phase")
        self._known[stored.key.name] = Namespace(stored.labels, phase == "Terminating", stored)


def namespace_of(attributes: Attributes) -> str:
    """The namespace of a write. A Namespace is in its own, as on the real server."""
    if attributes.resource.key == NAMESPACES:
        return attributes.name
    return attributes.namespace
