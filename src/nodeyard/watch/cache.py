"""The objects of one kind as last known: what the watch delivered, with our own unconfirmed writes laid over it.

The informer feeds it (`deliver`, `replace`, `set_aside`, `pass_version`), writers tell it what the server answered
(`wrote`, `deleted`), and everything that follows the objects (indexes, aggregates, listeners) sees one sequence of
changes, whichever side they came from. Work per change is constant.

All of it runs on one event loop and nothing here awaits, so whoever reads without awaiting reads one state. What is
handed out is immutable and may be taken to another thread.

An object that did not decode, or that an index or aggregate could not take, is set aside with its error; the last one
that was understood stays: to a planner a node that vanished would be worse news than one that is out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from nodeyard.client.decoding import Malformed
from nodeyard.kube.identity import Key, identity_of, is_at_least
from nodeyard.kube.selectors import LabelSelector
from nodeyard.watch.derived import Derived
from nodeyard.watch.overlay import Overlay, Own

T = TypeVar("T")

Listener: TypeAlias = Callable[[Any | None, Any | None], None]
"""Told after a change: the object before and after; None where there was or is none. Old and new are the same object
where only its error is new."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects are watched, as far as it can be told of one that we wrote.

    Labels tell it. Where fields select too, only the server knows: an object that is not there yet waits for the watch.
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
        self._aside_listeners: tuple[Callable[[], None], ...] = ()
        self.version = ""
        """Everything up to this resource version has been delivered."""

    # reading

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def all(self) -> tuple[T, ...]:
        """By namespace and name; the same tuple until something changes."""
        if self._all is None:
            if self._order is None:
                self._order = sorted(self._objects)
            self._all = tuple(map(self._objects.__getitem__, self._order))
        return self._all

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def malformed(self) -> Mapping[Key, str]:
        """What is wrong with each object that is not understood."""
        return {key: each.error for key, each in self._malformed.items()}

    @property
    def aside(self) -> Mapping[Key, Malformed]:
        """What is known of them all the same."""
        return dict(self._malformed)

    @property
    def unconfirmed(self) -> int:
        """How many of our writes the watch has not told back yet."""
        return len(self._overlay)

    # following

    def derive(self, derived: Derived) -> None:
        """Keep this index or aggregate from here on; objects that are already there are taken in."""
        for key, obj in self._objects.items():
            derived.commit(derived.stage(key, None, obj))
        self._derived = (*self._derived, derived)

    def underive(self, derived: Derived) -> None:
        self._derived = _without(self._derived, derived)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Answers how to end it."""
        self._listeners = (*self._listeners, listener)

        def end() -> None:
            self._listeners = _without(self._listeners, listener)

        return end

    def listen_aside(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Told when an object that is not understood has come, is otherwise than before, or has gone."""
        self._aside_listeners = (*self._aside_listeners, listener)

        def end() -> None:
            self._aside_listeners = _without(self._aside_listeners, listener)

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
        """Everything there is, at this version: what is not listed is gone, what is equal stays untouched."""
        target = {self._key(obj): obj for obj in listed}
        set_aside = {(each.namespace, each.name): each for each in malformed}
        for key in set_aside:
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
            if key not in set_aside:
                self._put(key, obj)
        for key in [key for key in self._malformed if key not in target and key not in set_aside]:
            self._take_back(key)
        for key, each in set_aside.items():
            self._reject(key, each)

    def set_aside(self, malformed: Malformed) -> None:
        key = (malformed.namespace, malformed.name)
        self.version = malformed.resource_version or self.version
        if malformed.type == "DELETED":
            if key in self._overlay:
                self._put(key, self._overlay.deliver(key, None, malformed.resource_version, malformed.uid))
            else:
                self._put(key, None)
            return
        own = self._overlay.get(key)
        if own is not None and is_at_least(malformed.resource_version, own.version):
            self._overlay.drop(key)
        self._reject(key, malformed)

    def pass_version(self, version: str) -> None:
        """A bookmark: everything up to this version has been delivered."""
        self.version = version
        for key, shown in self._overlay.pass_version(version):
            self._put(key, shown)

    def clear(self) -> None:
        """Nobody watches any more: everything goes, and what follows the objects hears it."""
        self._overlay = Overlay()
        self.replace((), "")

    # from our own writes

    def wrote(self, answer: Any, deadline: float) -> None:
        """The server's answer to a write of ours, in the type of this cache or as a plain dict."""
        obj = self._typed(answer)
        key, version, uid = self._key(obj), self._version(obj), self._uid(obj)
        own = self._overlay.get(key)
        if is_at_least(self.version, version) or (own is not None and _is_outdated(own, version, uid)):
            return
        watched = self._objects.get(key) if own is None else own.watched
        shown = self._selected(key, obj)
        if shown is None and watched is None and own is None:
            return
        self._hold(key, Own(shown=shown, watched=watched, version=version, uid=uid, deadline=deadline))

    def deleted(self, key: Key, uid: str, deadline: float) -> None:
        """The server has carried out a deletion of ours, and the object is gone at once."""
        own = self._overlay.get(key)
        known = self._objects.get(key)
        if known is None or (uid and uid != self._uid(known)):
            return
        watched = known if own is None else own.watched
        gone = Own(
            shown=None,
            watched=watched,
            version=self._version(known),
            uid=self._uid(known),
            is_deletion=True,
            deadline=deadline,
        )
        self._hold(key, gone)

    def overdue(self, now: float) -> list[tuple[Key, Own[T]]]:
        """Our writes that the watch should have told back by now; each is settled by a GET."""
        return self._overlay.overdue(now)

    def settle(self, key: Key, asked: Own[T], found: Any | None, deadline: float) -> None:
        """What a GET of an overdue object answered; None where there is none. It stands until the watch has told it.

        `asked` is the write that the GET was sent for: one that came after it is not settled by it.
        """
        own = self._overlay.get(key)
        if own is None or (own.version, own.is_deletion) != (asked.version, asked.is_deletion):
            return
        if found is None:
            self._hold(key, msgspec.structs.replace(own, shown=None, is_deletion=True, deadline=deadline))
            return
        obj = self._typed(found)
        settled = Own(
            shown=self._selected(key, obj),
            watched=own.watched,
            version=self._version(obj),
            uid=self._uid(obj),
            deadline=deadline,
        )
        self._hold(key, settled)

    def _hold(self, key: Key, own: Own[T]) -> None:
        self._overlay.hold(key, own)
        self._put(key, own.shown)

    def _typed(self, answer: Any) -> T:
        obj: T = answer if isinstance(answer, self._type) else msgspec.convert(answer, self._type)
        return obj

    def _selected(self, key: Key, obj: T) -> T | None:
        """The object, or None where it is not, or not surely, among those that are watched."""
        selection = self._selection
        if selection is None:
            return obj
        if not selection.takes_newcomers and key not in self._objects:
            return None
        return obj if selection.labels.matches(self._identity.labels(obj)) else None

    # the one way in

    def _put(self, key: Key, new: T | None) -> None:
        if self._malformed and key in self._malformed:
            self._take_back(key)
        old = self._objects.get(key)
        if old is None and new is None:
            return
        if old is not None and new is not None and self._is_same(old, new):
            return
        try:
            staged = [derived.stage(key, old, new) for derived in self._derived]
        except Exception as error:
            self._reject(key, self._misfit(key, old if new is None else new, error))
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
        for listener in self._listeners:
            listener(old, new)

    def _misfit(self, key: Key, obj: Any, error: Exception) -> Malformed:
        text = f"{type(error).__name__}: {error}"
        return Malformed("MODIFIED", *key, self._uid(obj), self._version(obj), text)

    def _reject(self, key: Key, malformed: Malformed) -> None:
        known = self._malformed.get(key)
        self._malformed[key] = malformed
        if known is not None and _fate(known) == _fate(malformed):
            return
        obj = self._objects.get(key)
        if obj is not None:
            for listener in self._listeners:
                listener(obj, obj)
        self._tell_aside()

    def _take_back(self, key: Key) -> None:
        """It is understood again, or gone."""
        del self._malformed[key]
        self._tell_aside()

    def _tell_aside(self) -> None:
        for listener in self._aside_listeners:
            listener()

    def _is_same(self, old: T, new: T) -> bool:
        version = self._version(new)
        return old is new or (version != "" and version == self._version(old) and self._uid(old) == self._uid(new))


def _without(those: tuple[T, ...], one: T) -> tuple[T, ...]:
    """But for one of these, told by what it is: others may be equal to it."""
    place = next((place for place, each in enumerate(those) if each is one), len(those))
    return those[:place] + those[place + 1 :]


def _fate(malformed: Malformed) -> tuple[Any, ...]:
    """What may be decided by, of an object that is not understood."""
    return malformed.error, malformed.uid, malformed.is_deleting, malformed.finalizers


def _is_outdated(own: Own[Any], version: str, uid: str) -> bool:
    """Whether an answer is older than the one we hold: answers may overtake each other, and a deletion is the last."""
    return is_at_least(own.version, version) or (own.is_deletion and own.uid == uid)
