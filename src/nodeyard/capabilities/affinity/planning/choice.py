"""Resolve the class of an application: its own choice, its current class, or the default of its tenant.

    spec.affinityClass: dc1    dc1, if it exists and the tenant allows it
    spec.affinityClass: ""     none, unless the tenant, or one above it, restricts its applications to some classes and
                               has a default
    not set, released before   the current class: a changed default moves nothing
    not set, not released      the tenant's default, if there is one

The record (`planning.class_record`) holds the current class. An application keeps it even if the tenant no longer
allows it, so that a change by somebody else neither moves nor denies its pods. Only a new choice is refused. A release
that is adopted, or was created by an earlier version, has no record yet: its labels count if the application could
choose that class now.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.class_record import NO_CLASS, stored_record
from nodeyard.capabilities.affinity.planning.schemas import CLASS_FIELD
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot
from nodeyard.kube.json import Object

READY: Final = "Ready"


@dataclass(frozen=True)
class Choice:
    name: str = ""
    """Empty for no class."""
    source: str = names.NONE
    """`explicit`, `default` or `none`; stored in the record and on the release."""
    reason: Reason = Reason.CLASS_NONE
    facts: Object = field(default_factory=dict)
    previous: tuple[str, ...] = ()
    """Previous classes that pods may still have, latest first; empty if the class is not changing."""
    is_blocking: bool = False
    """Nothing is applied; an existing release stays as it is."""


def choose(snapshot: ApplicationSnapshot) -> Choice:
    wanted, current = wanted_class(snapshot.application), _current_class(snapshot)
    if wanted is None and current is not None and current.source != names.EXPLICIT:
        found = _keep_current(snapshot, current)
    elif wanted is None:
        found = _choose_default(snapshot)
    elif wanted == "":
        found = _choose_none(snapshot, current)
    else:
        found = _choose_named(snapshot, wanted, current)
    if found.is_blocking or current is None:
        return found
    return replace(found, previous=_previous(snapshot, current, found.name))


def wanted_class(application: Object) -> str | None:
    """Return spec.affinityClass; None if it is not set, empty if the application wants no class."""
    value = (application.get("spec") or {}).get(CLASS_FIELD)
    return None if value is None else str(value)


# the current class


@dataclass(frozen=True)
class _CurrentClass:
    """The class of an application by its record, or by the release that it adopts."""

    name: str
    source: str
    previous: tuple[str, ...]


def _current_class(snapshot: ApplicationSnapshot) -> _CurrentClass | None:
    record = stored_record(snapshot.application)
    if record is not None:
        return _CurrentClass(record.affinity_class, record.source, record.previous)
    release, policy = snapshot.release, snapshot.policy
    if release is None or not is_released(snapshot.application, release):
        return None
    name = (release["metadata"].get("labels") or {}).get(names.AFFINITY_CLASS, "")
    is_allowed = name in policy.allowed if name and policy.allowed is not None else name or not policy.needs_class
    if not is_allowed:
        return None
    return _CurrentClass(name, (release["metadata"].get("annotations") or {}).get(names.CLASS_SOURCE, ""), ())


def is_released(application: Object, release: Object) -> bool:
    """Compare the three application labels: HelmRelease names of two kinds may collide."""
    labels = release["metadata"].get("labels") or {}
    return (
        labels.get(names.APPLICATION_GROUP) == names.APPS_GROUP
        and labels.get(names.APPLICATION_KIND) == application["kind"]
        and labels.get(names.APPLICATION_NAME) == application["metadata"]["name"]
    )


# the four cases


def _choose_named(snapshot: ApplicationSnapshot, wanted: str, current: _CurrentClass | None) -> Choice:
    chosen = Choice(wanted, names.EXPLICIT, Reason.CLASS_EXPLICIT, _facts(snapshot, wanted))
    is_new = current is None or current.name != wanted
    return _check(snapshot, chosen, is_new=is_new)


def _keep_current(snapshot: ApplicationSnapshot, current: _CurrentClass) -> Choice:
    if not current.name:
        return Choice(source=names.NONE, facts=_facts(snapshot, "", why="kept"))
    kept = Choice(current.name, names.DEFAULT, Reason.CLASS_STICKY, _facts(snapshot, current.name))
    return _check(snapshot, kept, is_new=False)


def _choose_default(snapshot: ApplicationSnapshot) -> Choice:
    policy = snapshot.policy
    if policy.fault:
        facts = _facts(snapshot, policy.default, error=policy.fault)
        return Choice(reason=Reason.DEFAULT_NOT_ALLOWED, facts=facts, is_blocking=True)
    if not policy.default and policy.needs_class:
        return Choice(reason=Reason.CLASS_NOT_ALLOWED, facts=_facts(snapshot, ""), is_blocking=True)
    if not policy.default:
        return Choice(source=names.NONE, facts=_facts(snapshot, "", why="no default"))
    facts = _facts(snapshot, policy.default)
    return _check(snapshot, Choice(policy.default, names.DEFAULT, Reason.CLASS_DEFAULT, facts), is_new=True)


def _choose_none(snapshot: ApplicationSnapshot, current: _CurrentClass | None) -> Choice:
    policy = snapshot.policy
    if not policy.needs_class:
        return Choice(source=names.EXPLICIT, facts=_facts(snapshot, "", why="declined"))
    facts = _facts(snapshot, "", default=policy.default)
    if current is not None and not current.name:
        return Choice(source=names.EXPLICIT, reason=Reason.CLASS_WITHDRAWN, facts=facts)
    return Choice(reason=Reason.CLASS_NOT_ALLOWED, facts=facts, is_blocking=True)


def _check(snapshot: ApplicationSnapshot, chosen: Choice, *, is_new: bool) -> Choice:
    """Block a class that does not exist, and a new one that the tenant does not allow."""
    allowed = snapshot.policy.allowed
    affinity_class = snapshot.classes.get(chosen.name)
    if affinity_class is None or (is_new and affinity_class.is_deleting):
        facts = {**chosen.facts, "deleting": True} if affinity_class is not None else chosen.facts
        return replace(chosen, reason=Reason.CLASS_MISSING, facts=facts, is_blocking=True)
    if allowed is not None and chosen.name not in allowed:
        reason = Reason.CLASS_NOT_ALLOWED if is_new else Reason.CLASS_WITHDRAWN
        return replace(chosen, reason=reason, is_blocking=is_new)
    return chosen


def _facts(snapshot: ApplicationSnapshot, name: str, **more: object) -> Object:
    policy, metadata = snapshot.policy, snapshot.application["metadata"]
    facts: Object = {
        "kind": snapshot.application["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata.get("name", ""),
        "class": name,
        **more,
    }
    if policy.tenant is not None:
        facts["tenant"] = policy.tenant.name
    if policy.allowed is not None:
        facts["allowed"] = list(policy.allowed)
    return facts


# previous classes


def _previous(snapshot: ApplicationSnapshot, current: _CurrentClass, name: str) -> tuple[str, ...]:
    """Return the classes whose pod templates the cluster may still have until the release is ready."""
    if not name:
        return ()
    # The record is written before the release, so a release that is ready may still have the previous class.
    is_done = is_ready(snapshot.release) and _released_class(snapshot.release) == current.name
    earlier = () if is_done else current.previous
    if current.name == name:
        return earlier
    is_made = not earlier or name in earlier or _is_attempted(snapshot.release)
    found = (current.name, *earlier) if is_made else earlier
    return (NO_CLASS,) if NO_CLASS in found else tuple(dict.fromkeys(each for each in found if each != name))


def _released_class(release: Object | None) -> str:
    """Return the class in the values of a release."""
    values = ((release or {}).get("spec") or {}).get("values") or {}
    scheduling = values.get(names.SCHEDULING_VALUES)
    return str(scheduling.get("affinityClass", "")) if isinstance(scheduling, dict) else ""


def is_ready(release: Object | None) -> bool:
    """Return whether the current generation of a release is ready."""
    condition = release_condition(release, READY)
    return condition is not None and condition.get("status") == "True"


def release_condition(release: Object | None, kind: str) -> Object | None:
    """Return a condition of a HelmRelease; None if it is missing or about an earlier generation."""
    if release is None:
        return None
    status, generation = release.get("status") or {}, release["metadata"].get("generation", 0)
    for each in status.get("conditions") or ():
        if each.get("type") == kind:
            observed = each.get("observedGeneration") or status.get("observedGeneration") or 0
            found: Object = each
            return found if observed >= generation else None
    return None


def _is_attempted(release: Object | None) -> bool:
    """Return whether Helm has attempted the current generation, so that running pods may have its class."""
    if release is None:
        return False
    attempted = (release.get("status") or {}).get("lastAttemptedGeneration") or 0
    return bool(attempted >= release["metadata"].get("generation", 0))
