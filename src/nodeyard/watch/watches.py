"""Every watch on one cluster: shared, started and stopped as it is needed, and told what we wrote.

    watches = Watches(client, clock, random)
    view = watches.register(capability.watches, capability.aggregates, mark=queue.add, on_synced=...)
    async with asyncio.TaskGroup() as tasks: tasks.create_task(watches.run())

A watch runs while someone needs it (`needed(view)`, asked again after every change of that view) and, where its kind is
optional, while the server has the kind. Those who watch the same source share one informer and one cache. Kinds that
users declare join a view while it runs, and leave it (`declared`). On a further cluster, contact may be lost: meanwhile
all watches rest and keep what they know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.errors import ClientError, NotFound
from nodeyard.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.kube.identity import Key
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.watch.aggregates import Fold, Folding
from nodeyard.watch.attachments import Attachment, Hearing
from nodeyard.watch.declared import Declared
from nodeyard.watch.facts import Facts
from nodeyard.watch.feeds import Feed, Watched, full_name
from nodeyard.watch.indexes import Index
from nodeyard.watch.informer import Report
from nodeyard.watch.inquiring import DISCOVERY_SECONDS, Inquirer
from nodeyard.watch.overlay import Own
from nodeyard.watch.sources import Source, source_of
from nodeyard.watch.view import CacheView

# Changes of one moment are one question to `needed`.
PAUSE_SECONDS: Final = 0.05
# A watch that is well tells a write back in milliseconds; one that is not is asked about by a GET.
CONFIRM_SECONDS: Final = 15.0
SETTLE_SECONDS: Final = 5.0
_BRINGING_KINDS: Final = frozenset(map(full_name, (CUSTOM_RESOURCE_DEFINITIONS, API_SERVICES)))
"""With these, kinds come and go."""

_log = get_logger("watches")


class Watches:
    def __init__(self, client: Client, clock: Clock, random: Random, *, identifies: bool = True) -> None:
        """`identifies`: find out which cluster it is when asked; else whoever knows says it."""
        self._client = client
        self._clock = clock
        self._random = random
        self._feeds: dict[Source, Feed] = {}
        self._declared: list[Declared] = []
        self._catalog: Catalog | None = None
        self._is_known = False
        """Whether it is known what is wanted: needs and, for optional kinds, discovery have been asked."""
        self._was_synced = False
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self.facts = Facts(self._wake.set)
        self._inquirer = Inquirer(client, clock, self.facts)
        self._identifies = identifies
        self._is_held = False
        self.on_watching: Callable[[Feed], None] = lambda _feed: None
        """Told of each watch that begins."""
        self.on_dropped: Callable[[Feed], None] = lambda _feed: None
        """Told of each kind that nobody declares any more."""
        self.on_discovered: Callable[[Catalog], None] = lambda _catalog: None
        """Told what the server has, whenever it was asked."""

    # set-up

    def register(
        self,
        watches: Sequence[Watched],
        aggregates: Sequence[Folding] = (),
        *,
        declared: Callable[[CacheView], Iterable[Watched]] | None = None,
        mark: Callable[[str], None] = lambda _key: None,
        on_synced: Callable[[str], None] = lambda _kind: None,
        on_change: Callable[[], None] | None = None,
        on_news: Callable[[], None] = lambda: None,
        on_trouble: Callable[[], None] = lambda: None,
    ) -> CacheView:
        """What a capability watches; its view of it.

        `declared` names further watches as long as they are wanted, asked again after every change of the view.
        `mark` is told each key that a change concerns, `on_synced` each kind when it has been told for the first time.
        `on_change` is called after every change, `on_news` when what was asked about the server itself has changed, and
        about objects that are not understood: which keys they concern cannot be known. `on_trouble` is called when a
        watch broke and not in the way it had before, and when it is well again.
        """
        feeds: dict[str, Feed] = {}
        indexes: dict[tuple[str, str], Index] = {}
        folds: dict[str, Fold] = {}
        view = CacheView(feeds, indexes, folds, self.facts.inquire(on_news))
        is_asked_again = declared is not None or any(watch.needed is not None for watch in watches)
        after = [self._wake.set] if is_asked_again else []
        after += [] if on_change is None else [on_change]
        hearing = Hearing(mark, on_synced, after, on_news, on_trouble)
        for watch, names in _named(watches):
            if names[0] in feeds:
                raise ValueError(f"{names[0]} is watched twice by one capability")
            feed = self._feed(source_of(watch))
            feed.is_vital = True
            feed.is_optional &= watch.optional
            attachment = Attachment(feed, (watch,), hearing, _need(watch, view))
            feeds |= dict.fromkeys(names, feed)
            indexes |= {(kind, name): index for kind in names for name, index in attachment.indexes.items()}
            folds |= attachment.folds
        for aggregate in aggregates:
            folds[aggregate.name] = Fold(aggregate)
            feeds[aggregate.kind].cache.derive(folds[aggregate.name])
        if declared is not None:
            shown = Declared(partial(declared, view), feeds, indexes, folds, partial(self._attach, hearing))
            self._declare(shown, view)
        self._wake.set()
        return view

    def _declare(self, declared: Declared, view: CacheView) -> None:
        self._declared.append(declared)
        view.look = declared.look
        view.on_sighting(self._wake.set)

    def _attach(self, hearing: Hearing, source: Source, watches: Sequence[Watched]) -> Attachment:
        """To a kind that was just declared. It may have been made just now too: what is served is asked soon."""
        feed = self._feed(source)
        if self._catalog is not None and feed.is_served is None:
            feed.serve(self._catalog)
            feed.is_served = feed.is_served or None
        if not feed.is_served:
            self._inquirer.hurry()
        attachment = Attachment(feed, watches, hearing, is_late=True)
        self._is_known = False
        self._wake.set()
        if feed.is_synced:
            hearing.on_synced(feed.resource.kind)
        return attachment

    def _feed(self, source: Source) -> Feed:
        feed = self._feeds.get(source)
        if feed is None:
            feed = self._feeds[source] = Feed(source)
            feed.on_synced += [self._progress.set, self._wake.set]
            feed.on_trouble.append(self._progress.set)
            if full_name(feed.resource) in _BRINGING_KINDS:
                feed.cache.listen(lambda _old, _new: self.rediscover())
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
            for each in self._declared:
                each.look()
            if not self._is_held:
                await self._inquire()
            await self._start_and_stop()
            self._drop()
        self._is_known = all(feed.is_served is not None for feed in self.feeds if feed.is_optional)
        self._progress.set()

    async def _start_and_stop(self) -> None:
        for feed in self.feeds:
            if self._is_held:
                await feed.rest()
                continue
            if not feed.is_wanted and (feed.is_running or feed.is_kept):
                _log.info("ending the watch", resource=str(feed.source), reason="not served or not needed")
                await feed.stop()
                self._turn_over(feed)
            if feed.is_wanted and not feed.is_running:
                _log.info("watching", resource=str(feed.source))
                feed.start(self._client, self._clock, self._random, self.rediscover)
                self.on_watching(feed)

    def _turn_over(self, feed: Feed) -> None:
        """To the version that the server has of its kind now, where the watch was ended for that."""
        if feed.is_served is None and self._catalog is not None:
            feed.serve(self._catalog)

    def _drop(self) -> None:
        """Feeds of kinds that nobody declares any more."""
        for source, feed in tuple(self._feeds.items()):
            if not feed.needs and not feed.is_running:
                del self._feeds[source]
                self.on_dropped(feed)

    def rediscover(self) -> None:
        """A kind may have come or gone: ask the server soon, not in its turn."""
        self._inquirer.hurry()
        self._wake.set()

    async def _inquire(self) -> None:
        catalog = await self._inquirer.discover(is_wanted=self._has_optional)
        if catalog is not None:
            self._catalog = catalog
            self.on_discovered(catalog)
            for feed in self.feeds:
                feed.serve(catalog)
        if self._identifies:
            await self._inquirer.identify(sum(feed.breaks for feed in self.feeds))

    # contact

    def hold(self) -> None:
        """There is no contact: watches come to rest, and what is known stays."""
        self._is_held = True
        self._wake.set()

    async def rest(self) -> None:
        """Every watch has come to rest when this returns."""
        async with self._turn:
            for feed in self.feeds:
                await feed.rest()

    async def forget(self) -> None:
        """What is known is of another cluster: every watch ends and its objects go."""
        async with self._turn:
            for feed in self.feeds:
                feed.is_served = None
                await feed.stop()
        self.facts.forget()

    def release(self) -> None:
        """There is contact: watches go on."""
        self._is_held = False
        self.rediscover()

    def look_again(self) -> None:
        """What `needed` was answered may have changed, for reasons outside the views here."""
        self._wake.set()

    async def _rest(self) -> None:
        """Until something changed that may matter, or it is time to look for new kinds."""
        await self._clock.sleep(PAUSE_SECONDS)
        left = DISCOVERY_SECONDS if self._is_held else self._inquirer.left(discovers=self._has_optional)
        waking = asyncio.create_task(self._wake.wait())
        turn = asyncio.create_task(self._clock.sleep(left))
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
            if feed.resource.kind == ref.kind and feed.is_running and feed.resource.api_version == ref.api_version
        ]

    async def settle(self) -> None:
        """Ask the server about every write that the watch should have told back by now."""
        if self._is_held:
            return
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
        is_known = self._is_known and not self.facts.is_waited_for and all(each.is_current for each in self._declared)
        return is_known and all(feed.is_settled for feed in self.feeds if feed.is_wanted)

    @property
    def is_ready(self) -> bool:
        """Whether it has been synced, and what was known beforehand is: a kind that is declared or met later is waited
        for by whoever needs it, and by nobody else."""
        self._was_synced = self._was_synced or self.is_synced
        return self._was_synced and all(feed.is_settled for feed in self.feeds if feed.is_vital and feed.is_wanted)

    async def synced(self) -> None:
        """Wait until it is."""
        while not self.is_synced:
            self._progress.clear()
            await self._progress.wait()

    def reports(self) -> list[Report]:
        """One for each watch that runs."""
        return [report for feed in self.feeds if (report := feed.report()) is not None]

    def stalled(self) -> list[Report]:
        """The watches whose caches may be out of date; readiness fails while there is one.

        Not those of declared kinds that cannot be watched: who declares one shall not take the operator down.
        """
        counted = [feed.report() for feed in self.feeds if feed.is_vital or not feed.error]
        return [report for report in counted if report is not None and report.is_stalled]


def _named(watches: Sequence[Watched]) -> Iterable[tuple[Watched, list[str]]]:
    """Each watch with the names its kind goes by: with its group, and without where no other group has it."""
    kinds = [watch.resource.kind for watch in watches]
    for watch in watches:
        kind = watch.resource.kind
        yield watch, [full_name(watch.resource), kind][: 2 if kinds.count(kind) == 1 else 1]


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
