"""The table of APIServices."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age_of, name_of, spec_of, status_of, text_column
from nodeyard.kube.json import Json, Object


def api_service_cells(obj: Object, now: datetime) -> list[Json]:
    return [name_of(obj), _service(obj), _available(obj), age_of(obj, now)]


def _service(obj: Object) -> str:
    service = spec_of(obj).get("service")
    return "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"


def _available(obj: Object) -> str:
    conditions = status_of(obj).get("conditions") or ()
    condition = next((each for each in conditions if each.get("type") == "Available"), None)
    if condition is None:
        return "Unknown"
    said, reason = str(condition.get("status", "")), condition.get("reason")
    return f"{said} ({reason})" if reason and said != "True" else said


API_SERVICE = Printer(
    (
        NAME,
        text_column("Service", "The Service of the server that has this version of the group; Local: this one has it."),
        text_column("Available", "Whether that server answers."),
        AGE,
    ),
    api_service_cells,
)
