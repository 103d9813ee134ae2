"""Find the application of a pod: follow its owners up to the HelmRelease of an application.

    Pod -> ReplicaSet -> Deployment  ~label~>  HelmRelease postgres-main  =  Postgres main

The walk follows all owner references, breadth first. If an object has no owners, or they lead to no application, it
follows the label that Flux sets on what it installs: the HelmRelease of that name in the object's namespace.

A HelmRelease that the record of an Application (`planning.class_record`) names ends the path, whatever its labels and
owners are: who may write HelmReleases can remove them. So does one with the labels of an application. One with neither
was installed by another release, and the walk goes on. A HelmRelease that is missing ends the path as well if a record
names it: Flux leaves the workloads of a suspended HelmRelease behind when it is deleted.

Where the Applications of a kind are not cached, the one that the HelmRelease is named after is looked up, so that a
record is not missed.

The labels of a HelmRelease prove nothing. If no record names it so far, the Application in its labels is looked up: its
record counts if the HelmRelease has an owner reference to it, it has that uid, and the record names the HelmRelease.

An owner reference means one object: if the uid differs, the owner is gone. Dead ends are kept for `why`. An owner that
could not be read makes the answer `Unknown`, never "no application". The answer does not depend on how many objects had
to be looked up first (`Pending`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.class_record import Record, read_record
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.objects import ObjectMeta, OwnerReference
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Cause, Missing, Unreadable

MAX_OBJECTS: Final = 128
MAX_DEPTH: Final = 16
"""Limits of the walk: only an attacker needs longer paths."""

LookupResult: TypeAlias = ObjectMeta | Missing | Unreadable | None
"""The metadata of an object, or why there is none; None if the API server has to be asked."""
Find: TypeAlias = Callable[[ObjectRef], LookupResult]


class Application(NamedTuple):
    """The application that a HelmRelease names."""

    group: str
    kind: str
    name: str


Records: TypeAlias = Callable[[str, str], Iterable[tuple[Application, Record | None]]]
"""The Applications whose record names a HelmRelease, by its namespace and name. No record: the kind is not cached, and
the Application, if it exists, may have one."""


class Step(NamedTuple):
    """An object on the path."""

    ref: ObjectRef
    metadata: ObjectMeta
    below: Step | None = None
    """The object below it on this path, which it owns."""
    is_labelled: bool = False
    """Reached by the label of Flux, not by an owner reference."""
    depth: int = 0

    def path(self) -> tuple[Step, ...]:
        """Return the steps from the start of the walk to here."""
        steps: list[Step] = []
        step: Step | None = self
        while step is not None:
            steps.append(step)
            step = step.below
        return tuple(reversed(steps))


class DeadEnd(NamedTuple):
    """An owner at which the walk ends without an application."""

    ref: ObjectRef
    reason: Reason
    detail: str = ""
    below: Step | None = None


class OwningRelease(NamedTuple):
    """A HelmRelease of an application, by a record or by its own labels."""

    release: Step
    application: Application
    record: Record | None = None
    """The Application's record, if it names the release."""

    @property
    def affinity_class(self) -> str:
        """Return the recorded class, or else the one in the label of the release; empty for none."""
        if self.record is not None:
            return self.record.affinity_class
        return self.release.metadata.labels.get(names.AFFINITY_CLASS, "")

    @property
    def previous(self) -> tuple[str, ...]:
        """Return the recorded previous classes; the label of the release does not count."""
        return () if self.record is None else self.record.previous


class Owned(NamedTuple):
    """The object belongs to an application, through its HelmRelease."""

    release: Step
    application: Application
    record: Record | None = None
    others: tuple[OwningRelease, ...] = ()
    """Further releases that own it; the pod must fit the class of each."""
    dead_ends: tuple[DeadEnd, ...] = ()

    @property
    def path(self) -> tuple[Step, ...]:
        return self.release.path()

    @property
    def owning_releases(self) -> tuple[OwningRelease, ...]:
        """Return all releases that own it, nearest first."""
        return (OwningRelease(self.release, self.application, self.record), *self.others)

    @property
    def obstacle(self) -> DeadEnd | None:
        """Return another owner that could not be read."""
        return next((each for each in self.dead_ends if each.reason in _UNKNOWN), None)


class Unowned(NamedTuple):
    """The object belongs to no application."""

    dead_ends: tuple[DeadEnd, ...] = ()


