"""The served resources: the built-in ones, and those of CRDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nodeyard.apiserver.resources import GroupResource, Resource


class Registry:
    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._resources: dict[GroupResource, Resource] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        """Counts changes, so that discovery and OpenAPI know when to rebuild."""
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        self._resources[resource.key] = resource
        self._kinds[resource.group, resource.kind] = resource

    def remove(self, key: GroupResource) -> None:
        resource = self._resources.pop(key, None)
        if resource is None:
            return
        if self._kinds.get((resource.group, resource.kind)) is resource:
            del self._kinds[resource.group, resource.kind]

    def get(self, group: str, plural: str) -> Resource | None:
        return self._resources.get(GroupResource(group, plural))

    def by_kind(self, group: str, kind: str) -> Resource | None:
        return self._kinds.get((group, kind))

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._resources.values()))
