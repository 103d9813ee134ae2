"""RFC 3339 timestamps, formatted and parsed as the Kubernetes API does."""

from __future__ import annotations

from datetime import UTC, datetime


def format_rfc3339(moment: datetime) -> str:
    """Format as `metav1.Time`: UTC, whole seconds."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def format_rfc3339_millis(moment: datetime) -> str:
    """Format in UTC with milliseconds, for events that happen several times a second."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def format_rfc3339_micro(moment: datetime) -> str:
    """Format as `metav1.MicroTime`: UTC, microseconds."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_rfc3339(text: str) -> datetime:
    """Parse any RFC 3339 timestamp, with any offset and precision; raise ValueError for other text."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def parse_rfc3339_or_none(text: str | None) -> datetime | None:
    """Parse a timestamp that may be missing or malformed; without an offset it is in UTC."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
