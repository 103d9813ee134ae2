"""Find owners of pods in the informer caches, or among the lookups of a review.

An object that is not in the cache may still exist: its kind may not be watched, or the watch may lag. Only a lookup at
the API server tells that it is missing. An object with another uid than the reference is looked up as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from nodeyard.capabilities.affinity import names, watched
from nodeyard.capabilities.affinity.planning.lineage import Find, LookupResult
from nodeyard.client.resources import view_kind
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import Found, LookedUp, Missing

_NO_RECORD: Final = Missing()


def finder(view: View, answers: Mapping[ObjectRef, LookedUp]) -> Find:
    def find(ref: ObjectRef) -> LookupResult:
        if answers and (answer := answers.get(ref)) is not None:
            return answer.object.metadata if isinstance(answer, Found) else answer
        return cached(view, ref)

    return without_foreign_records(find, view)


def without_foreign_records(find: Find, view: View) -> Find:
    """Hide Applications that an APIService serves: the operator does not guard their records."""
    if not is_served_elsewhere(view):
        return find
    return lambda ref: _NO_RECORD if ref.api_version.partition("/")[0] == names.APPS_GROUP else find(ref)


def is_served_elsewhere(view: View) -> bool:
    """Return whether an APIService of the platform serves tenants and applications."""
    return watched.is_served_elsewhere(view.get(watched.APISERVICES.kind, watched.APPS_API_SERVICE))


def cached(view: View, ref: ObjectRef) -> ObjectMeta | None:
    """Return the cached metadata; None also if the object of that name has another uid."""
    found = find_named(view, view_kind(ref.api_version, ref.kind), ref)
    if found is None:
        return None
    metadata = metadata_of(found)
    return metadata if not ref.uid or metadata.uid == ref.uid else None


def find_named(view: View, kind: str, ref: ObjectRef) -> Any | None:
    """Return the cached object of that name; None also if its kind is not watched."""
    try:
        found = view.get(kind, ref.name, ref.namespace)
        if found is None and ref.namespace:
            # An owner reference does not say if its kind is namespaced.
            found = view.get(kind, ref.name)
    except KeyError:
        return None
    return found


def metadata_of(obj: Any) -> ObjectMeta:
    """Return the metadata of a cached object, decoded or plain JSON."""
    if not isinstance(obj, dict):
        found: ObjectMeta = obj.metadata
        return found
    return decoded_metadata(obj)


class ReviewedMeta(ObjectMeta, frozen=True):
    """Metadata of an object under review: the server may still have to generate its name."""

    generate_name: str = ""


def decoded_metadata(obj: Object) -> ReviewedMeta:
    return msgspec.convert(obj.get("metadata") or {}, ReviewedMeta)
