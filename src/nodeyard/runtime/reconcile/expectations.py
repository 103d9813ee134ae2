"""Expectations: which watch events of a key are echoes of its own writes.

Any other event during a pass makes the running plan outdated, so that a newer plan can replace its unsent rest.

An event of an object that the plan writes does not make it outdated. Usually it is the echo of that write, delivered
before the response; if someone else wrote the object, the precondition of our write fails.

The echo does not requeue the key either, if the plan is final and the event carries the resourceVersion that the server
returned for our conditional write. Such events are deferred until the pass ends, and requeue the key only if they turn
out to be something else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from nodeyard.client.resources import view_kind
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Key

Subject: TypeAlias = tuple[str, ...]
"""The kind as views name it, namespace and name; then the cluster, if it is a remote one."""


def subject_of(ref: ObjectRef) -> Subject:
    subject = (view_kind(ref.api_version, ref.kind), ref.namespace, ref.name)
    return (*subject, ref.cluster) if ref.cluster else subject


@dataclass
class _Pass:
    """The writes that one pass announced, and the deferred events of their objects."""

    written: set[Subject] = field(default_factory=set)
    expected: set[Subject] = field(default_factory=set)
    deferred: list[tuple[Subject, str]] = field(default_factory=list)
    versions: Mapping[Subject, Collection[str]] = field(default_factory=dict)

    @property
    def has_foreign_event(self) -> bool:
        return any(version not in self.versions.get(subject, ()) for subject, version in self.deferred)


class Expectations:
    def __init__(self, enqueue: Callable[[Key], None] = lambda _key: None) -> None:
        """`enqueue` requeues a key whose deferred events were not all echoes."""
        self._enqueue = enqueue
        self._passes: dict[Key, _Pass] = {}
        self._outdated: set[Key] = set()

    def begin(self, key: Key) -> None:
        """Start a pass; called before its snapshot."""
        self._passes[key] = _Pass()

    def end(self, key: Key) -> None:
        """End a pass, whatever its result."""
        ended = self._passes.pop(key)
        self._outdated.discard(key)
        if ended.has_foreign_event:
            self._enqueue(key)

    def expect_writes(self, key: Key, refs: Iterable[ObjectRef], expected: Iterable[ObjectRef] = ()) -> None:
        """Announce the objects that the plan writes, and those whose resulting version the response will tell."""
        current = self._passes[key]
        current.written = set(map(subject_of, refs))
        current.expected = set(map(subject_of, expected))

    def confirm(self, key: Key, versions: Mapping[Subject, Collection[str]]) -> None:
        """Confirm that all writes succeeded, with the resourceVersions that the responses returned."""
        self._passes[key].versions = versions

    def observe(self, key: Key, subject: Subject, version: str = "") -> bool:
        """Record a watch event. Returns True if the key must be queued now; `version` is the object's
        resourceVersion."""
        current = self._passes.get(key)
        if current is None:
            return True
        if subject in current.expected:
            current.deferred.append((subject, version))
            return False
        if subject not in current.written:
            self._outdated.add(key)
        return True

    def is_outdated(self, key: Key) -> bool:
        """Return True if events arrived that the running plan does not know."""
        return key in self._outdated
