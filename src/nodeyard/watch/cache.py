"""Cache of one kind: the objects that the watch delivered, overlaid with our own unconfirmed writes.

The reflector calls `deliver`, `replace`, `reject` and `bookmark`. The applier calls `record_write` and
`record_deletion` with the server's responses. Indexes, aggregates and listeners see one sequence of changes from both.
A change costs constant time.

The overlay makes us read our own writes: the response to a write is newer than what the watch has delivered, so the
cache shows it until the watch delivers that resourceVersion or a later one. A deletion has no resourceVersion: it is
shown until the watch delivers the deletion or a new object of that name. Each pending write has a deadline, after which
the informer factory confirms it by a GET (`Cache.overdue`, `Cache.confirm`).

The cache runs on one event loop and never awaits, so a reader that does not await sees one consistent state. Returned
objects are immutable and may be passed to another thread.

An object that does not decode, or that makes an index or aggregate fail, is recorded as malformed with its error. Its
last good version stays in the cache: for a planner a stale node does less harm than a vanished one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from nodeyard.client.decoder import Malformed
from nodeyard.kube.object_key import Key, identity_of, is_at_least
from nodeyard.kube.selectors import LabelSelector

T = TypeVar("T")


class PendingWrite(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A write that the watch has not delivered yet."""

    shown: T | None
    """The object after the write; None if it is deleted or no longer matches the selectors."""
    watched: T | None
    """The object that the watch last delivered."""
    version: str
    """The resourceVersion of the write; for a deletion, the last known resourceVersion of the object."""
    uid: str
    is_deletion: bool = False
    deadline: float


