"""Pruning and defaulting of stored objects after their schema changed.

kube-apiserver prunes and defaults whatever it reads from storage, so it shows old objects as the newest schema has
them. Here this happens once, when the definition changes, and only where the schemas differ: the rest was done on
write.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nodeyard.apiserver.crds.defaults import default
from nodeyard.apiserver.resources import Resource
from nodeyard.apiserver.responses import encode
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import Stored
from nodeyard.kube.json import Json, json_equal, with_whole_numbers
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.prune import prune

_UNCHANGED = {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True}

Reprune = Callable[[Stored], Stored]


def repruner(old: Resource, new: Resource) -> Reprune | None:
    """Return the function that converts a stored object; None if nothing changed."""
    before = {name: version.openapi for name, version in old.versions.items()}
    after = {name: version.openapi for name, version in new.versions.items()}
    if json_equal(before, after) and old.selectable_fields.keys() == new.selectable_fields.keys():
        return None
    schemas = {
        name: compile_schema(with_whole_numbers(difference(before.get(name), openapi)))
        for name, openapi in after.items()
    }

    def reprune(stored: Stored) -> Stored:
        obj = stored.object()
        version = obj["apiVersion"].rpartition("/")[2]  # the one it was stored in
        schema = schemas.get(version, new.storage.schema)
        now = default(schema, prune(schema, obj)[0])
        raw = stored.raw if now is obj else encode(now)
        fields = selectable(new, now)
        if raw is stored.raw and fields == stored.fields:
            return stored
        return msgspec.structs.replace(stored, raw=raw, fields=fields)

    return reprune


def difference(old: Json, new: Json) -> Json:
    """Return the new schema, with everything left open that is the same in the old one."""
    if json_equal(old, new):
        return _UNCHANGED
    if old is None or not json_equal(_own(old), _own(new)):
        return new
    before = old.get("properties") or {}
    properties = {name: difference(before.get(name), schema) for name, schema in (new.get("properties") or {}).items()}
    return {**new, "properties": properties}


def _own(schema: Json) -> Json:
    """Return the schema without its properties."""
    return {name: value for name, value in schema.items() if name != "properties"}
