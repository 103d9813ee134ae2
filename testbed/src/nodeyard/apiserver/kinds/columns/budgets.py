"""The table of disruption budgets."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import (
    AGE,
    NAME,
    Printer,
    age_of,
    name_of,
    number_column,
    spec_of,
    status_of,
    text_column,
)
from nodeyard.kube.json import Json, Object

_NOT_GIVEN = "N/A"


def budget_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec_of(obj)
    return [
        name_of(obj),
        _NOT_GIVEN if given.get("minAvailable") is None else str(given["minAvailable"]),
        _NOT_GIVEN if given.get("maxUnavailable") is None else str(given["maxUnavailable"]),
        status_of(obj).get("disruptionsAllowed", 0),
        age_of(obj, now),
    ]


BUDGET = Printer(
    (
        NAME,
        text_column("Min Available", "Pods that must stay."),
        text_column("Max Unavailable", "Pods that may be missing."),
        number_column("Allowed Disruptions", "Pods that may be evicted now."),
        AGE,
    ),
    budget_cells,
)
