"""Read the state that decides a placement from the informer caches: namespace, tenant policy, classes and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collect.definitions import application_kinds, applications
from nodeyard.capabilities.affinity.collect.owners import metadata_of
from nodeyard.capabilities.affinity.planning.class_record import stored_record
from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy, effective_policies
from nodeyard.capabilities.affinity.types import AffinityClass, Tenant
from nodeyard.kube.objects import ObjectMeta
from nodeyard.runtime.capability import View

_NO_TENANT: Final = EffectivePolicy()


class PlacementContext:
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
        for kind in application_kinds(self._view):
            records = map(stored_record, applications(self._view, kind, self._namespace))
            yield from (each.affinity_class for each in records if each is not None and each.affinity_class)

    def namespace_labels(self) -> Mapping[str, str]:
        namespace = self._view.get("Namespace", self._namespace)
        return {} if namespace is None else metadata_of(namespace).labels

    def nodes(self) -> Iterable[ObjectMeta]:
        return map(metadata_of, self._view.all("Node"))

    def node(self, name: str) -> ObjectMeta | None:
        return node_named(self._view, name)

    def policy(self) -> EffectivePolicy:
        return policy_of(self._view, self._namespace)


def node_named(view: View, name: str) -> ObjectMeta | None:
    found = view.get("Node", name)
    return None if found is None else metadata_of(found)


class _PolicyCache:
    """Caches the policies of the tree while the informer caches return the same tuples."""

    def __init__(self) -> None:
        # One tuple, replaced as a whole: another thread never combines tenants with the policies of others.
        self._known: tuple[Sequence[Tenant], Sequence[AffinityClass], Mapping[str, EffectivePolicy]] | None = None

    def get(self, tenants: Sequence[Tenant], classes: Sequence[AffinityClass]) -> Mapping[str, EffectivePolicy]:
        known = self._known
        if known is None or tenants is not known[0] or classes is not known[1]:
            found = effective_policies(tenants, frozenset(each.name for each in classes))
            known = self._known = (tenants, classes, found)
        return known[2]


_policy_cache: Final = _PolicyCache()


def policy_of(view: View, namespace: str) -> EffectivePolicy:
    """Return the effective policy of a namespace; an empty one outside tenants."""
    if not namespace.startswith(names.TENANT_PREFIX):
        return _NO_TENANT
    tree = _policy_cache.get(view.all(names.TENANT_KIND), view.all(names.CLASS_KIND))
    return tree.get(namespace, _NO_TENANT)
