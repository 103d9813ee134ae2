"""Removing what an applier no longer applies.

A field goes when its manager applied it last time, does not this time, and nobody else owns it. Around that stand the
named fields that hold others: `spec.template` goes with the last field in it, unless someone owns one there.
"""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.apiserver.managed_fields.fieldset import FieldSet, difference, includes, intersection, union
from nodeyard.apiserver.managed_fields.managers import Identity, Managers, fields_of
from nodeyard.apiserver.managed_fields.owned_set import extent, removed, with_named
from nodeyard.apiserver.managed_fields.paths import FIELD
from nodeyard.apiserver.managed_fields.scope import Scope
from nodeyard.apiserver.managed_fields.type_shape import Shape
from nodeyard.kube.json import Json, Object


def pruned(scope: Scope, merged: Object, managers: Managers, applier: Identity, last: Object | None) -> Object:
    """The merged object without what only the applier's last configuration held; `managers` has the new one already."""
    if last is None or not fields_of(last):
        return merged
    mine = managers.get(applier)
    if mine is not None and includes(fields_of(mine), fields_of(last)):
        return merged
    version = last["apiVersion"]
    shape = scope.shape_in(version)
    if shape is None:
        return merged
    dropped = with_named(shape, fields_of(last))
    # Whatever it did not touch at all is not worth walking: the status of a node is most of it.
    concerned = {name: value for name, value in merged.items() if FIELD + name in dropped}
    rest = removed(shape, concerned, dropped)
    for holder, owned in _owned(scope, managers.values(), version):
        rest = _owned_back(holder, concerned, rest, owned)
    rest = _unowned_back(shape, concerned, rest, dropped) or {}
    return {name: rest.get(name, value) for name, value in merged.items() if name in rest or name not in concerned}


def _owned(scope: Scope, entries: Iterable[Object], first: str) -> list[tuple[Shape, FieldSet]]:
    """All that is owned, by version; the version of the last configuration comes first."""
    by_version: dict[str, FieldSet] = {first: {}}
    for entry in entries:
        version = entry["apiVersion"]
        by_version[version] = union(by_version.get(version, {}), fields_of(entry))
    shapes = ((scope.shape_in(version), owned) for version, owned in by_version.items() if owned)
    return [(shape, owned) for shape, owned in shapes if shape is not None]


def _owned_back(shape: Shape, merged: Object, rest: Json, owned: FieldSet) -> Json:
    """Nothing is taken from those who own it, the applier's new configuration among them."""
    kept = union(with_named(shape, extent(shape, rest)), with_named(shape, owned))
    return removed(shape, merged, difference(with_named(shape, extent(shape, merged)), kept))


def _unowned_back(shape: Shape, merged: Object, rest: Json, dropped: FieldSet) -> Json:
    """What nobody owns was not the applier's to remove either."""
    present = with_named(shape, extent(shape, merged))
    gone = difference(present, with_named(shape, extent(shape, rest)))
    return removed(shape, merged, intersection(gone, dropped))
