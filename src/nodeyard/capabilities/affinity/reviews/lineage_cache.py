"""Cache the lineage of a pod's owner: a controller creates many pods, and the path up from it is the same for all.

An entry is valid while the informer caches hold the identical object for every step of the path: any change, even of a
label, replaces the object. Only paths that were found in the informer caches and led to an application are cached.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from nodeyard.capabilities.affinity import watched
from nodeyard.capabilities.affinity.collect.owners import find_named, metadata_of, view_kind_of, without_foreign_records
from nodeyard.capabilities.affinity.planning.lineage import Find, LookupResult, Owned, walk
from nodeyard.kube.objects import ObjectMeta, OwnerReference
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View

MAX_ENTRIES: Final = 4096


class _Step(NamedTuple):
    """An object on the path, and its key in the view."""

    kind: str
    name: str
    namespace: str
    object: Any


class _Entry(NamedTuple):
    path: tuple[_Step, ...]
    lineage: Owned


_Key: TypeAlias = tuple[str, str, str, str, str]
_cache: dict[_Key, _Entry] = {}


def cached_lineage(owner: OwnerReference, namespace: str, view: View) -> Owned | None:
    """Return the lineage of an object with this single owner; None if it has to be walked."""
    key = (owner.uid, owner.name, namespace, owner.kind, owner.api_version)
    known = _cache.get(key)
    if known is not None and _is_current(known, view):
        return known.lineage
    # The APIService that serves Applications decides too: see `owners.without_foreign_records`.
    service = view.get(watched.APISERVICES.kind, watched.APPS_API_SERVICE)
    path: list[_Step] = [_Step(watched.APISERVICES.kind, watched.APPS_API_SERVICE, "", service)]
    find = without_foreign_records(_recording_find(view, path), view)
    ref = ObjectRef(api_version=owner.api_version, kind=owner.kind, name=owner.name, namespace=namespace, uid=owner.uid)
    metadata = find(ref)
    lineage = walk(ref, metadata, find) if isinstance(metadata, ObjectMeta) else None
    if not isinstance(lineage, Owned):
        _cache.pop(key, None)
        return None
    if len(_cache) >= MAX_ENTRIES and key not in _cache:
        # Evict the oldest entry; one still in use is added again.
        del _cache[next(iter(_cache))]
    _cache[key] = _Entry(tuple(path), lineage)
    return lineage


def _is_current(known: _Entry, view: View) -> bool:
    get = view.get
    try:
        for kind, name, place, there in known.path:
            if get(kind, name, place) is not there:
                return False
    except KeyError:
        # The kind is no longer watched.
        return False
    return True


def _recording_find(view: View, path: list[_Step]) -> Find:
    """Return a lookup in the informer caches that appends what it finds to the path."""

    def find(ref: ObjectRef) -> LookupResult:
        kind = view_kind_of(ref)
        found = find_named(view, kind, ref)
        metadata = None if found is None else metadata_of(found)
        if metadata is None or (ref.uid and metadata.uid != ref.uid):
            return None
        path.append(_Step(kind, ref.name, metadata.namespace, found))
        return metadata

    return find