class Unknown(NamedTuple):
    """The application is unknown: an owner could not be read."""

    obstacle: DeadEnd
    dead_ends: tuple[DeadEnd, ...] = ()


class Pending(NamedTuple):
    """The walk needs these objects from the API server first."""

    refs: tuple[ObjectRef, ...]


Lineage: TypeAlias = Owned | Unowned | Unknown

_UNOWNED: Final = Unowned()
_UNKNOWN: Final = frozenset({Reason.OWNER_UNKNOWN, Reason.OWNER_FORBIDDEN})


def walk(
    ref: ObjectRef, metadata: ObjectMeta, find: Find, records: Records = lambda _namespace, _name: ()
) -> Lineage | Pending:
    """Find the application of an object."""
    if not metadata.owner_references and names.FLUX_NAME not in metadata.labels and ref.kind != names.RELEASE_KIND:
        return _UNOWNED
    return _Walk(find, records).run(Step(ref, metadata))


def application_of(ref: ObjectRef, labels: Mapping[str, str]) -> Application | None:
    """Return the application of a HelmRelease; None for other objects, or if its labels do not fit its name."""
    if not _is_release(ref):
        return None
    kind, name = labels.get(names.APPLICATION_KIND), labels.get(names.APPLICATION_NAME)
    group = labels.get(names.APPLICATION_GROUP)
    if not kind or not group or not name or not ref.name.endswith(name):
        return None
    return Application(group, kind, name)


def _is_release(ref: ObjectRef) -> bool:
    return ref.kind == names.RELEASE_KIND and ref.api_version.partition("/")[0] == names.FLUX_GROUP


