"""The table of namespaces."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age, name, status, text
from nodeyard.kube.json import Json, Object


def namespace_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), status(obj).get("phase", ""), age(obj, now)]


NAMESPACE = Printer((NAME, text("Status", "Active, or being deleted."), AGE), namespace_cells)
