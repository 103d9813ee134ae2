"""Whose an owner's pods are, remembered: a controller makes many, and the way up from it is the same for all of them.

What is remembered is good for as long as every object on the way is the very one that the cache has: a change of any of
them, be it of a label, is another object. Only ways that were walked in the cache and led to an application are kept.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from nodeyard.capabilities.affinity.owners import metadata_of, named, viewed
from nodeyard.capabilities.affinity.planning.lineage import Find, Owned, Sought, walk
from nodeyard.kube.objects import ObjectMeta, OwnerReference
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View

MOST: Final = 4096


class _Seen(NamedTuple):
    """An object on the way, and how it is found."""

    kind: str
    name: str
    namespace: str
    object: Any


class _Remembered(NamedTuple):
    way: tuple[_Seen, ...]
    lineage: Owned


_Key: TypeAlias = tuple[str, str, str, str, str]
_remembered: dict[_Key, _Remembered] = {}


def ancestry(owner: OwnerReference, namespace: str, view: View) -> Owned | None:
    """The lineage of what has this one owner; None where it has to be walked."""
    key = (owner.uid, owner.name, namespace, owner.kind, owner.api_version)
    known = _remembered.get(key)
    if known is not None and _is_current(known, view):
        return known.lineage
    way: list[_Seen] = []
    find = _noting(view, way)
    ref = ObjectRef(api_version=owner.api_version, kind=owner.kind, name=owner.name, namespace=namespace, uid=owner.uid)
    metadata = find(ref)
    lineage = walk(ref, metadata, find) if isinstance(metadata, ObjectMeta) else None
    if not isinstance(lineage, Owned):
        _remembered.pop(key, None)
        return None
    if len(_remembered) >= MOST and key not in _remembered:
        # The oldest: whoever is still asked for comes back.
        del _remembered[next(iter(_remembered))]
    _remembered[key] = _Remembered(tuple(way), lineage)
    return lineage


def _is_current(known: _Remembered, view: View) -> bool:
    get = view.get
    try:
        for kind, name, place, there in known.way:
            if get(kind, name, place) is not there:
                return False
    except KeyError:
        # A kind that nobody watches any more.
        return False
    return True


def _noting(view: View, way: list[_Seen]) -> Find:
    """Finds in the cache, and notes what it found."""

    def find(ref: ObjectRef) -> Sought:
        kind = viewed(ref)
        found = named(view, kind, ref)
        metadata = None if found is None else metadata_of(found)
        if metadata is None or (ref.uid and metadata.uid != ref.uid):
            return None
        way.append(_Seen(kind, ref.name, metadata.namespace, found))
        return metadata

    return find
