"""Search over the caches: objects whose name contains a text, the best matches first."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
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


def search(
    text: str, nodes: CacheView, views: Mapping[str, tuple[Capability, CacheView]], visible: Visible
) -> list[Found]:
    """Return up to RESULTS objects: equal names first, then names that begin with the text, then the others."""
    kind, _, name = text.strip().lower()[:TEXT_MAX].rpartition("/")
    kind, _, namespace = kind.partition("/")
    if not name:
        return []
    ranked: dict[tuple[str, str, str, str], tuple[int, Found]] = {}
    for resource, owner, key in _objects(nodes, views, visible):
        rank = _rank(key[1].lower(), name)
        if rank is None or not resource.kind.lower().startswith(kind) or namespace not in ("", key[0]):
            continue
        subject = (resource.api_version, resource.kind, *key)
        # The capability whose root kind it is says more than one that only watches it.
        if subject not in ranked or owner:
            found = Found(
                kind=resource.kind, api_version=resource.api_version, namespace=key[0], name=key[1], capability=owner
            )
            ranked[subject] = rank, found
    best = heapq.nsmallest(
        RESULTS, ranked.values(), key=lambda each: (each[0], each[1].kind, each[1].namespace, each[1].name)
    )
    return [found for _, found in best]


def _rank(name: str, text: str) -> int | None:
    if text not in name:
        return None
    return 0 if name == text else 1 if name.startswith(text) else 2


def _objects(
    nodes: CacheView, views: Mapping[str, tuple[Capability, CacheView]], visible: Visible
) -> Iterator[tuple[Resource[Any], str, Key]]:
    """Yield each object with the capability whose root it is, if it is one."""
    yield from _named(nodes, frozenset(), "")
    for name, (capability, view) in views.items():
        if visible is None or name in visible:
            roots = frozenset((kind.resource.api_version, kind.resource.kind) for kind in capability.kinds)
            yield from _named(view, roots, name)


def _named(
    view: CacheView, roots: Collection[tuple[str, str]], capability: str
) -> Iterator[tuple[Resource[Any], str, Key]]:
    for informer in view.informers():
        resource, cache = informer.resource, informer.cache
        if resource.kind in _HIDDEN:
            continue
        owner = capability if (resource.api_version, resource.kind) in roots else ""
        for obj in cache.all():
            yield resource, owner, cache.key_of(obj)
