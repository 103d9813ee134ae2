"""Columns of the tables that `kubectl get` prints, and the cells that many kinds share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from nodeyard.apiserver import ages
from nodeyard.apiserver.resources import Column
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import SelectorError, from_object

NONE = "<none>"

NAME = Column("Name", format="name", description="Unique within its namespace.")
AGE = Column("Age", description="Time since the object was created.")
CREATED_AT = Column("Created At", type="date", description="When the object was created.")


def text_column(name: str, description: str, *, wide: bool = False) -> Column:
    return Column(name, description=description, priority=1 if wide else 0)


def number_column(name: str, description: str) -> Column:
    return Column(name, type="integer", description=description)


def name_of(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))


def age_of(obj: Object, now: datetime) -> str:
    return ages.age(obj["metadata"].get("creationTimestamp"), now)


def spec_of(obj: Object) -> Object:
    return obj.get("spec") or {}


def status_of(obj: Object) -> Object:
    return obj.get("status") or {}


def labels_text(pairs: Mapping[str, str] | None) -> str:
    """Format labels as `a=b,c=d`, sorted."""
    return ",".join(f"{key}={value}" for key, value in sorted((pairs or {}).items())) or NONE


def selector_text(given: Object | None) -> str:
    try:
        return str(from_object(given)) or NONE if given else NONE
    except SelectorError:
        return "<error>"


def container_cells(template: Mapping[str, Any] | None) -> list[Json]:
    """Return two cells: names and images of the containers of a template."""
    listed: Iterable[Object] = ((template or {}).get("spec") or {}).get("containers") or ()
    listed = list(listed)
    return [",".join(each.get("name", "") for each in listed), ",".join(each.get("image", "") for each in listed)]


def created_cells(obj: Object) -> list[Json]:
    return [name_of(obj), obj["metadata"].get("creationTimestamp")]


CONTAINERS = (
    text_column("Containers", "Names of the containers in the template.", wide=True),
    text_column("Images", "Images of the containers in the template.", wide=True),
)
SELECTOR = text_column("Selector", "The label selector.", wide=True)
