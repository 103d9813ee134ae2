"""Rollout of a service object: its availability, the budget and deadline of its profile, and if it may be written now.

An object is available if its operator reports the desired hash and condition Ready is true. An object that is already
unavailable needs no part of the budget: a new configuration does not make it worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.base import ServiceMessage
from nodeyard.capabilities.profiles.messages.states import BudgetSpent, Stalled
from nodeyard.capabilities.profiles.planning.builder import PlanBuilder
from nodeyard.capabilities.profiles.planning.resolution import Resolution
from nodeyard.capabilities.profiles.snapshot import (
    DEFAULT_DEADLINE_SECONDS,
    DEFAULT_MAX_UNAVAILABLE,
    Budget,
    NodeSnapshot,
    Profile,
    Service,
)
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339, parse_rfc3339_or_none

BRIEF: Final = timedelta(seconds=30)
"""Time after which a node that waits for writes of other nodes is planned again: their objects may be unavailable then.
Not shorter, because thousands of nodes may wait."""
_DIGITS: Final = 18
"""Number of digits that always fit into an int64 of the API server."""
_LONGEST: Final = 2**31 - 1
"""Upper bound in seconds: the int32 maximum of built-in profiles. Profiles of declared kinds have no schema bound."""


def annotation(obj: Object, key: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(key, ""))


def is_available(obj: Object, *, ignores: bool = False) -> bool:
    """Check if a service object runs its desired configuration; one without a desired hash is available.

    If reports are ignored, an object is available unless its condition Ready is present and not true.
    """
    desired = annotation(obj, names.HASH)
    if not desired:
        return True
    if ignores:
        return _ready(obj) in ("", "True")
    return reported_hash(obj) == desired and is_ready(obj)


def reported_hash(obj: Object) -> str:
    """Return status.hash.profile; empty if the service operator never reported it."""
    return str(as_mapping(as_mapping(obj.get("status")).get("hash")).get(names.REPORTED_HASH) or "")


def is_ready(obj: Object) -> bool:
    """Check condition Ready, for whatever configuration is deployed."""
    return _ready(obj) == "True"


def _ready(obj: Object) -> str:
    """Return the status of condition Ready; empty if the object has none."""
    conditions = as_mapping(obj.get("status")).get("conditions")
    known = map(as_mapping, conditions if isinstance(conditions, list) else ())
    return next((str(each.get("status")) for each in known if each.get("type") == "Ready"), "")


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping of an untyped object; any other value is treated as missing."""
    return value if isinstance(value, Mapping) else {}


def written_at(obj: Object) -> datetime | None:
    """Return the time of the last change of the desired hash."""
    return parse_time(annotation(obj, names.WRITTEN))


parse_time: Final = lru_cache(maxsize=1024)(parse_rfc3339_or_none)
"""Parses a timestamp. Cached: many objects are written in the same second."""


def deadline_seconds(service: Service, profile: Profile | None) -> int:
    given = profile.deadline_seconds if profile is not None else None
    return min(given or service.deadline_seconds or DEFAULT_DEADLINE_SECONDS, _LONGEST)


def limit(service: Service, profile: Profile | None, total: int) -> int:
    """Return the number of objects that may be unavailable at once: a number or a percentage of all, at least 1."""
    given = profile.max_unavailable if profile is not None else None
    for wanted in (given, service.max_unavailable, DEFAULT_MAX_UNAVAILABLE):
        number = _number(wanted, total)
        if number is not None:
            return max(1, number)
    return 1


def whole_number(text: str) -> int | None:
    """Parse a decimal number; None for anything else and for numbers with too many digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def _number(wanted: Any, total: int) -> int | None:
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return wanted
    if not isinstance(wanted, str):
        return None
    number = whole_number(wanted.removesuffix("%"))
    return number if number is None or not wanted.endswith("%") else math.floor(total * number / 100)


# the decision


def is_disruptive(live: Object | None, hash: str, *, ignores: bool) -> bool:
    """Check if this configuration would disrupt an object that is available now."""
    if live is None or annotation(live, names.HASH) == hash:
        return False
    return is_available(live, ignores=ignores) and is_ready(live)


def find_wait(node: str, resolution: Resolution, budget: Budget) -> ServiceMessage | None:
    """Return what a node waits for before its object may be disrupted; None if the budget has room."""
    service, profile = resolution.service, resolution.value
    if budget.stalled:
        return Stalled(service=service.name, profile=profile, object=budget.stalled)
    if not budget.is_spent:
        return None
    return BudgetSpent(
        service=service.name,
        node=node,
        kind=service.profile_kind,
        profile=profile,
        limit=budget.limit,
        total=budget.total,
    )


def is_brief(message: object, snapshot: NodeSnapshot) -> bool:
    """Check if a node waits only for writes of other nodes, and not for their objects to become available.

    If reports are ignored, such a wait ends when the server has answered. It is neither reported nor recorded, so that
    a change over many nodes writes the status of each node once.
    """
    if not isinstance(message, BudgetSpent) or message.service not in snapshot.ignored:
        return False
    return snapshot.budgets[message.service].is_reserved


def config_annotations(live: Object | None, resolution: Resolution, hash: str, builder: PlanBuilder) -> dict[str, str]:
    """Return the annotations with the desired hash, the generation, and the time of the last change."""
    generation = str(resolution.profile.generation if resolution.profile is not None else 0)
    since = format_rfc3339(builder.now)
    if live is not None and annotation(live, names.HASH) == hash:
        since = annotation(live, names.WRITTEN) or since
    return {names.HASH: hash, names.GENERATION: generation, names.WRITTEN: since}


def find_stall(builder: PlanBuilder, live: Object | None, resolution: Resolution, *, ignores: bool) -> Stalled | None:
    """Return a message if an object is past its progress deadline; requeue the node at the deadline."""
    if live is None or is_available(live, ignores=ignores):
        return None
    since = written_at(live)
    if since is None:
        return None
    deadline = since + timedelta(seconds=deadline_seconds(resolution.service, resolution.profile))
    if builder.now < deadline:
        builder.wake(deadline)
        return None
    return Stalled(service=resolution.service.name, profile=resolution.value, object=live["metadata"]["name"])
