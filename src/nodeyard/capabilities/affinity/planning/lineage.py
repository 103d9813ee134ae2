"""Whose is a pod? From owner to owner up to the HelmRelease of an application.

    Pod -> ReplicaSet -> Deployment  ~label~>  HelmRelease postgres-main  =  Postgres main

All owner references are followed, the nearest objects first. An object that has none, or whose owners lead to no
application, is asked for the label by which Flux marks what it installs: the release of that name, in its own
namespace. A release that bears the labels of an application ends the way, whoever owns it; one that does not was itself
installed by another and leads on.

A reference means one object, not whoever bears its name now: where the uid differs, the owner is gone. What ends a way
without an application is kept: `why` tells it, and something that could not be read makes the answer `Unknown`, never
"of nobody". The same objects give the same answer, however many of them have to be asked for first (`Pending`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Cause, Missing, Unreadable

MAX_OBJECTS: Final = 128
MAX_DEPTH: Final = 16
"""Longer ways are nobody's but of those who want to keep us walking."""

Sought: TypeAlias = ObjectMeta | Missing | Unreadable | None
"""What there is of an object; None where only the server can tell."""
Find: TypeAlias = Callable[[ObjectRef], Sought]


class Application(NamedTuple):
    """What a release is of."""

    group: str
    kind: str
    name: str


class Step(NamedTuple):
    """An object on the way."""

    ref: ObjectRef
    metadata: ObjectMeta
    below: Step | None = None
    """What it owns, on this way."""
    is_labelled: bool = False
    """It was come to by the label of Flux, not by a reference."""
    depth: int = 0

    def way(self) -> tuple[Step, ...]:
        """From where the walk began to here."""
        steps: list[Step] = []
        step: Step | None = self
        while step is not None:
            steps.append(step)
            step = step.below
        return tuple(reversed(steps))


class DeadEnd(NamedTuple):
    """An owner that leads no further."""

    ref: ObjectRef
    reason: Reason
    detail: str = ""
    below: Step | None = None


class Owned(NamedTuple):
    """Of an application, by its release."""

    release: Step
    application: Application
    others: tuple[tuple[Step, Application], ...] = ()
    """Releases of other applications that are owners too: the nearest counts."""
    dead_ends: tuple[DeadEnd, ...] = ()

    @property
    def path(self) -> tuple[Step, ...]:
        return self.release.way()


class Unowned(NamedTuple):
    """Of no application."""

    dead_ends: tuple[DeadEnd, ...] = ()


class Unknown(NamedTuple):
    """It cannot be told: an owner could not be read."""

    obstacle: DeadEnd
    dead_ends: tuple[DeadEnd, ...] = ()


class Pending(NamedTuple):
    """These have to be asked for first."""

    refs: tuple[ObjectRef, ...]


Lineage: TypeAlias = Owned | Unowned | Unknown

_UNOWNED: Final = Unowned()
_UNKNOWN: Final = frozenset({Reason.OWNER_UNKNOWN, Reason.OWNER_FORBIDDEN})


def walk(ref: ObjectRef, metadata: ObjectMeta, find: Find) -> Lineage | Pending:
    """The application of an object."""
    if not metadata.owner_references and names.FLUX_NAME not in metadata.labels and ref.kind != names.RELEASE_KIND:
        return _UNOWNED
    return _Walk(find).of(Step(ref, metadata))


def application_of(ref: ObjectRef, labels: Mapping[str, str]) -> Application | None:
    """What an object is the release of; None where it is none, or its labels do not fit its name."""
    if ref.kind != names.RELEASE_KIND or ref.api_version.partition("/")[0] != names.FLUX_GROUP:
        return None
    kind, name = labels.get(names.APPLICATION_KIND), labels.get(names.APPLICATION_NAME)
    group = labels.get(names.APPLICATION_GROUP)
    if not kind or not group or not name or not ref.name.endswith(name):
        return None
    return Application(group, kind, name)


