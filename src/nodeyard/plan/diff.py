"""Diff of two objects, one line per field, with paths as a person would write them.

    metadata.labels[topology.kubernetes.io/zone]
    spec.taints[node.cybozu.io/spare:NoSchedule]
    status.conditions[Ready].status

A missing field equals null. Fields that only the server writes (resourceVersion, managedFields, ...) are left out, and
secret contents are hashes. Added and removed subtrees are shown leaf by leaf, keyed list items as a whole without the
keys in their path. Objects are immutable, so identical subtrees are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nodeyard.kube import patch as patches
from nodeyard.kube.fields import child, key
from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.plan.list_keys import is_set, keys_of, name_of
from nodeyard.plan.model import FieldChange
from nodeyard.plan.secrets import conceal

_SERVERS_OWN = frozenset(
    f"metadata.{name}"
    for name in ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")
)
# Maps whose keys are data, not fields.
_MAPS = frozenset(
    {"labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData", "capacity", "allocatable"}
)
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def diff(old: Object | None, new: Object | None, *, secrets: Sequence[str] = ()) -> tuple[FieldChange, ...]:
    """Return the changes from `old` to `new`, by path; None is an object that does not exist.

    `secrets` names fields to hash in addition to the data of a Secret.
    """
    if old is new:
        return ()
    before, after = conceal(old or {}, secrets), conceal(new or {}, secrets)
    collector = _Collector()
    collector.members("", "", before, after)
    return tuple(collector.found)


def diff_patch(old: Object, patch: Json, *, secrets: Sequence[str] = ()) -> tuple[FieldChange, ...]:
    """Return what a merge patch, or a list of JSON patch operations, changes in the object."""
    new = patches.json_patch(old, patch) if isinstance(patch, list) else patches.merge_patch(old, patch)
    return diff(old, new, secrets=secrets)


class _Collector:
    """Collects changes while descending; nested generators would cost more than the comparison."""

    def __init__(self) -> None:
        self.found: list[FieldChange] = []

    def value(self, path: str, name: str, old: Json, new: Json) -> None:
        if path in _SERVERS_OWN:
            return
        is_empty = not old and not new
        if not is_empty and _is_absent_or(dict, old) and _is_absent_or(dict, new):
            self.members(path, name, old or {}, new or {})
            return
        if json_equal(old, new):
            return
        known = len(self.found)
        if not is_empty and _is_absent_or(list, old) and _is_absent_or(list, new):
            self.items(path, name, old or [], new or [])
        if len(self.found) == known:
            self.found.append(FieldChange(path=path, from_=old, to=new))

    def members(self, path: str, name: str, old: Object, new: Object) -> None:
        if old is new:
            return
        touched = [member for member in old if old[member] is not new.get(member)]
        touched += [member for member in new if member not in old]
        touched.sort()
        for member in touched:
            is_field = name not in _MAPS and _FIELD.fullmatch(member)
            below = child(path, member) if is_field else key(path, member)
            self.value(below, member, old.get(member), new.get(member))

    def items(self, path: str, name: str, old: list[Json], new: list[Json]) -> None:
        """Compare item by item; add nothing if the items have no keys or only their order differs."""
        if is_set(name, old, new):
            self.found += [FieldChange(path=key(path, item), from_=item) for item in old if item not in new]
            self.found += [FieldChange(path=key(path, item), to=item) for item in new if item not in old]
        elif keys := keys_of(name, old, new):
            before, after = ({name_of(item, keys): item for item in items} for items in (old, new))
            for each in sorted(before.keys() | after.keys()):
                self.item(key(path, each), keys, before.get(each), after.get(each))

    def item(self, path: str, keys: tuple[str, ...], old: Object | None, new: Object | None) -> None:
        if old is None or new is None:
            self.found.append(FieldChange(path=path, from_=_rest(old, keys), to=_rest(new, keys)))
        else:
            self.value(path, "", old, new)


def _is_absent_or(type: type[Any], value: Json) -> bool:
    return value is None or isinstance(value, type)


def _rest(item: Object | None, keys: tuple[str, ...]) -> Object | None:
    return None if item is None else {name: value for name, value in item.items() if name not in keys}
