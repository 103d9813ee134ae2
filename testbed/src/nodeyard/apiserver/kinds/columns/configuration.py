"""Tables of Secrets and ConfigMaps."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age, name, text
from nodeyard.kube.json import Json, Object


def secret_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def config_map_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


SECRET = Printer(
    (NAME, text("Type", "What kind of secret it is."), text("Data", "How many keys it has."), AGE), secret_cells
)
CONFIG_MAP = Printer((NAME, text("Data", "How many keys it has."), AGE), config_map_cells)
