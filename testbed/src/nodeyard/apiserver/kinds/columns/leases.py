"""The table of leases."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age, name, spec, text
from nodeyard.kube.json import Json, Object


def lease_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), spec(obj).get("holderIdentity") or "", age(obj, now)]


LEASE = Printer((NAME, text("Holder", "Who holds the lease."), AGE), lease_cells)
