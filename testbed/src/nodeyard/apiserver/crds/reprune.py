"""What a changed schema makes of the objects that were stored under the old one.

The real server prunes and defaults whatever it reads from its storage, and so shows old objects as the newest schema
has them. Here that is done once, when the definition changes, and only where the schemas differ: for the rest it was
done when the object was written.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nodeyard.apiserver.crds.defaulting import default
from nodeyard.apiserver.resources import Resource
from nodeyard.apiserver.responses import encode
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import Stored
from nodeyard.kube.json import Json, json_equal, with_whole_numbers
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.prune import prune

_AS_IT_IS = {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True}


Reread = Callable[[Stored], Stored]


def rereader(old: Resource, new: Resource) -> Reread | None:
    """How to read what is stored from now on; None where that is as before."""
    before = {name: version.openapi for name, version in old.versions.items()}
    after = {name: version.openapi for name, version in new.versions.items()}
    if json_equal(before, after) and old.selectable_fields.keys() == new.selectable_fields.keys():
        return None
    schemas = {
        name: compile_schema(with_whole_numbers(difference(before.get(name), openapi)))
        for name, openapi in after.items()
    }

    def reread(stored: Stored) -> Stored:
        obj = stored.object()
        version = obj["apiVersion"].rpartition("/")[2]  # the one it was stored in
        schema = schemas.get(version, new.storage.schema)
        now = default(schema, prune(schema, obj)[0])
        raw = stored.raw if now is obj else encode(now)
        fields = selectable(new, now)
        if raw is stored.raw and fields == stored.fields:
            return stored
        return msgspec.structs.replace(stored, raw=raw, fields=fields)

    return reread


def difference(old: Json, new: Json) -> Json:
    """The new schema with everything left open that the old one says as well."""
    if json_equal(old, new):
        return _AS_IT_IS
    if old is None or not json_equal(_own(old), _own(new)):
        return new
    before = old.get("properties") or {}
    properties = {name: difference(before.get(name), schema) for name, schema in (new.get("properties") or {}).items()}
    return {**new, "properties": properties}


def _own(schema: Json) -> Json:
    """What a schema says beside its properties."""
    return {name: value for name, value in schema.items() if name != "properties"}
