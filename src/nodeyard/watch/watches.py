"""Every watch on one cluster: shared, started and stopped as it is needed, and told what we wrote.

    watches = Watches(client, clock, random)
    view = watches.register(capability.watches, capability.aggregates, mark=queue.add, on_synced=...)
    async with asyncio.TaskGroup() as tasks: tasks.create_task(watches.run())

A watch runs while someone needs it (`needed(view)`, asked again after every change of that view) and, where its kind is
optional, while the server has the kind. Those who watch the same source share one informer and one cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError, NotFound
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.watch.aggregates import Fold, Folding
from nodeyard.watch.feeds import Feed, Watched
from nodeyard.watch.identity import Key
from nodeyard.watch.indexes import Index
from nodeyard.watch.informer import Report
from nodeyard.watch.overlay import Own
from nodeyard.watch.sources import Source
from nodeyard.watch.view import CacheView

DISCOVERY_SECONDS: Final = 30.0
DISCOVERY_RETRY_SECONDS: Final = 2.0
# Changes of one moment are one question to `needed`.
PAUSE_SECONDS: Final = 0.05
# A watch that is well tells a write back in milliseconds; one that is not is asked about by a GET.
CONFIRM_SECONDS: Final = 15.0
SETTLE_SECONDS: Final = 5.0

_log = get_logger("watches")


class Watches:
    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._feeds: dict[Source, Feed] = {}
        self._is_known = False
        """Whether it is known what is wanted: needs and, for optional kinds, discovery have been asked."""
        self._discover_at = 0.0
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()

    # set-up

    def register(
        self,
        watches: Sequence[Watched],
        aggregates: Sequence[Folding] = (),
        *,
        mark: Callable[[str], None] = lambda _key: None,
        on_synced: Callable[[str], None] = lambda _kind: None,
    ) -> CacheView:
        """What a capability watches; its view of it.

        `mark` is told each key that a change concerns, `on_synced` each kind when it has been told for the first time.
        """
        feeds: dict[str, Feed] = {}
        indexes: dict[tuple[str, str], Index] = {}
        folds: dict[str, Fold] = {}
        view = CacheView(feeds, indexes, folds)
        has_needs = any(watch.needed is not None for watch in watches)
        for watch, names in _named(watches):
            if names[0] in feeds:
                raise ValueError(f"{names[0]} is watched twice by one capability")
            feed = self._feed(watch)
            feeds |= dict.fromkeys(names, feed)
            feed.is_optional &= watch.optional
            feed.needs.append(_need(watch, view))
            feed.on_synced.append(_call(on_synced, watch.resource.kind))
            for name, values in watch.indexes.items():
                index = Index(values)
                feed.cache.derive(index)
                indexes |= {(kind, name): index for kind in names}
            feed.cache.listen(_marking(watch, mark))
            if has_needs:
                feed.cache.listen(lambda _old, _new: self._wake.set())
        for aggregate in aggregates:
            folds[aggregate.name] = Fold(aggregate)
            feeds[aggregate.kind].cache.derive(folds[aggregate.name])
        self._wake.set()
        return view

    def _feed(self, watch: Watched) -> Feed:
        source = Source(watch.resource, watch.label_selector, watch.field_selector, watch.metadata_only)
        feed = self._feeds.get(source)
        if feed is None:
            feed = self._feeds[source] = Feed(source)
            feed.on_synced += [self._progress.set, self._wake.set]
        return feed

    # running

    async def run(self) -> None:
        """Until cancelled; then every watch is ended."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._settle_forever(), name="settle own writes")
                while True:
                    self._wake.clear()
                    await self.reconcile()
                    await self._rest()
        finally:
            await asyncio.gather(*(feed.stop() for feed in self.feeds))

    async def reconcile(self) -> None:
        """Start what is wanted and does not run, stop what runs and is not wanted."""
        async with self._turn:
            if self._has_optional and self._clock.monotonic() >= self._discover_at:
                await self._discover()
            await self._start_and_stop()
        self._is_known = all(feed.is_served is not None for feed in self.feeds if feed.is_optional)
        self._progress.set()

    async def _start_and_stop(self) -> None:
        for feed in self.feeds:
            is_wanted = feed.is_wanted
            if is_wanted and not feed.is_running:
                _log.info("watching", resource=str(feed.source))
                feed.start(self._client, self._clock, self._random, self.rediscover)
            elif feed.is_running and not is_wanted:
                _log.info("ending the watch", resource=str(feed.source), reason="not served or not needed")
                await feed.stop()

    def rediscover(self) -> None:
        """A kind may have come or gone: ask the server soon, not in its turn."""
        self._discover_at = 0.0
        self._wake.set()

    async def _discover(self) -> None:
        try:
            catalog = await self._client.catalog()
        except (ClientError, msgspec.MsgspecError, LookupError) as error:
            # The last two: a document that is no discovery, from whatever stands in front of the server.
            self._discover_at = self._clock.monotonic() + DISCOVERY_RETRY_SECONDS
            _log.warning("keeping the known kinds", reason=str(error))
            return
        self._discover_at = self._clock.monotonic() + DISCOVERY_SECONDS
        for feed in self.feeds:
            feed.serve(catalog)

    async def _rest(self) -> None:
        """Until something changed that may matter, or it is time to look for new kinds."""
        await self._clock.sleep(PAUSE_SECONDS)
        left = self._discover_at - self._clock.monotonic() if self._has_optional else DISCOVERY_SECONDS
        waking = asyncio.create_task(self._wake.wait())
        turn = asyncio.create_task(self._clock.sleep(max(left, 0.0)))
        try:
            await asyncio.wait((waking, turn), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waking.cancel()
            turn.cancel()
            await asyncio.gather(waking, turn, return_exceptions=True)

    # own writes

    def wrote(self, ref: ObjectRef, answer: Json) -> None:
        """The server's answer to a create, patch or apply: shown until the watch has told it back.

        The object as a plain dict, or decoded as its kind is watched; decoded for another purpose it may lack fields
        and is left to the watch, as is a Status.
        """
        if answer is None or (isinstance(answer, dict) and answer.get("kind") == "Status"):
            return
        for feed in self._feeds_of(ref):
            try:
                feed.cache.wrote(answer, self._clock.monotonic() + CONFIRM_SECONDS)
            except msgspec.ValidationError as error:
                # Of another type, or malformed: the watch brings it, or sets it aside.
                _log.debug("not laying over", object=str(ref), reason=str(error))

    def deleted(self, ref: ObjectRef, answer: Json = None) -> None:
        """The server's answer to a delete: the object where it lives on for a while, else anything."""
        if isinstance(answer, dict) and (answer.get("metadata") or {}).get("deletionTimestamp"):
            self.wrote(ref, answer)
            return
        for feed in self._feeds_of(ref):
            deadline = self._clock.monotonic() + CONFIRM_SECONDS
            feed.cache.deleted((ref.namespace, ref.name), ref.uid, deadline)

    def _feeds_of(self, ref: ObjectRef) -> Iterable[Feed]:
        return [
            feed
            for feed in self.feeds
            if feed.is_running and (feed.resource.api_version, feed.resource.kind) == (ref.api_version, ref.kind)
        ]

    async def settle(self) -> None:
        """Ask the server about every write that the watch should have told back by now."""
        now = self._clock.monotonic()
        overdue = [(feed, key, own) for feed in self.feeds for key, own in feed.cache.overdue(now)]
        await asyncio.gather(*(self._settle(feed, key, own) for feed, key, own in overdue))

    async def _settle(self, feed: Feed, key: Key, own: Own[Any]) -> None:
        namespace, name = key
        try:
            found = await self._client.get(feed.resource, name, namespace)
        except NotFound:
            found = None
        except (ClientError, msgspec.MsgspecError) as error:
            _log.warning("settling a write later", resource=str(feed.source), name=name, reason=str(error))
            return
        feed.cache.settle(key, own, found, self._clock.monotonic() + CONFIRM_SECONDS)

    async def _settle_forever(self) -> None:
        while True:
            await self._clock.sleep(SETTLE_SECONDS)
            await self.settle()

    # how it is going

    @property
    def _has_optional(self) -> bool:
        return any(feed.is_optional for feed in self.feeds)

    @property
    def feeds(self) -> tuple[Feed, ...]:
        return tuple(self._feeds.values())

    @property
    def is_synced(self) -> bool:
        """Whether everything that is wanted has been told once."""
        return self._is_known and all(feed.is_synced for feed in self.feeds if feed.is_wanted)

    async def synced(self) -> None:
        """Wait until it is."""
        while not self.is_synced:
            self._progress.clear()
            await self._progress.wait()

    def reports(self) -> list[Report]:
        """One for each watch that runs."""
        return [report for feed in self.feeds if (report := feed.report()) is not None]

    def stalled(self) -> list[Report]:
        """The watches whose caches may be out of date; readiness fails while there is one."""
        return [report for report in self.reports() if report.is_stalled]


def _named(watches: Sequence[Watched]) -> Iterable[tuple[Watched, list[str]]]:
    """Each watch with the names its kind goes by: with its group, and without where no other group has it."""
    kinds = [watch.resource.kind for watch in watches]
    for watch in watches:
        kind, group = watch.resource.kind, watch.resource.group or "core"
        yield watch, [f"{kind}.{group}", kind][: 2 if kinds.count(kind) == 1 else 1]


def _need(watch: Watched, view: CacheView) -> Callable[[], bool]:
    needed = watch.needed

    def is_needed() -> bool:
        if needed is None:
            return True
        try:
            return needed(view)
        except Exception:
            # A watch too many costs memory; one too few would hide what a plan depends on.
            _log.exception("watching though it may not be needed", resource=str(watch.resource))
            return True

    return is_needed


def _call(function: Callable[[str], None], argument: str) -> Callable[[], None]:
    return lambda: function(argument)


def _marking(watch: Watched, mark: Callable[[str], None]) -> Callable[[Any | None, Any | None], None]:
    def changed(old: Any | None, new: Any | None) -> None:
        try:
            keys = tuple(watch.keys(old, new))
        except Exception:
            # One object that the mapping cannot take must not end the watch of all others.
            _log.exception("leaving a change unmapped", resource=str(watch.resource))
            return
        for key in keys:
            mark(key)

    return changed
