"""The resource that a CustomResourceDefinition defines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from weakref import WeakValueDictionary

from nodeyard.apiserver.cel import CompiledRules, compile_rules
from nodeyard.apiserver.crds.defaults import default
from nodeyard.apiserver.discovery import priority
from nodeyard.apiserver.jsonpath import JsonPath
from nodeyard.apiserver.managed_fields.type_shape import shape_of
from nodeyard.apiserver.resources import Column, Resource, Scale, Strategy, Version
from nodeyard.apiserver.responses import encode
from nodeyard.apiserver.tables import AGE_COLUMN, NAME_COLUMN
from nodeyard.kube.json import Json, Object, json_equal, with_whole_numbers
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.model import Schema
from nodeyard.schema.validate import validate

_COSTLY = 8 * 1024
"""Bytes of a schema above which it is not compiled again for every use."""
_compiled: WeakValueDictionary[bytes, CompiledRules] = WeakValueDictionary()
"""Costly schemas by digest, as long as they are served or were compiled last."""
_compiled_last: list[CompiledRules] = []
_ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class CustomStrategy(Strategy):
    """Strategy of custom resources; they differ only in whether status is a subresource."""

    allows_unconditional_update = False

    def __init__(self, *, has_status: bool) -> None:
        self._has_status = has_status

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        return _without_status(obj) if self._has_status else obj

    def prepare_update(self, new: Object, old: Object) -> Object:
        return _with_status_of(new, old) if self._has_status else new

    def prepare_status(self, new: Object, old: Object) -> Object:
        """Take over only status and managedFields."""
        metadata = dict(old["metadata"])
        managed = new["metadata"].get("managedFields")
        if managed is None:
            metadata.pop("managedFields", None)
        else:
            metadata["managedFields"] = managed
        kept = {**old, "metadata": metadata}
        return {**_without_status(kept), "status": new["status"]} if "status" in new else _without_status(kept)

    def changes_generation(self, new: Object, old: Object) -> bool:
        """True if anything changed but metadata, and status where it is a subresource."""
        ignored = {"metadata", "status"} if self._has_status else {"metadata"}
        names = (new.keys() | old.keys()) - ignored
        return not all(json_equal(new.get(name), old.get(name)) for name in names)

    def reset_fields(self, subresource: str) -> tuple[tuple[str, ...], ...]:
        if not self._has_status or subresource == "scale":
            return ()
        return (("metadata",), ("spec",)) if subresource == "status" else (("status",),)


def _without_status(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name != "status"} if "status" in obj else obj


def _with_status_of(new: Object, old: Object) -> Object:
    if "status" in old:
        return {**new, "status": old["status"]}
    return _without_status(new)


def resource_of(definition: Object) -> Resource:
    """Make the resource of a validated definition, with the names of its spec."""
    spec = definition["spec"]
    names = spec["names"]
    versions = [_version(spec, version) for version in spec["versions"]]
    storage = next(version for version in spec["versions"] if version.get("storage"))
    return Resource(
        group=spec["group"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        namespaced=spec["scope"] == "Namespaced",
        versions={version.name: version for version in sorted(versions, key=lambda each: priority(each.name))},
        storage_version=storage["name"],
        strategy=CustomStrategy(has_status="status" in (storage.get("subresources") or {})),
        is_custom=True,
        selectable_fields=_selectable(storage),
        terminating="deletionTimestamp" in definition["metadata"],
    )


def compile_ahead(definition: Object) -> None:
    """Compile the costly schemas of a validated definition, where `resource_of` finds them.

    A definition may be validated beside the event loop, but it is served from the loop as soon as it is stored.
    """
    schemas = [version["schema"]["openAPIV3Schema"] for version in definition["spec"]["versions"]]
    if costly := [_compile(schema) for schema in schemas if len(encode(schema)) > _COSTLY]:
        _compiled_last[:] = costly


def _compile(openapi: Object) -> CompiledRules:
    raw = encode(openapi)
    if len(raw) <= _COSTLY:
        return compile_rules(compile_schema(with_whole_numbers(openapi)))[0]
    key = sha256(raw).digest()
    found = _compiled.get(key)
    if found is None:
        found = _compiled[key] = compile_rules(compile_schema(with_whole_numbers(openapi)))[0]
        _compile_checks(found.schema)
    return found


def _compile_checks(schema: Schema) -> None:
    """Compile what is compiled at first use: defaults, checks and field ownership."""
    default(schema, {})
    validate(schema, {})
    shape_of(schema)


def _version(spec: Object, given: Object) -> Version:
    openapi = (given.get("schema") or {}).get("openAPIV3Schema") or _ANYTHING
    rules = _compile(openapi)
    subresources = given.get("subresources") or {}
    return Version(
        name=given["name"],
        schema=rules.schema,
        openapi=openapi,
        served=bool(given.get("served")),
        columns=_columns(given.get("additionalPrinterColumns") or ()),
        has_status="status" in subresources,
        scale=_scale(subresources.get("scale")),
        deprecation=_deprecation(spec, given),
        rules=rules,
    )


def _columns(given: Json) -> tuple[Column, ...]:
    if not given:
        return (NAME_COLUMN, AGE_COLUMN)
    columns = [
        Column(
            name=column["name"],
            type=column["type"],
            format=column.get("format", ""),
            description=column.get("description", ""),
            priority=column.get("priority", 0),
            path=column["jsonPath"],
        )
        for column in given
    ]
    return (NAME_COLUMN, *columns)


def _scale(given: Object | None) -> Scale | None:
    if not given:
        return None
    return Scale(given["specReplicasPath"], given["statusReplicasPath"], given.get("labelSelectorPath", ""))


def _deprecation(spec: Object, given: Object) -> str:
    if not given.get("deprecated"):
        return ""
    return given.get("deprecationWarning") or f"{spec['group']}/{given['name']} {spec['names']['kind']} is deprecated"


def _selectable(given: Object) -> dict[str, Callable[[Object], str]]:
    readers = {}
    for entry in given.get("selectableFields") or ():
        path = entry["jsonPath"]
        readers[path.lstrip(".")] = _reader(JsonPath(path))
    return readers


def _reader(path: JsonPath) -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        value = path.first(obj)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read