class Overlay(Generic[T]):
    """The pending writes of one cache. Methods that confirm a write return the object to show from then on."""

    def __init__(self) -> None:
        self._pending: dict[Key, PendingWrite[T]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def get(self, key: Key) -> PendingWrite[T] | None:
        return self._pending.get(key)

    def add(self, key: Key, write: PendingWrite[T]) -> None:
        self._pending[key] = write

    def drop(self, key: Key) -> None:
        del self._pending[key]

    def overdue(self, now: float) -> list[tuple[Key, PendingWrite[T]]]:
        return [(key, write) for key, write in self._pending.items() if write.deadline <= now]

    def deliver(self, key: Key, delivered: T | None, version: str, uid: str) -> T | None:
        """Process a watch event of this object, None for a deletion; return the object to show."""
        write = self._pending[key]
        if _is_confirmed(write, delivered is None, version, uid):
            del self._pending[key]
            return delivered
        self._pending[key] = msgspec.structs.replace(write, watched=delivered)
        return write.shown

    def relist(self, listed: Mapping[Key, T], uids: Mapping[Key, str], version: str) -> Iterator[tuple[Key, T | None]]:
        """Process a complete list at this resourceVersion; yield the object to show for each pending write."""
        for key, write in list(self._pending.items()):
            item = listed.get(key)
            if is_at_least(version, write.version) and not (write.is_deletion and uids.get(key) == write.uid):
                del self._pending[key]
                yield key, item
            else:
                self._pending[key] = msgspec.structs.replace(write, watched=item)
                yield key, write.shown

    def bookmark(self, version: str) -> list[tuple[Key, T | None]]:
        """Process a bookmark: drop older pending writes, which the watch would have delivered if they were selected."""
        passed = [
            (key, write.watched)
            for key, write in self._pending.items()
            if not write.is_deletion and is_at_least(version, write.version)
        ]
        for key, _ in passed:
            del self._pending[key]
        return passed


def _is_confirmed(write: PendingWrite[Any], is_deleted: bool, version: str, uid: str) -> bool:
    if write.is_deletion and uid == write.uid:
        return is_deleted
    return is_at_least(version, write.version)


class Change(msgspec.Struct, Generic[T], frozen=True):
    """A change of one object. Both objects are the same if only its decoding error changed."""

    key: Key
    old: T | None
    """None before a creation."""
    new: T | None
    """None after a deletion."""
    version: str = ""
    """The resourceVersion of the new object."""


Listener: TypeAlias = Callable[[Change[Any]], None]


class Derived(Protocol):
    """An index or aggregate that follows the objects of a cache, updated in two steps.

    `stage` calls the functions that a capability declared. They may fail on an unexpected object, so `stage` changes
    nothing. `commit` cannot fail. The cache therefore applies a change to everything derived from it, or to nothing.
    """

    def stage(self, key: Key, old: Any | None, new: Any | None) -> Any:
        """Compute the effect of the change without applying it."""

    def commit(self, staged: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Decides whether an object that we wrote is among those watched.

    Label selectors are evaluated here. Field selectors are known only to the server, so a new object then waits for the
    watch.
    """

    labels: LabelSelector
    takes_newcomers: bool


class Cache(Generic[T]):
    def __init__(self, type: type[T], selection: Selection | None = None) -> None:
        self._type = type
        self._identity = identity_of(type)
        self._key, self._version, self._uid = self._identity.key, self._identity.version, self._identity.uid
        self._selection = selection
        self._objects: dict[Key, T] = {}
        self._all: tuple[T, ...] | None = None
        self._order: list[Key] | None = None
        self._overlay: Overlay[T] = Overlay()
        self._malformed: dict[Key, Malformed] = {}
        self._derived: tuple[Derived, ...] = ()
        self._listeners: tuple[Listener, ...] = ()
        self._malformed_listeners: tuple[Callable[[], None], ...] = ()
        self.version = ""
        """The resourceVersion up to which the watch has delivered everything."""

    # reading

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def all(self) -> tuple[T, ...]:
        """Return all objects ordered by namespace and name; the identical tuple until a change."""
        if self._all is None:
            if self._order is None:
                self._order = sorted(self._objects)
            self._all = tuple(map(self._objects.__getitem__, self._order))
        return self._all

    def __len__(self) -> int:
        return len(self._objects)

    def key_of(self, obj: T) -> Key:
        return self._key(obj)

    @property
    def malformed(self) -> Mapping[Key, Malformed]:
        """The metadata and the error of each malformed object."""
        return dict(self._malformed)

    @property
    def unconfirmed(self) -> int:
        """The number of our writes that the watch has not delivered yet."""
        return len(self._overlay)

    # following

    def attach(self, derived: Derived) -> None:
        """Add an index or aggregate, and fill it with the current objects."""
        for key, obj in self._objects.items():
            derived.commit(derived.stage(key, None, obj))
        self._derived = (*self._derived, derived)

    def detach(self, derived: Derived) -> None:
        self._derived = _without(self._derived, derived)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after each change; return a function that removes it."""
        self._listeners = (*self._listeners, listener)

        def end() -> None:
            self._listeners = _without(self._listeners, listener)

        return end

    def listen_malformed(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener when a malformed object appears, changes or goes; return a function that removes it."""
        self._malformed_listeners = (*self._malformed_listeners, listener)

        def end() -> None:
            self._malformed_listeners = _without(self._malformed_listeners, listener)

        return end

    # from the watch

    def deliver(self, obj: T, *, is_deleted: bool = False) -> None:
        key, version = self._key(obj), self._version(obj)
        new = None if is_deleted else obj
        self.version = version
        if key in self._overlay:
            new = self._overlay.deliver(key, new, version, self._uid(obj))
        self._put(key, new)

    def replace(self, listed: Iterable[T], version: str, malformed: Iterable[Malformed] = ()) -> None:
        """Replace all objects by a list at this resourceVersion; equal objects cause no change."""
        target = {self._key(obj): obj for obj in listed}
        reject = {(each.namespace, each.name): each for each in malformed}
        for key in reject:
            if key in self._objects:
                target.setdefault(key, self._objects[key])
        self.version = version
        if len(self._overlay):
            uids = {key: self._uid(target[key]) for key in target if key in self._overlay}
            for key, shown in self._overlay.relist(target, uids, version):
                if shown is None:
                    target.pop(key, None)
                else:
                    target[key] = shown
        for key in [key for key in self._objects if key not in target]:
            self._put(key, None)
        for key, obj in target.items():
            if key not in reject:
                self._put(key, obj)
        for key in [key for key in self._malformed if key not in target and key not in reject]:
            self._clear_malformed(key)
        for key, each in reject.items():
            self._mark_malformed(key, each)

    def reject(self, malformed: Malformed) -> None:
        key = (malformed.namespace, malformed.name)
        self.version = malformed.resource_version or self.version
        if malformed.type == "DELETED":
            if key in self._overlay:
                self._put(key, self._overlay.deliver(key, None, malformed.resource_version, malformed.uid))
            else:
                self._put(key, None)
            return
        write = self._overlay.get(key)
        if write is not None and is_at_least(malformed.resource_version, write.version):
            self._overlay.drop(key)
        self._mark_malformed(key, malformed)

    def bookmark(self, version: str) -> None:
        """Process a bookmark: everything up to this resourceVersion has been delivered."""
        self.version = version
        for key, shown in self._overlay.bookmark(version):
            self._put(key, shown)

    def clear(self) -> None:
        """Remove all objects after the watch has ended, and notify the listeners."""
        self._overlay = Overlay()
        self.replace((), "")

    # from our own writes

    def record_write(self, answer: Any, deadline: float) -> None:
        """Record the server's response to our write, as an object of this cache's type or a plain dict."""
        obj = self._decode(answer)
        key, version, uid = self._key(obj), self._version(obj), self._uid(obj)
        write = self._overlay.get(key)
        if is_at_least(self.version, version) or (write is not None and _is_outdated(write, version, uid)):
            return
        watched = self._objects.get(key) if write is None else write.watched
        shown = self._select(key, obj)
        if shown is None and watched is None and write is None:
            return
        self._show(key, PendingWrite(shown=shown, watched=watched, version=version, uid=uid, deadline=deadline))

    def record_deletion(self, key: Key, uid: str, deadline: float) -> None:
        """Record that the server has deleted the object at our request."""
        write = self._overlay.get(key)
        known = self._objects.get(key)
        if known is None or (uid and uid != self._uid(known)):
            return
        watched = known if write is None else write.watched
        gone = PendingWrite(
            shown=None,
            watched=watched,
            version=self._version(known),
            uid=self._uid(known),
            is_deletion=True,
            deadline=deadline,
        )
        self._show(key, gone)

    def overdue(self, now: float) -> list[tuple[Key, PendingWrite[T]]]:
        """Return our writes that the watch should have delivered by now; the caller confirms each by a GET."""
        return self._overlay.overdue(now)

    def confirm(self, key: Key, asked: PendingWrite[T], found: Any | None, deadline: float) -> None:
        """Record the result of a GET of an overdue object, until the watch delivers it; None if it does not exist.

        `asked` is the write that the GET was sent for. A later write of the same object is not affected.
        """
        write = self._overlay.get(key)
        if write is None or (write.version, write.is_deletion) != (asked.version, asked.is_deletion):
            return
        if found is None:
            self._show(key, msgspec.structs.replace(write, shown=None, is_deletion=True, deadline=deadline))
            return
        obj = self._decode(found)
        confirmed = PendingWrite(
            shown=self._select(key, obj),
            watched=write.watched,
            version=self._version(obj),
            uid=self._uid(obj),
            deadline=deadline,
        )
        self._show(key, confirmed)

    def _show(self, key: Key, write: PendingWrite[T]) -> None:
        self._overlay.add(key, write)
        self._put(key, write.shown)

    def _decode(self, answer: Any) -> T:
        obj: T = answer if isinstance(answer, self._type) else msgspec.convert(answer, self._type)
        return obj

    def _select(self, key: Key, obj: T) -> T | None:
        """Return the object, or None if the selectors exclude it or may exclude it."""
        selection = self._selection
        if selection is None:
            return obj
        if not selection.takes_newcomers and key not in self._objects:
            return None
        return obj if selection.labels.matches(self._identity.labels(obj)) else None

    # the one way in

    def _put(self, key: Key, new: T | None) -> None:
        if self._malformed and key in self._malformed:
            self._clear_malformed(key)
        old = self._objects.get(key)
        if old is None and new is None:
            return
        if old is not None and new is not None and self._is_same(old, new):
            return
        try:
            staged = [derived.stage(key, old, new) for derived in self._derived]
        except Exception as error:
            self._mark_malformed(key, self._to_malformed(key, old if new is None else new, error))
            return
        for derived, each in zip(self._derived, staged, strict=True):
            derived.commit(each)
        self._all = None
        if new is None:
            del self._objects[key]
            self._order = None
        else:
            if old is None:
                self._order = None
            self._objects[key] = new
        change = Change(key, old, new, "" if new is None else self._version(new))
        for listener in self._listeners:
            listener(change)

    def _to_malformed(self, key: Key, obj: Any, error: Exception) -> Malformed:
        text = f"{type(error).__name__}: {error}"
        return Malformed("MODIFIED", *key, self._uid(obj), self._version(obj), text)

    def _mark_malformed(self, key: Key, malformed: Malformed) -> None:
        known = self._malformed.get(key)
        self._malformed[key] = malformed
        if known is not None and _decisive_fields(known) == _decisive_fields(malformed):
            return
        obj = self._objects.get(key)
        if obj is not None:
            change = Change(key, obj, obj, self._version(obj))
            for listener in self._listeners:
                listener(change)
        self._notify_malformed()

    def _clear_malformed(self, key: Key) -> None:
        """Forget the error of an object that decodes again or is gone."""
        del self._malformed[key]
        self._notify_malformed()

    def _notify_malformed(self) -> None:
        for listener in self._malformed_listeners:
            listener()

    def _is_same(self, old: T, new: T) -> bool:
        version = self._version(new)
        return old is new or (version != "" and version == self._version(old) and self._uid(old) == self._uid(new))


def _without(those: tuple[T, ...], one: T) -> tuple[T, ...]:
    """Remove one element by identity: others may be equal to it."""
    place = next((place for place, each in enumerate(those) if each is one), len(those))
    return those[:place] + those[place + 1 :]


def _decisive_fields(malformed: Malformed) -> tuple[Any, ...]:
    """Return the fields of a malformed object that a planner may use."""
    return malformed.error, malformed.uid, malformed.is_deleting, malformed.finalizers


def _is_outdated(write: PendingWrite[Any], version: str, uid: str) -> bool:
    """Return True if a response is older than the recorded one: responses may overtake each other, and a deletion is
    final."""
    return is_at_least(write.version, version) or (write.is_deletion and write.uid == uid)