class _Walk:
    __slots__ = ("_dead_ends", "_fallbacks", "_find", "_pending", "_queue", "_records", "_releases", "_seen")

    def __init__(self, find: Find, records: Records) -> None:
        self._find = find
        self._records = records
        self._queue: list[Step] = []
        self._fallbacks: list[Step] = []
        self._seen: set[str] = set()
        self._pending: list[ObjectRef] = []
        self._releases: list[OwningRelease] = []
        self._dead_ends: list[DeadEnd] = []

    def run(self, start: Step) -> Lineage | Pending:
        self._seen.add(start.metadata.uid)
        self._queue.append(start)
        self._drain_queue()
        if not self._releases and not self._pending and self._fallbacks:
            for step in self._fallbacks:
                self._follow_label(step)
            self._drain_queue()
        return Pending(tuple(self._pending)) if self._pending else self._result()

    def _result(self) -> Lineage:
        dead_ends = tuple(self._dead_ends)
        if self._releases:
            return Owned(*self._releases[0], others=tuple(self._releases[1:]), dead_ends=dead_ends)
        obstacle = next((each for each in dead_ends if each.reason in _UNKNOWN), None)
        if obstacle is not None:
            return Unknown(obstacle, dead_ends)
        return Unowned(dead_ends) if dead_ends else _UNOWNED

    def _owning_releases(self, step: Step) -> list[OwningRelease]:
        """Return a HelmRelease with its applications: by the records that name it, or else by its labels."""
        namespace = step.metadata.namespace or step.ref.namespace
        recorded = []
        for each, cached in self._records(namespace, step.ref.name):
            record = self._look_up_record(step, namespace, each) if cached is None else cached
            if record is not None:
                recorded.append(OwningRelease(step, each, record))
        application = application_of(step.ref, step.metadata.labels)
        return recorded or ([] if application is None else [self._labelled_release(step, application)])

    def _look_up_record(self, step: Step, namespace: str, application: Application) -> Record | None:
        """Return the record of an Application that is not cached, if it names the HelmRelease."""
        api_version = f"{application.group}/{names.VERSION}"
        ref = ObjectRef(api_version=api_version, kind=application.kind, name=application.name, namespace=namespace)
        found = self._find(ref)
        if found is None:
            self._pending.append(ref)
        elif isinstance(found, Unreadable) and found.cause is not Cause.NOT_SERVED:
            self._add_unreadable(ref, found, step)
        if not isinstance(found, ObjectMeta):
            return None
        record = read_record(found.annotations, found.uid)
        return record if record is not None and record.release == step.ref.name else None

    def _labelled_release(self, step: Step, application: Application) -> OwningRelease:
        """Return a HelmRelease with the application in its labels, and the record of the Application that owns it."""
        unbacked = OwningRelease(step, application)
        owner = next((each for each in step.metadata.owner_references if _refers_to(each, application)), None)
        if owner is None:
            return unbacked
        namespace = step.metadata.namespace or step.ref.namespace
        api_version, kind, name, uid = owner.api_version, owner.kind, owner.name, owner.uid
        ref = ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace, uid=uid)
        found = self._available(step, ref, self._find(ref))
        record = None if found is None else read_record(found.annotations, uid)
        return (
            unbacked if record is None or record.release != step.ref.name else OwningRelease(step, application, record)
        )

    def _drain_queue(self) -> None:
        """Follow the queued steps, and those that they add, until none is left."""
        queue, self._queue = self._queue, []
        while queue:
            for step in queue:
                if _is_release(step.ref) and (owners := self._owning_releases(step)):
                    self._releases += owners
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
        # The controller comes first: the pod is labelled with the nearest release.
        for owner in sorted(step.metadata.owner_references, key=lambda each: not each.controller):
            api_version, kind, name, uid = owner.api_version, owner.kind, owner.name, owner.uid
            self._step_up(step, ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace, uid=uid))

    def _follow_label(self, step: Step) -> None:
        name = step.metadata.labels.get(names.FLUX_NAME)
        namespace = step.metadata.namespace or step.ref.namespace
        if name and namespace:
            api_version, kind = names.FLUX_API_VERSION, names.RELEASE_KIND
            ref = ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace)
            self._step_up(step, ref, is_labelled=True)

    def _step_up(self, below: Step, ref: ObjectRef, *, is_labelled: bool = False) -> None:
        """Step up to an owner."""
        if below.depth >= MAX_DEPTH or len(self._seen) >= MAX_OBJECTS:
            limit = f"more than {MAX_DEPTH} steps" if below.depth >= MAX_DEPTH else f"more than {MAX_OBJECTS} owners"
            self._add_dead_end(DeadEnd(ref, Reason.OWNER_UNKNOWN, f"not followed: {limit}", below))
            return
        found = self._find(ref)
        if isinstance(found, Missing) and _is_release(ref):
            metadata = ObjectMeta(name=ref.name, namespace=ref.namespace)
            self._releases += self._owning_releases(Step(ref, metadata, below, is_labelled, below.depth + 1))
        available = self._available(below, ref, found)
        if available is not None:
            self._visit(below, ref, available, is_labelled)

    def _available(self, below: Step, ref: ObjectRef, found: LookupResult) -> ObjectMeta | None:
        """Return the referenced object; None, with a dead end or pending lookup, if it is not available."""
        if isinstance(found, ObjectMeta):
            if not ref.uid or found.uid == ref.uid:
                return found
            self._add_dead_end(DeadEnd(ref, Reason.OWNER_REPLACED, found.uid, below))
        elif found is None:
            self._pending.append(ref)
        elif isinstance(found, Missing):
            self._add_dead_end(DeadEnd(ref, Reason.OWNER_MISSING, "", below))
        else:
            self._add_unreadable(ref, found, below)
        return None

    def _visit(self, below: Step, ref: ObjectRef, found: ObjectMeta, is_labelled: bool) -> None:
        uid = found.uid
        if uid not in self._seen:
            self._seen.add(uid)
            if is_labelled or found.namespace != ref.namespace:
                ref = _locate(ref, found)
            self._queue.append(Step(ref, found, below, is_labelled, below.depth + 1))
        elif any(step.metadata.uid == uid for step in below.path()):
            self._add_dead_end(DeadEnd(ref, Reason.OWNER_CYCLE, "", below))

    def _add_unreadable(self, ref: ObjectRef, found: Unreadable, below: Step) -> None:
        reason = Reason.OWNER_FORBIDDEN if found.cause is Cause.FORBIDDEN else Reason.OWNER_UNKNOWN
        self._add_dead_end(DeadEnd(ref, reason, found.reason, below))

    def _add_dead_end(self, dead_end: DeadEnd) -> None:
        self._dead_ends.append(dead_end)


def _refers_to(owner: OwnerReference, application: Application) -> bool:
    """Return whether an owner reference is to the Application. Records in other groups are not guarded: ignore them."""
    named = (owner.api_version.partition("/")[0], owner.kind, owner.name)
    return application.group == names.APPS_GROUP and named == application


def _locate(ref: ObjectRef, found: ObjectMeta) -> ObjectRef:
    """Complete a reference: an owner reference does not say if its kind is namespaced, a label has no uid."""
    return ObjectRef(
        api_version=ref.api_version, kind=ref.kind, name=ref.name, namespace=found.namespace, uid=found.uid
    )
