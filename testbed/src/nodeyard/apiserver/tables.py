"""Tables: objects as rows, as `kubectl get` prints them.

Built-in kinds compute their cells; those of custom resources are read by the JSONPaths of their printer columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Literal

import msgspec

from nodeyard.apiserver import errors
from nodeyard.apiserver.ages import age
from nodeyard.apiserver.jsonpath import JsonPath
from nodeyard.apiserver.resources import Column, Resource
from nodeyard.apiserver.responses import partial
from nodeyard.kube import fields
from nodeyard.kube.json import Json, Object

IncludeObject = Literal["Metadata", "None", "Object"]

NAME_COLUMN = Column("Name", format="name", description="Name of the object, unique within its namespace.")
AGE_COLUMN = Column(
    "Age", type="date", description="Time since the object was created.", path=".metadata.creationTimestamp"
)


def include_object(text: str) -> IncludeObject:
    if text in ("", "Metadata"):
        return "Metadata"
    if text == "None":
        return "None"
    if text == "Object":
        return "Object"
    fault = fields.invalid("includeObject", text, "must be 'Metadata', 'Object', 'None', or empty")
    raise errors.bad_request(f"Unable to convert to Table as requested: {fault}")


def table(
    resource: Resource,
    version: str,
    objects: Iterable[Object],
    *,
    now: datetime,
    include: IncludeObject,
    metadata: Object,
    with_columns: bool = True,
) -> Object:
    columns = resource.versions[version].columns
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns] if with_columns else None,
        "rows": [_row(resource, columns, obj, now, include) for obj in objects],
    }


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(resource: Resource, columns: tuple[Column, ...], obj: Object, now: datetime, include: IncludeObject) -> Object:
    if resource.is_custom:
        cells = [obj["metadata"]["name"], *(_cell(column, obj, now) for column in columns[1:])]
    else:
        cells = resource.strategy.cells(obj, now)
    shown = None if include == "None" else partial(obj) if include == "Metadata" else obj
    return {"cells": cells, "object": shown}


@lru_cache(maxsize=2048)
def compiled(path: str) -> JsonPath:
    return JsonPath(path)


def _cell(column: Column, obj: Object, now: datetime) -> Json:
    value = compiled(column.path).first(obj)
    if value is None:
        return None
    if column.type == "string":
        return _printed(value)
    if column.type == "date":
        return _age(value, now)
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if column.type == "integer" else value


def _age(value: Json, now: datetime) -> Json:
    if not isinstance(value, str):
        return None
    try:
        return age(value, now)
    except ValueError:
        return "<invalid>"


def _printed(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return msgspec.json.encode(value).decode()
