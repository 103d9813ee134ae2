"""Owners of pods, found in the cache, or among what a review had looked up.

That an object is not in the cache means nothing yet: its kind may not be watched, or the watch be a moment late. Only
what the server was asked for is missing, and an object of another uid than the reference means is asked for as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeyard.capabilities.affinity.planning.lineage import Find, Sought
from nodeyard.kube.json import Object
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import Found, LookedUp


def finder(view: View, answers: Mapping[ObjectRef, LookedUp]) -> Find:
    def find(ref: ObjectRef) -> Sought:
        if answers and (answer := answers.get(ref)) is not None:
            return answer.object.metadata if isinstance(answer, Found) else answer
        return cached(view, ref)

    return find


def cached(view: View, ref: ObjectRef) -> ObjectMeta | None:
    """None also where another object has the name."""
    found = named(view, viewed(ref), ref)
    if found is None:
        return None
    metadata = metadata_of(found)
    return metadata if not ref.uid or metadata.uid == ref.uid else None


def viewed(ref: ObjectRef) -> str:
    """How a view names the kind of an object."""
    group, slash, _version = ref.api_version.partition("/")
    return f"{ref.kind}.{group if slash else 'core'}"


def named(view: View, kind: str, ref: ObjectRef) -> Any | None:
    """The object of that name, as it is kept; None also where nobody watches its kind."""
    try:
        found = view.get(kind, ref.name, ref.namespace)
        if found is None and ref.namespace:
            # A reference does not tell whether its kind has namespaces.
            found = view.get(kind, ref.name)
    except KeyError:
        return None
    return found


def metadata_of(obj: Any) -> ObjectMeta:
    """Of an object as it is kept: by the fields that are needed, or whole."""
    if not isinstance(obj, dict):
        found: ObjectMeta = obj.metadata
        return found
    return decoded_metadata(obj)


class ReviewedMeta(ObjectMeta, frozen=True):
    """Of an object that is being made: its name may still be the server's to make."""

    generate_name: str = ""


def decoded_metadata(obj: Object) -> ReviewedMeta:
    return msgspec.convert(obj.get("metadata") or {}, ReviewedMeta)
