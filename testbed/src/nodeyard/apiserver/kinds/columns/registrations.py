"""The table of APIServices."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age, name, spec, status, text
from nodeyard.kube.json import Json, Object


def api_service_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), _service(obj), _available(obj), age(obj, now)]


def _service(obj: Object) -> str:
    service = spec(obj).get("service")
    return "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"


def _available(obj: Object) -> str:
    conditions = status(obj).get("conditions") or ()
    condition = next((each for each in conditions if each.get("type") == "Available"), None)
    if condition is None:
        return "Unknown"
    said, reason = str(condition.get("status", "")), condition.get("reason")
    return f"{said} ({reason})" if reason and said != "True" else said


API_SERVICE = Printer(
    (
        NAME,
        text("Service", "The Service of the server that has this version of the group; Local: this one has it."),
        text("Available", "Whether that server answers."),
        AGE,
    ),
    api_service_cells,
)
