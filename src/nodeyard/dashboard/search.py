"""Search over the caches: objects whose name contains a text, the best matches first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodeyard.client.resources import Resource
from nodeyard.dashboard.feed import Visible
from nodeyard.dashboard.wire import Found
from nodeyard.kube.object_key import Key
from nodeyard.runtime.capability import Capability
from nodeyard.watch.view import CacheView

RESULTS: Final = 50
TEXT_MAX: Final = 300
_HIDDEN: Final = frozenset({"Secret", "Lease"})


@dataclass(frozen=True)
class Listed:
    """The objects of one cache, which may be compared in another thread."""

    resource: Resource[Any]
    owner: str
    """The capability whose root kind it is, if it is one."""
    objects: Sequence[Any]
    key_of: Callable[[Any], Key]


def list_objects(nodes: CacheView, views: Mapping[str, tuple[Capability, CacheView]], visible: Visible) -> list[Listed]:
    """Return what a viewer may find, cache by cache."""
    found = [*_listed(nodes, frozenset(), "")]
    for name, (capability, view) in views.items():
        if visible is None or name in visible:
            roots = frozenset((kind.resource.api_version, kind.resource.kind) for kind in capability.kinds)
            found += _listed(view, roots, name)
    return found


def _listed(view: CacheView, roots: Collection[tuple[str, str]], capability: str) -> Iterator[Listed]:
    for informer in view.informers():
        resource, cache = informer.resource, informer.cache
        if resource.kind not in _HIDDEN:
            is_root = (resource.api_version, resource.kind) in roots
            yield Listed(resource, capability if is_root else "", cache.all(), cache.key_of)


def search(text: str, listed: Iterable[Listed]) -> list[Found]:
    """Return up to RESULTS objects: equal names first, then names that begin with the text, then the others."""
    kind, _, name = text.strip().lower()[:TEXT_MAX].rpartition("/")
    kind, _, namespace = kind.partition("/")
    if not name:
        return []
    ranked: dict[tuple[str, str, str, str], tuple[int, Found]] = {}
    for each in listed:
        resource = each.resource
        if not resource.kind.lower().startswith(kind):
            continue
        for key in map(each.key_of, each.objects):
            rank = _rank(key[1].lower(), name)
            subject = (resource.api_version, resource.kind, *key)
            # The capability whose root kind it is says more than one that only watches it.
            if rank is None or namespace not in ("", key[0]) or (subject in ranked and not each.owner):
                continue
            ranked[subject] = (
                rank,
                Found(
                    kind=resource.kind,
                    api_version=resource.api_version,
                    namespace=key[0],
                    name=key[1],
                    capability=each.owner,
                ),
            )
    best = heapq.nsmallest(
        RESULTS, ranked.values(), key=lambda each: (each[0], each[1].kind, each[1].namespace, each[1].name)
    )
    return [found for _, found in best]


def _rank(name: str, text: str) -> int | None:
    if text not in name:
        return None
    return 0 if name == text else 1 if name.startswith(text) else 2
