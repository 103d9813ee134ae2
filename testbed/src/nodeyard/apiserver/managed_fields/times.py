"""A write that changes nothing but the time of an entry shall change nothing at all."""

from __future__ import annotations

from nodeyard.apiserver.managed_fields.update import managed_fields, with_entries
from nodeyard.kube.json import Object, json_equal


def keep_times(old: Object, new: Object) -> Object:
    """`new` with the times of `old` where otherwise they are the same; the last step before the store."""
    before, after = managed_fields(old), managed_fields(new)
    if not before or not after or before is after or len(before) != len(after):
        return new
    if not all(_is_alike(entry, other) for entry, other in zip(before, after, strict=True)):
        return new
    restored = with_entries(new, before)
    return restored if json_equal(restored, old) else new


def _is_alike(entry: Object, other: Object) -> bool:
    return entry is other or {**entry, "time": None} == {**other, "time": None}
