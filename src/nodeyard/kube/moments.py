"""Moments as they stand in annotations and messages: what has to outlive a restart is written down."""

from __future__ import annotations

from datetime import UTC, datetime


def written(moment: datetime) -> str:
    """To the second, as Kubernetes writes its own."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def written_exactly(moment: datetime) -> str:
    """To the millisecond: what happens every second is told apart by it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read(text: str | None) -> datetime | None:
    """None where there is nothing, or nothing that can be read."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
