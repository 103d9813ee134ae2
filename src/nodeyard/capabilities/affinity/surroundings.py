"""What the cache knows of a namespace, its tenant and the classes: what a pod's placement is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.owners import metadata_of
from nodeyard.capabilities.affinity.planning.inheritance import standings
from nodeyard.capabilities.affinity.snapshot import Standing
from nodeyard.capabilities.affinity.types import AffinityClass, Tenant
from nodeyard.kube.objects import ObjectMeta
from nodeyard.runtime.capability import View

_NO_TENANT: Final = Standing()


class Surroundings:
    def __init__(self, view: View, namespace: str) -> None:
        self._view = view
        self._namespace = namespace

    def affinity_class(self, name: str) -> AffinityClass | None:
        found: AffinityClass | None = self._view.get(names.CLASS_KIND, name)
        return found

    def classes(self) -> Iterable[str]:
        return (each.name for each in self._view.all(names.CLASS_KIND))

    def classes_here(self) -> Iterable[str]:
        for release in self._view.indexed(names.RELEASE_KIND, names.BY_NAMESPACE, self._namespace):
            name = metadata_of(release).labels.get(names.AFFINITY_CLASS)
            if name:
                yield name

    def namespace_labels(self) -> Mapping[str, str]:
        namespace = self._view.get("Namespace", self._namespace)
        return {} if namespace is None else metadata_of(namespace).labels

    def node(self, name: str) -> ObjectMeta | None:
        return node_named(self._view, name)

    def standing(self) -> Standing:
        return standing_of(self._view, self._namespace)


def node_named(view: View, name: str) -> ObjectMeta | None:
    found = view.get("Node", name)
    return None if found is None else metadata_of(found)


class _Told:
    """The tree as it was last told, for as long as the caches have not changed: they then give the same tuples."""

    def __init__(self) -> None:
        # One value, replaced as a whole: another thread never sees the tree of other tenants than it asks about.
        self._known: tuple[Sequence[Tenant], Sequence[AffinityClass], Mapping[str, Standing]] | None = None

    def of(self, tenants: Sequence[Tenant], classes: Sequence[AffinityClass]) -> Mapping[str, Standing]:
        known = self._known
        if known is None or tenants is not known[0] or classes is not known[1]:
            found = standings(tenants, frozenset(each.name for each in classes))
            known = self._known = (tenants, classes, found)
        return known[2]


_told: Final = _Told()


def standing_of(view: View, namespace: str) -> Standing:
    """What the tenants say about a namespace; nothing outside of tenants."""
    if not namespace.startswith(names.TENANT_PREFIX):
        return _NO_TENANT
    tree = _told.of(view.all(names.TENANT_KIND), view.all(names.CLASS_KIND))
    return tree.get(namespace, _NO_TENANT)
