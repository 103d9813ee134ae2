"""What has happened to a key that the plan being sent does not know of, so that a newer plan can replace its rest.

A change of an object that the plan itself writes is no news: as often as not it is that write, told by the watch before
the server's answer has come; and where it is another's, the write's precondition finds it out.

Nor is it a reason to plan again, where the plan says that nothing is left to do once it is carried out, and the object
is at the end what the server answered to a write bound to the version that was planned with: such changes are kept back
while the pass lasts, and make the key due only where they turn out to be anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Key

Subject: TypeAlias = tuple[str, ...]
"""Kind, namespace and name; then the cluster, where it is a further one."""


def subject_of(ref: ObjectRef) -> Subject:
    subject = (ref.kind, ref.namespace, ref.name)
    return (*subject, ref.cluster) if ref.cluster else subject


@dataclass
class _Pass:
    """What one pass writes, and what it heard of that."""

    written: set[Subject] = field(default_factory=set)
    expected: set[Subject] = field(default_factory=set)
    heard: list[tuple[Subject, str]] = field(default_factory=list)
    answers: Mapping[Subject, Collection[str]] = field(default_factory=dict)

    @property
    def has_surprise(self) -> bool:
        return any(version not in self.answers.get(subject, ()) for subject, version in self.heard)


class News:
    def __init__(self, due: Callable[[Key], None] = lambda _key: None) -> None:
        """`due` is told a key whose pass kept something back that has to be looked at after all."""
        self._due = due
        self._passes: dict[Key, _Pass] = {}
        self._fresh: set[Key] = set()

    def begin(self, key: Key) -> None:
        """Before a pass looks at the cache."""
        self._passes[key] = _Pass()

    def end(self, key: Key) -> None:
        """However the pass ended."""
        ended = self._passes.pop(key)
        self._fresh.discard(key)
        if ended.has_surprise:
            self._due(key)

    def writes(self, key: Key, refs: Iterable[ObjectRef], expected: Iterable[ObjectRef] = ()) -> None:
        """What the plan of the key is about to write, and of which of it the outcome is known beforehand."""
        current = self._passes[key]
        current.written = set(map(subject_of, refs))
        current.expected = set(map(subject_of, expected))

    def answered(self, key: Key, versions: Mapping[Subject, Collection[str]]) -> None:
        """Everything was carried out; the versions that the expected writes led to, each write to one."""
        self._passes[key].answers = versions

    def changed(self, key: Key, subject: Subject, version: str = "") -> bool:
        """Whether the key has to be planned again for it, as far as is known yet. The version is the object's now."""
        current = self._passes.get(key)
        if current is None:
            return True
        if subject in current.expected:
            current.heard.append((subject, version))
            return False
        if subject not in current.written:
            self._fresh.add(key)
        return True

    def has(self, key: Key) -> bool:
        return key in self._fresh
