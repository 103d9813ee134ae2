"""Objects in memory, with revisions and history.

An object is stored as the bytes of its JSON: 10,000 nodes of 11 KB take 110 MB instead of a gigabyte of dicts, a list
joins bytes, and a watch event needs no encoding. Only labels, selectable fields, uid and resourceVersion are kept
beside the bytes.

One process, one thread: a commit is atomic because nothing awaits in it. `Store.commit` checks the revision that the
writer has read, so a writer that awaited meanwhile (for webhooks) detects a conflict.

With a `Recorder` every change is also written to disk, later. Until then `undo` can take it back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias
from uuid import uuid4

import msgspec

from nodeyard.apiserver.resources import GroupResource
from nodeyard.kube.json import Object, read_float

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_decode = msgspec.json.Decoder(float_hook=read_float).decode
_encode = msgspec.json.Encoder().encode


class Key(NamedTuple):
    """Namespace and name; the namespace is empty for cluster-scoped objects."""

    namespace: str
    name: str


def _path(key: Key) -> str:
    """The sort key of lists: the key in etcd."""
    return f"{key.namespace}/{key.name}"


class Stored(msgspec.Struct, frozen=True, gc=False):
    """One version of one object."""

    key: Key
    revision: int
    uid: str
    raw: bytes
    labels: dict[str, str]
    fields: dict[str, str]

    def object(self) -> Object:
        """Decode the object; the caller owns the result."""
        decoded: Object = _decode(self.raw)
        return decoded


class Encoded(NamedTuple):
    """The bytes of an object around its resourceVersion, which it gets when it is committed."""

    before: bytes
    after: bytes

    @classmethod
    def of(cls, obj: Object) -> Encoded:
        """Encode an object. Pure, so that large objects can be encoded in the worker thread."""
        mark = uuid4().hex
        raw = _encode({**obj, "metadata": {**obj["metadata"], "resourceVersion": mark}})
        before, _, after = raw.partition(mark.encode())
        return cls(before, after)

    def at(self, revision: int) -> bytes:
        return b"%b%d%b" % (self.before, revision, self.after)


_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def restamp(raw: bytes, revision: int) -> bytes:
    """Return the object at another revision; only its metadata is decoded."""
    members = _decode_members(raw)
    metadata = _decode_members(members["metadata"])
    metadata["resourceVersion"] = msgspec.Raw(b'"%d"' % revision)
    members["metadata"] = msgspec.Raw(_encode(metadata))
    return _encode(members)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change. With `previous` a filtered watch tells added and deleted from modified."""

    type: EventType
    revision: int
    stored: Stored
    previous: Stored | None


class CompactedError(Exception):
    """The requested history has been compacted."""


class StaleError(Exception):
    """The object is no longer at the revision that the writer has read."""


class Replacement(NamedTuple):
    """A stored version that was replaced at its revision, without an event."""

    old: Stored
    new: Stored


Change: TypeAlias = tuple[GroupResource, Event | Replacement]


class Recorder(Protocol):
    """Gets every change, in order."""

    def record(self, resource: GroupResource, change: Event | Replacement) -> None: ...


Listener = Callable[[GroupResource, Event], None]
Convert = Callable[[Object], tuple[Object, Mapping[str, str]]]
"""Converts an object to one of another resource, with its selectable fields."""
Events: TypeAlias = list[Event]
Keys: TypeAlias = list[Key]


@dataclass(slots=True)
class _Table:
    objects: dict[Key, Stored]
    history: deque[Event]
    history_bytes: int = 0
    compacted: int = 0
    """Events up to this revision have been compacted."""
    ordered: list[Key] | None = None
    """Keys in list order; None after one has been added or removed."""


