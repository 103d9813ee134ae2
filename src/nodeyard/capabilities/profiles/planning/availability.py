"""Whether a service runs what it was told: its operator reports the hash that we asked for, and that it is ready."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.snapshot import DEFAULT_DEADLINE_SECONDS, DEFAULT_MAX_UNAVAILABLE, Profile, Service
from nodeyard.kube.json import Object

_FORM = "%Y-%m-%dT%H:%M:%SZ"
_DIGITS: Final = 18
"""As many as always fit into what the server counts with."""
_LONGEST: Final = 2**31 - 1
"""Seconds. What the built-in profiles can say; one of a declared kind may have any number, and no date is so far."""


def annotation(obj: Object, key: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(key, ""))


def is_available(obj: Object) -> bool:
    """An object that we never told anything is as its owner wants it."""
    asked = annotation(obj, names.HASH)
    if not asked:
        return True
    reported = mapping(mapping(obj.get("status")).get("hash")).get(names.REPORTED_HASH)
    return bool(reported == asked) and is_ready(obj)


def is_ready(obj: Object) -> bool:
    """Whether its operator says that it works, with whatever it has."""
    conditions = mapping(obj.get("status")).get("conditions")
    known = map(mapping, conditions if isinstance(conditions, list) else ())
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in known)


def mapping(value: Any) -> Mapping[str, Any]:
    """What a kind that no code knows may have as something else is as if it were not there."""
    return value if isinstance(value, Mapping) else {}


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
    return min(given or service.deadline_seconds or DEFAULT_DEADLINE_SECONDS, _LONGEST)


def limit(service: Service, profile: Profile | None, total: int) -> int:
    """How many may be unavailable at once: a number, or a share of all, at least one."""
    given = profile.max_unavailable if profile is not None else None
    for wanted in (given, service.max_unavailable, DEFAULT_MAX_UNAVAILABLE):
        number = _number(wanted, total)
        if number is not None:
            return max(1, number)
    return 1


def whole_number(text: str) -> int | None:
    """None where anybody has written something else, or more digits than are worth reading."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def _number(wanted: Any, total: int) -> int | None:
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return wanted
    if not isinstance(wanted, str):
        return None
    number = whole_number(wanted.removesuffix("%"))
    return number if number is None or not wanted.endswith("%") else math.floor(total * number / 100)
