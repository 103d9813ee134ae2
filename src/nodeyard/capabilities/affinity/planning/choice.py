"""Resolve the class of an application: its own choice, its current class, or the default of its tenant.

    spec.affinityClass: dc1    dc1, if it exists and the tenant allows it
    spec.affinityClass: ""     none, unless the tenant, or one above it, restricts its applications to some classes and
                               has a default
    not set, released before   the current class: a changed default moves nothing
    not set, not released      the tenant's default, if there is one

The record (`planning.class_record`) holds the current class. An application keeps it even if the tenant no longer
allows it, so that a change by somebody else neither moves nor denies its pods. Only a new choice is refused. A release
that is adopted, or was created by an earlier version, has no record yet: its labels count if the application names no
class and could choose that one now. They are no reason to admit pods of two classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.applications import (
    ChosenByApplication,
    ClassMissing,
    ClassNotAllowed,
    ClassRequired,
    ClassWithdrawn,
    DefaultUnusable,
    KeptFromDefault,
    NoClass,
    TenantDefault,
)
from nodeyard.capabilities.affinity.messages.objects import ObjectMessage
from nodeyard.capabilities.affinity.planning.class_record import NO_CLASS, stored_record
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot
from nodeyard.kube.json import Object

READY: Final = "Ready"


@dataclass(frozen=True)
class Choice:
    message: ObjectMessage
    """Why it has this class, or cannot have it."""
    name: str = ""
    """Empty for no class."""
    source: str = names.NONE
    """`explicit`, `default` or `none`; stored in the record and on the release."""
    previous: tuple[str, ...] = ()
    """Previous classes that pods may still have, latest first; empty if the class is not changing."""
    is_blocking: bool = False
    """Nothing is applied; an existing release stays as it is."""

    @property
    def is_refused(self) -> bool:
        """Return whether the class cannot be had, or is only kept because the application had it before."""
        return self.is_blocking or isinstance(self.message, ClassWithdrawn)


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
    if found.is_blocking or current is None or current.adopted:
        return found
    return replace(found, previous=_previous(snapshot, current, found.name))


def wanted_class(application: Object) -> str | None:
    """Return spec.affinityClass; None if it is not set, empty if the application wants no class."""
    value = (application.get("spec") or {}).get(names.CLASS_FIELD)
    return None if value is None else str(value)


# the current class


@dataclass(frozen=True)
class _CurrentClass:
    """The class of an application by its record, or by the release that it adopts."""

    name: str
    source: str
    previous: tuple[str, ...] = ()
    adopted: str = ""
    """The release, if there is no record."""


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
    source = (release["metadata"].get("annotations") or {}).get(names.CLASS_SOURCE, "")
    return _CurrentClass(name, source, adopted=release["metadata"]["name"])


def is_released(application: Object, release: Object) -> bool:
    """Return whether a HelmRelease is the application's: by the record, or else by all three application labels.

    HelmRelease names of two kinds may collide. If the record names it and nobody else controls it, the labels do not
    count: somebody may have changed them.
    """
    record, metadata = stored_record(application), release["metadata"]
    if record is not None and record.release == metadata["name"]:
        controllers = [each.get("uid") for each in metadata.get("ownerReferences") or () if each.get("controller")]
        if controllers in ([], [record.uid]):
            return True
    labels = metadata.get("labels") or {}
    return (
        labels.get(names.APPLICATION_GROUP) == names.APPS_GROUP
        and labels.get(names.APPLICATION_KIND) == application["kind"]
        and labels.get(names.APPLICATION_NAME) == application["metadata"]["name"]
    )


# the four cases


def _choose_named(snapshot: ApplicationSnapshot, wanted: str, current: _CurrentClass | None) -> Choice:
    chosen = Choice(ChosenByApplication(object=snapshot.ref, affinity_class=wanted), wanted, names.EXPLICIT)
    is_new = current is None or current.name != wanted
    return _check(snapshot, chosen, is_new=is_new)


def _keep_current(snapshot: ApplicationSnapshot, current: _CurrentClass) -> Choice:
    ref, name, adopted = snapshot.ref, current.name, current.adopted
    if not name:
        return Choice(NoClass(object=ref, why="kept", adopted=adopted))
    message = KeptFromDefault(object=ref, affinity_class=name, adopted=adopted)
    return _check(snapshot, Choice(message, name, names.DEFAULT), is_new=False)


def _choose_default(snapshot: ApplicationSnapshot) -> Choice:
    policy, ref, tenant, default = snapshot.policy, snapshot.ref, snapshot.tenant_name, snapshot.policy.default
    if policy.fault:
        unusable = DefaultUnusable(
            object=ref,
            affinity_class=default,
            tenant=tenant,
            allowed=policy.allowed,
            allow_in=policy.lacking(),
            error=policy.fault,
        )
        return Choice(unusable, is_blocking=True)
    if not default and policy.needs_class:
        required = ClassRequired(object=ref, tenant=tenant, allowed=policy.allowed, allow_in=policy.lacking())
        return Choice(required, is_blocking=True)
    if not default:
        return Choice(NoClass(object=ref, why="no default"))
    message = TenantDefault(object=ref, affinity_class=default, tenant=tenant)
    return _check(snapshot, Choice(message, default, names.DEFAULT), is_new=True)


def _choose_none(snapshot: ApplicationSnapshot, current: _CurrentClass | None) -> Choice:
    policy, ref, tenant = snapshot.policy, snapshot.ref, snapshot.tenant_name
    if not policy.needs_class:
        return Choice(NoClass(object=ref, why="declined"), source=names.EXPLICIT)
    is_kept = current is not None and not current.name
    kind = ClassWithdrawn if is_kept else ClassRequired
    refused = kind(
        object=ref, tenant=tenant, allowed=policy.allowed, allow_in=policy.lacking(), default=policy.usable_default
    )
    return Choice(refused, source=names.EXPLICIT, is_blocking=not is_kept)


def _check(snapshot: ApplicationSnapshot, chosen: Choice, *, is_new: bool) -> Choice:
    """Block a class that does not exist, and a new one that the tenant does not allow."""
    name, policy = chosen.name, snapshot.policy
    allowed = policy.allowed
    affinity_class = snapshot.classes.get(name)
    if affinity_class is None or (is_new and affinity_class.is_deleting):
        is_only = allowed is not None and not {*allowed} - {name}
        is_deleting = affinity_class is not None
        missing = ClassMissing(object=snapshot.ref, affinity_class=name, is_deleting=is_deleting, is_only=is_only)
        return replace(chosen, message=missing, is_blocking=True)
    if allowed is not None and name not in allowed:
        kind = ClassNotAllowed if is_new else ClassWithdrawn
        allow_in, tenant = policy.lacking(name), snapshot.tenant_name
        refused = kind(object=snapshot.ref, affinity_class=name, tenant=tenant, allowed=allowed, allow_in=allow_in)
        return replace(chosen, message=refused, is_blocking=is_new)
    return chosen


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
