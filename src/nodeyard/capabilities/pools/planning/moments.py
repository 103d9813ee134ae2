"""Moments that outlive a restart stand in annotations, to the second, as Kubernetes writes its own."""

from __future__ import annotations

from datetime import UTC, datetime


def written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def read(text: str | None) -> datetime | None:
    """None where there is nothing, or nothing that can be read."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
