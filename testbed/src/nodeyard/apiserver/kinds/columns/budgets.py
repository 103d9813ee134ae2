"""The table of disruption budgets."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age, name, number, spec, status, text
from nodeyard.kube.json import Json, Object

_NOT_GIVEN = "N/A"


def budget_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec(obj)
    return [
        name(obj),
        _NOT_GIVEN if given.get("minAvailable") is None else str(given["minAvailable"]),
        _NOT_GIVEN if given.get("maxUnavailable") is None else str(given["maxUnavailable"]),
        status(obj).get("disruptionsAllowed", 0),
        age(obj, now),
    ]


BUDGET = Printer(
    (
        NAME,
        text("Min Available", "Pods that must stay."),
        text("Max Unavailable", "Pods that may be missing."),
        number("Allowed Disruptions", "Pods that may be evicted now."),
        AGE,
    ),
    budget_cells,
)