class _Walk:
    __slots__ = ("_dead_ends", "_fallbacks", "_find", "_pending", "_queue", "_releases", "_seen")

    def __init__(self, find: Find) -> None:
        self._find = find
        self._queue: list[Step] = []
        self._fallbacks: list[Step] = []
        self._seen: set[str] = set()
        self._pending: list[ObjectRef] = []
        self._releases: list[tuple[Step, Application]] = []
        self._dead_ends: list[DeadEnd] = []

    def of(self, start: Step) -> Lineage | Pending:
        self._seen.add(start.metadata.uid)
        self._queue.append(start)
        self._exhaust()
        if not self._releases and not self._pending and self._fallbacks:
            for step in self._fallbacks:
                self._follow_label(step)
            self._exhaust()
        return Pending(tuple(self._pending)) if self._pending else self._told()

    def _told(self) -> Lineage:
        dead_ends = tuple(self._dead_ends)
        if self._releases:
            release, application = self._releases[0]
            others = () if len(self._releases) == 1 else tuple(self._others(release.ref.namespace, application))
            return Owned(release, application, others, dead_ends)
        obstacle = next((each for each in dead_ends if each.reason in _UNKNOWN), None)
        if obstacle is not None:
            return Unknown(obstacle, dead_ends)
        return Unowned(dead_ends) if dead_ends else _UNOWNED

    def _others(self, namespace: str, nearest: Application) -> Iterator[tuple[Step, Application]]:
        for release, application in self._releases:
            if (release.ref.namespace, application) != (namespace, nearest):
                yield release, application

    def _exhaust(self) -> None:
        """Follows what there is, and what that leads to, until nothing is left."""
        queue, self._queue = self._queue, []
        while queue:
            for step in queue:
                if step.ref.kind == names.RELEASE_KIND:
                    application = application_of(step.ref, step.metadata.labels)
                    if application is not None:
                        self._releases.append((step, application))
                        continue
                if step.metadata.owner_references:
                    self._follow_owners(step)
                else:
                    self._follow_label(step)
            queue, self._queue = self._queue, []

    def _follow_owners(self, step: Step) -> None:
        if names.FLUX_NAME in step.metadata.labels:
            self._fallbacks.append(step)
        namespace = step.metadata.namespace or step.ref.namespace
        for owner in step.metadata.owner_references:
            api_version, kind, name, uid = owner.api_version, owner.kind, owner.name, owner.uid
            self._go(step, ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace, uid=uid))

    def _follow_label(self, step: Step) -> None:
        name = step.metadata.labels.get(names.FLUX_NAME)
        namespace = step.metadata.namespace or step.ref.namespace
        if name and namespace:
            api_version, kind = names.FLUX_API_VERSION, names.RELEASE_KIND
            ref = ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace)
            self._go(step, ref, is_labelled=True)

    def _go(self, below: Step, ref: ObjectRef, *, is_labelled: bool = False) -> None:
        """One step up."""
        if below.depth >= MAX_DEPTH or len(self._seen) >= MAX_OBJECTS:
            limit = f"more than {MAX_DEPTH} steps" if below.depth >= MAX_DEPTH else f"more than {MAX_OBJECTS} owners"
            self._end(DeadEnd(ref, Reason.OWNER_UNKNOWN, f"not followed: {limit}", below))
            return
        found = self._find(ref)
        if isinstance(found, ObjectMeta):
            self._arrive(below, ref, found, is_labelled)
        elif found is None:
            self._pending.append(ref)
        elif isinstance(found, Missing):
            self._end(DeadEnd(ref, Reason.OWNER_MISSING, "", below))
        else:
            is_forbidden = found.cause is Cause.FORBIDDEN
            reason = Reason.OWNER_FORBIDDEN if is_forbidden else Reason.OWNER_UNKNOWN
            self._end(DeadEnd(ref, reason, found.reason, below))

    def _arrive(self, below: Step, ref: ObjectRef, found: ObjectMeta, is_labelled: bool) -> None:
        uid = found.uid
        if ref.uid and uid != ref.uid:
            self._end(DeadEnd(ref, Reason.OWNER_REPLACED, uid, below))
        elif uid not in self._seen:
            self._seen.add(uid)
            if is_labelled or found.namespace != ref.namespace:
                ref = _located(ref, found)
            self._queue.append(Step(ref, found, below, is_labelled, below.depth + 1))
        elif any(step.metadata.uid == uid for step in below.way()):
            self._end(DeadEnd(ref, Reason.OWNER_CYCLE, "", below))

    def _end(self, dead_end: DeadEnd) -> None:
        self._dead_ends.append(dead_end)


def _located(ref: ObjectRef, found: ObjectMeta) -> ObjectRef:
    """Which object it is: a reference does not tell whether its kind has namespaces, and a label not which one."""
    return ObjectRef(
        api_version=ref.api_version, kind=ref.kind, name=ref.name, namespace=found.namespace, uid=found.uid
    )
