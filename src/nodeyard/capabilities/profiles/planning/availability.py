"""Whether a service runs what it was told: its operator reports the hash that we asked for, and that it is ready."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.snapshot import DEFAULT_DEADLINE_SECONDS, DEFAULT_MAX_UNAVAILABLE, Profile, Service
from nodeyard.kube.json import Object

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def annotation(obj: Object, key: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(key, ""))


def is_available(obj: Object) -> bool:
    """An object that we never told anything is as its owner wants it."""
    asked = annotation(obj, names.HASH)
    if not asked:
        return True
    status: Mapping[str, Any] = obj.get("status") or {}
    is_ready = any(
        each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ()
    )
    return is_ready and (status.get("hash") or {}).get(names.REPORTED_HASH) == asked


def written_at(obj: Object) -> datetime | None:
    """When it was last told something else."""
    return moment(annotation(obj, names.WRITTEN))


@lru_cache(maxsize=1024)
def moment(text: str) -> datetime | None:
    """None where the text is none. Many are told something in the same second."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_FORM)


def deadline_seconds(service: Service, profile: Profile | None) -> int:
    given = profile.deadline_seconds if profile is not None else None
    return given or service.deadline_seconds or DEFAULT_DEADLINE_SECONDS


def limit(service: Service, profile: Profile | None, total: int) -> int:
    """How many may be unavailable at once: a number, or a share of all, at least one."""
    given = profile.max_unavailable if profile is not None else None
    for wanted in (given, service.max_unavailable, DEFAULT_MAX_UNAVAILABLE):
        number = _number(wanted, total)
        if number is not None:
            return max(1, number)
    return 1


def _number(wanted: Any, total: int) -> int | None:
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return wanted
    if isinstance(wanted, str) and wanted.removesuffix("%").isdigit():
        number = int(wanted.removesuffix("%"))
        return math.floor(total * number / 100) if wanted.endswith("%") else number
    return None
