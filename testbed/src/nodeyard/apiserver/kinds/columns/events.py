"""The table of events, the same for both of their groups."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import Printer, name_of, text_column
from nodeyard.apiserver.resources import Column
from nodeyard.kube import ages
from nodeyard.kube.json import Json, Object

_COLUMNS = (
    text_column("Last Seen", "Time since it happened last."),
    text_column("Type", "Normal or Warning."),
    text_column("Reason", "Why it happened, in a word."),
    text_column("Object", "What it happened to."),
    text_column("Subobject", "Which part of it.", wide=True),
    text_column("Source", "Who saw it.", wide=True),
    text_column("Message", "What happened."),
    text_column("First Seen", "Time since it happened first.", wide=True),
    text_column("Count", "How often it happened.", wide=True),
    Column("Name", format="name", description="Name of the event.", priority=1),
)


def core_cells(obj: Object, now: datetime) -> list[Json]:
    source = obj.get("source") or {}
    return _cells(
        obj,
        now,
        about=obj.get("involvedObject") or {},
        message=obj.get("message", ""),
        first=obj.get("firstTimestamp"),
        last=obj.get("lastTimestamp"),
        count=obj.get("count") or 0,
        seen_by=(
            source.get("component") or obj.get("reportingComponent") or "",
            source.get("host") or obj.get("reportingInstance") or "",
        ),
    )


def events_cells(obj: Object, now: datetime) -> list[Json]:
    source = obj.get("deprecatedSource") or {}
    return _cells(
        obj,
        now,
        about=obj.get("regarding") or {},
        message=obj.get("note", ""),
        first=obj.get("deprecatedFirstTimestamp"),
        last=obj.get("deprecatedLastTimestamp"),
        count=obj.get("deprecatedCount") or 0,
        seen_by=(
            source.get("component") or obj.get("reportingController") or "",
            source.get("host") or obj.get("reportingInstance") or "",
        ),
    )


def _cells(
    obj: Object,
    now: datetime,
    *,
    about: Object,
    message: str,
    first: str | None,
    last: str | None,
    count: int,
    seen_by: tuple[str, str],
) -> list[Json]:
    first_seen = ages.age(first or obj.get("eventTime"), now)
    last_seen = ages.age(last, now) if last else first_seen
    series = obj.get("series")
    if series is not None:
        last_seen, count = ages.age(series.get("lastObservedTime"), now), series.get("count", 0)
    kind = about.get("kind", "").lower()
    return [
        last_seen,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        ", ".join(part for part in seen_by if part),
        message.strip(),
        first_seen,
        count or 1,
        name_of(obj),
    ]


CORE_EVENT = Printer(_COLUMNS, core_cells)
EVENT = Printer(_COLUMNS, events_cells)
