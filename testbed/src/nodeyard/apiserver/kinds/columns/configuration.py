"""Tables of Secrets and ConfigMaps."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age_of, name_of, text_column
from nodeyard.kube.json import Json, Object


def secret_cells(obj: Object, now: datetime) -> list[Json]:
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or ()), age_of(obj, now)]


def config_map_cells(obj: Object, now: datetime) -> list[Json]:
    return [name_of(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age_of(obj, now)]


SECRET = Printer(
    (NAME, text_column("Type", "What kind of secret it is."), text_column("Data", "How many keys it has."), AGE),
    secret_cells,
)
CONFIG_MAP = Printer((NAME, text_column("Data", "How many keys it has."), AGE), config_map_cells)
