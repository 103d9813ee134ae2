"""Which class an application has: its own choice, the one it was given before, or its tenant's default.

    spec.affinityClass: dc1    dc1, where it exists and the tenant allows it
    spec.affinityClass: ""     none, unless the tenant, or one above it, restricts its applications to some classes and
                               has a default
    not said, released before  what it has: a default that changes moves nothing
    not said, not released     the tenant's default, if there is one

What a release has stays when the tenant allows it no longer: nobody's pods are moved, or refused, by somebody else's
change. Only what would be new is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.previous import NO_CLASS, previous_classes
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
    """`explicit`, `default` or `none`: what the release remembers it by."""
    reason: Reason = Reason.CLASS_NONE
    facts: Object = field(default_factory=dict)
    previous: tuple[str, ...] = ()
    """The classes before, which pods may still have, the latest first; none where nothing is changing."""
    is_blocking: bool = False
    """Nothing is released, and what is released is left as it is."""


def choose(snapshot: ApplicationSnapshot) -> Choice:
    wanted, had = wanted_class(snapshot.application), _had(snapshot)
    if wanted is None and had is not None and had.source != names.EXPLICIT:
        found = _kept(snapshot, had)
    elif wanted is None:
        found = _defaulted(snapshot)
    elif wanted == "":
        found = _declined(snapshot, had)
    else:
        found = _named(snapshot, wanted, had)
    if found.is_blocking or had is None:
        return found
    return replace(found, previous=_previous(snapshot, had, found.name))


def wanted_class(application: Object) -> str | None:
    """What the application says itself; None where it says nothing, empty where it wants none."""
    value = (application.get("spec") or {}).get(CLASS_FIELD)
    return None if value is None else str(value)


# what it has


@dataclass(frozen=True)
class _Had:
    """The class of a release, as its labels and annotation tell."""

    name: str
    source: str
    previous: tuple[str, ...]


def _had(snapshot: ApplicationSnapshot) -> _Had | None:
    release = snapshot.release
    if release is None or not is_released(snapshot.application, release):
        return None
    labels = release["metadata"].get("labels") or {}
    annotations = release["metadata"].get("annotations") or {}
    return _Had(labels.get(names.AFFINITY_CLASS, ""), annotations.get(names.CLASS_SOURCE, ""), previous_classes(labels))


def is_released(application: Object, release: Object) -> bool:
    """Whether a HelmRelease is this application's: by its three labels, since names of two kinds may meet."""
    labels = release["metadata"].get("labels") or {}
    return (
        labels.get(names.APPLICATION_GROUP) == names.APPS_GROUP
        and labels.get(names.APPLICATION_KIND) == application["kind"]
        and labels.get(names.APPLICATION_NAME) == application["metadata"]["name"]
    )


# the four ways


def _named(snapshot: ApplicationSnapshot, wanted: str, had: _Had | None) -> Choice:
    chosen = Choice(wanted, names.EXPLICIT, Reason.CLASS_EXPLICIT, _facts(snapshot, wanted))
    is_new = had is None or had.name != wanted
    return _checked(snapshot, chosen, is_new=is_new)


def _kept(snapshot: ApplicationSnapshot, had: _Had) -> Choice:
    if not had.name:
        return Choice(source=names.NONE, facts=_facts(snapshot, "", why="kept"))
    kept = Choice(had.name, names.DEFAULT, Reason.CLASS_STICKY, _facts(snapshot, had.name))
    return _checked(snapshot, kept, is_new=False)


def _defaulted(snapshot: ApplicationSnapshot) -> Choice:
    standing = snapshot.standing
    if standing.fault:
        facts = _facts(snapshot, standing.default, error=standing.fault)
        return Choice(reason=Reason.DEFAULT_NOT_ALLOWED, facts=facts, is_blocking=True)
    if not standing.default and standing.needs_class:
        return Choice(reason=Reason.CLASS_NOT_ALLOWED, facts=_facts(snapshot, ""), is_blocking=True)
    if not standing.default:
        return Choice(source=names.NONE, facts=_facts(snapshot, "", why="no default"))
    facts = _facts(snapshot, standing.default)
    return _checked(snapshot, Choice(standing.default, names.DEFAULT, Reason.CLASS_DEFAULT, facts), is_new=True)


def _declined(snapshot: ApplicationSnapshot, had: _Had | None) -> Choice:
    standing = snapshot.standing
    if not standing.needs_class:
        return Choice(source=names.EXPLICIT, facts=_facts(snapshot, "", why="declined"))
    facts = _facts(snapshot, "", default=standing.default)
    if had is not None and not had.name:
        return Choice(source=names.EXPLICIT, reason=Reason.CLASS_WITHDRAWN, facts=facts)
    return Choice(reason=Reason.CLASS_NOT_ALLOWED, facts=facts, is_blocking=True)


def _checked(snapshot: ApplicationSnapshot, chosen: Choice, *, is_new: bool) -> Choice:
    """Whether it may have the class: what is new has to be allowed, what it has already only has to exist."""
    allowed = snapshot.standing.allowed
    affinity_class = snapshot.classes.get(chosen.name)
    if affinity_class is None or (is_new and affinity_class.is_deleting):
        facts = {**chosen.facts, "deleting": True} if affinity_class is not None else chosen.facts
        return replace(chosen, reason=Reason.CLASS_MISSING, facts=facts, is_blocking=True)
    if allowed is not None and chosen.name not in allowed:
        reason = Reason.CLASS_NOT_ALLOWED if is_new else Reason.CLASS_WITHDRAWN
        return replace(chosen, reason=reason, is_blocking=is_new)
    return chosen


def _facts(snapshot: ApplicationSnapshot, name: str, **more: object) -> Object:
    standing, metadata = snapshot.standing, snapshot.application["metadata"]
    facts: Object = {
        "kind": snapshot.application["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata.get("name", ""),
        "class": name,
        **more,
    }
    if standing.tenant is not None:
        facts["tenant"] = standing.tenant.name
    if standing.allowed is not None:
        facts["allowed"] = list(standing.allowed)
    return facts


# the classes before


def _previous(snapshot: ApplicationSnapshot, had: _Had, name: str) -> tuple[str, ...]:
    """What pods may still be made by: the classes whose templates the cluster has until the release is ready."""
    if not name:
        return ()
    earlier = () if is_ready(snapshot.release) else had.previous
    if had.name == name:
        return earlier
    is_made = not earlier or name in earlier or _is_attempted(snapshot.release)
    found = (had.name, *earlier) if is_made else earlier
    return (NO_CLASS,) if NO_CLASS in found else tuple(dict.fromkeys(each for each in found if each != name))


def is_ready(release: Object | None) -> bool:
    """Whether it is ready as it is now, not as it was before its last change."""
    condition = release_condition(release, READY)
    return condition is not None and condition.get("status") == "True"


def release_condition(release: Object | None, kind: str) -> Object | None:
    """A condition of a HelmRelease; None also where it speaks of an earlier generation."""
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
    """Whether Helm has begun with the release as it is now, so that what is running may be of its class."""
    if release is None:
        return False
    attempted = (release.get("status") or {}).get("lastAttemptedGeneration") or 0
    return bool(attempted >= release["metadata"].get("generation", 0))