class Store:
    """All objects of one cluster."""

    def __init__(self, *, history_events: int = 20_000, history_bytes: int = 64 * 1024 * 1024) -> None:
        self._tables: dict[GroupResource, _Table] = {}
        self._listeners: list[Listener] = []
        self._pairs: dict[GroupResource, tuple[GroupResource, Convert]] = {}
        self._history_events = history_events
        self._history_bytes = history_bytes
        self._compacted = 0
        self.revision = 1
        self.recorder: Recorder | None = None
        self.is_undoing = False
        """True while listeners learn of the opposite of changes that are taken back."""

    # reads

    def get(self, resource: GroupResource, namespace: str, name: str) -> Stored | None:
        table = self._tables.get(resource)
        return table.objects.get(Key(namespace, name)) if table else None

    def list(self, resource: GroupResource, namespace: str = "") -> Iterator[Stored]:
        """List objects in the order of keys, of one namespace or of all."""
        table = self._tables.get(resource)
        return self._walk(table.objects, self._order(table), namespace, None) if table else iter(())

    def at(
        self, resource: GroupResource, revision: int, namespace: str = "", after: Key | None = None
    ) -> Iterator[Stored]:
        """The list at a revision, beginning after a key; raises CompactedError if that is compacted."""
        changed = self.since(resource, revision)
        table = self._tables.get(resource)
        if table is None:
            return iter(())
        if not changed:
            return self._walk(table.objects, self._order(table), namespace, after)
        past = dict(table.objects)
        for event in reversed(changed):
            if event.previous is None:
                past.pop(event.stored.key, None)
            else:
                past[event.stored.key] = event.previous
        return self._walk(past, sorted(past, key=_path), namespace, after)

    def count(self, resource: GroupResource) -> int:
        table = self._tables.get(resource)
        return len(table.objects) if table else 0

    def since(self, resource: GroupResource, revision: int) -> Events:
        """The events after this revision; raises CompactedError if they are compacted."""
        table = self._tables.get(resource)
        if revision < max(self._compacted, table.compacted if table else 0):
            raise CompactedError
        if table is None:
            return []
        events: Events = []
        for event in reversed(table.history):
            if event.revision <= revision:
                break
            events.append(event)
        events.reverse()
        return events

    def resources(self) -> Iterable[GroupResource]:
        return [resource for resource, table in self._tables.items() if table.objects]

    # writes

    def commit(
        self,
        resource: GroupResource,
        obj: Object,
        fields: Mapping[str, str],
        *,
        expect: Stored | None,
        check: Callable[[Object, bytes], None] | None = None,
        encoded: Encoded | None = None,
    ) -> Stored:
        """Create (`expect` is None) or replace the version that the writer has read. Sets metadata.resourceVersion.

        `check` may refuse the encoded object by raising. Pass `encoded` if the object was encoded
        ahead.
        """
        metadata = obj["metadata"]
        key = Key(metadata.get("namespace", ""), metadata["name"])
        table = self._table(resource)
        current = table.objects.get(key)
        if current is not expect:
            raise StaleError
        stored = self._stored(key, self.revision + 1, obj, fields, encoded)
        if check is not None:
            check(obj, stored.raw)
        self.revision += 1
        table.objects[key] = stored
        if current is None:
            table.ordered = None
        self._record(resource, table, Event("ADDED" if current is None else "MODIFIED", self.revision, stored, current))
        if pair := self._pairs.get(resource):
            self._put_other(pair, key, obj)
        return stored

    def pair(self, resource: GroupResource, other: GroupResource, convert: Convert) -> None:
        """Mirror every object of a resource to another one, converted, at the same revisions."""
        self._pairs[resource] = other, convert

    def _put_other(self, pair: tuple[GroupResource, Convert], key: Key, obj: Object) -> None:
        other, convert = pair
        table = self._table(other)
        current = table.objects.get(key)
        stored = table.objects[key] = self._stored(key, self.revision, *convert(obj))
        if current is None:
            table.ordered = None
        self._record(other, table, Event("ADDED" if current is None else "MODIFIED", self.revision, stored, current))

    def remove(self, resource: GroupResource, expect: Stored) -> Stored:
        """Remove an object; return its last version at the revision of the deletion."""
        table = self._table(resource)
        if table.objects.get(expect.key) is not expect:
            raise StaleError
        self.revision += 1
        last = self._take_out(resource, expect)
        if pair := self._pairs.get(resource):
            self._take_out(pair[0], self._table(pair[0]).objects[expect.key])
        return last

    def _take_out(self, resource: GroupResource, stored: Stored) -> Stored:
        table = self._table(resource)
        last = msgspec.structs.replace(stored, revision=self.revision, raw=restamp(stored.raw, self.revision))
        del table.objects[stored.key]
        table.ordered = None
        self._record(resource, table, Event("DELETED", self.revision, last, stored))
        return last

    def reread(self, resource: GroupResource, read: Iterable[tuple[Stored, Stored]]) -> None:
        """Replace stored versions that have not changed, at their revisions and without events."""
        objects = self._table(resource).objects
        for old, new in read:
            if objects.get(old.key) is old and old is not new:
                objects[old.key] = new
                if self.recorder is not None:
                    self.recorder.record(resource, Replacement(old, new))

    def insert(self, resource: GroupResource, stored: Stored) -> None:
        """Insert an object at the revision that it has, without history; call `announce` after the last one."""
        self._put(resource, stored)
        if pair := self._pairs.get(resource):
            self._put(pair[0], self._stored(stored.key, stored.revision, *pair[1](stored.object())))

    def restore(self, resource: GroupResource, stored: Stored) -> None:
        """Insert an object whose pair is inserted as well."""
        self._put(resource, stored)

    def replay(self, resource: GroupResource, key: Key, revision: int, stored: Stored | None) -> None:
        """Repeat an earlier change that `insert`ed objects do not contain, with its history; None removes."""
        table = self._table(resource)
        previous = table.objects.get(key)
        if stored is not None:
            table.objects[key] = stored
            self._remember(table, Event("MODIFIED" if previous else "ADDED", revision, stored, previous))
        elif previous is not None:
            del table.objects[key]
            last = msgspec.structs.replace(previous, revision=revision, raw=restamp(previous.raw, revision))
            self._remember(table, Event("DELETED", revision, last, previous))
        if previous is None or stored is None:
            table.ordered = None

    def replace(self, resource: GroupResource, stored: Stored) -> None:
        """Put a version in place of the one of the same revision, without an event."""
        objects = self._table(resource).objects
        if (current := objects.get(stored.key)) is not None and current.revision == stored.revision:
            objects[stored.key] = stored

    def announce(self, revision: int, compacted: int | None = None) -> None:
        """Go on from this revision, with the inserted objects; listeners learn of each as added.

        The history up to the revision is compacted, or less of it if it was replayed.
        """
        self.revision = revision
        self._compacted = revision if compacted is None else compacted
        for resource, table in list(self._tables.items()):
            for stored in list(table.objects.values()):
                for listener in tuple(self._listeners):
                    listener(resource, Event("ADDED", stored.revision, stored, None))

    def all(self) -> Sequence[tuple[GroupResource, Sequence[Stored]]]:
        """Return all objects as they are now."""
        return [(resource, list(table.objects.values())) for resource, table in self._tables.items()]

    def undo(self, revision: int, changes: Sequence[Change]) -> None:
        """Go back to a revision by taking back all changes since; listeners learn of the opposites."""
        self.revision = revision
        self._compacted = min(self._compacted, revision)
        for resource, change in reversed(changes):
            self._undo(self._table(resource), change)
        for resource in {resource for resource, _ in changes}:
            table = self._table(resource)
            table.ordered = None
            while table.history and table.history[-1].revision > revision:
                table.history_bytes -= len(table.history.pop().stored.raw)
            table.compacted = min(table.compacted, revision)
        self.is_undoing = True
        try:
            for resource, change in reversed(changes):
                if isinstance(change, Event):
                    self._tell(resource, _opposite(change))
        finally:
            self.is_undoing = False

    def compact(self) -> None:
        """Compact the history, as etcd does every five minutes: older watches and continue tokens answer 410."""
        self._compacted = self.revision
        for table in self._tables.values():
            table.history.clear()
            table.history_bytes = 0

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every change; return a function that removes it. Listeners must not write."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # internals

    def _put(self, resource: GroupResource, stored: Stored) -> None:
        table = self._table(resource)
        table.objects[stored.key] = stored
        table.ordered = None

    def _table(self, resource: GroupResource) -> _Table:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = _Table({}, deque(), compacted=0)
        return table

    @staticmethod
    def _order(table: _Table) -> Keys:
        if table.ordered is None:
            table.ordered = sorted(table.objects, key=_path)
        return table.ordered

    @staticmethod
    def _walk(
        objects: Mapping[Key, Stored], ordered: Sequence[Key], namespace: str, after: Key | None
    ) -> Iterator[Stored]:
        low, high = 0, len(ordered)
        if namespace:
            low = bisect_left(ordered, f"{namespace}/", key=_path)
            high = bisect_left(ordered, f"{namespace}0", key=_path)  # the character after the slash
        if after is not None:
            low = max(low, bisect_right(ordered, _path(after), key=_path))
        for key in ordered[low:high]:
            yield objects[key]

    def _stored(
        self, key: Key, revision: int, obj: Object, fields: Mapping[str, str], encoded: Encoded | None = None
    ) -> Stored:
        metadata = {**obj["metadata"], "resourceVersion": str(revision)}
        raw = _encode({**obj, "metadata": metadata}) if encoded is None else encoded.at(revision)
        return Stored(key, revision, metadata.get("uid", ""), raw, metadata.get("labels") or {}, dict(fields))

    @staticmethod
    def _undo(table: _Table, change: Event | Replacement) -> None:
        if isinstance(change, Replacement):
            if table.objects.get(change.new.key) is change.new:
                table.objects[change.old.key] = change.old
        elif change.previous is None:
            del table.objects[change.stored.key]
        else:
            table.objects[change.previous.key] = change.previous

    def _record(self, resource: GroupResource, table: _Table, event: Event) -> None:
        if self.recorder is not None:
            self.recorder.record(resource, event)
        self._remember(table, event)
        self._tell(resource, event)

    def _remember(self, table: _Table, event: Event) -> None:
        table.history.append(event)
        table.history_bytes += len(event.stored.raw)
        while len(table.history) > self._history_events or table.history_bytes > self._history_bytes:
            forgotten = table.history.popleft()
            table.history_bytes -= len(forgotten.stored.raw)
            table.compacted = forgotten.revision

    def _tell(self, resource: GroupResource, event: Event) -> None:
        for listener in tuple(self._listeners):
            listener(resource, event)


def _opposite(event: Event) -> Event:
    """The event that takes another one back."""
    if event.previous is None:
        return Event("DELETED", event.revision, event.stored, event.stored)
    if event.type == "DELETED":
        return Event("ADDED", event.previous.revision, event.previous, None)
    return Event("MODIFIED", event.previous.revision, event.previous, event.stored)
