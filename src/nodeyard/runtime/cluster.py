"""One further cluster, for as long as a capability names it: its line, its watches, its view, its place for actions.

    contact ──made, lost──▶ Cluster ──hold, release──▶ watches ──▶ view
                               │
                               └── the capability's keys for it are due

Everything here is its own: connections, caches, tasks. What goes wrong in it stays in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from nodeyard.apply.ways import Target
from nodeyard.client.api import Client, Observer
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import bind, get_logger
from nodeyard.runtime.capability import Capability, Elsewhere, Key, View, Watch
from nodeyard.runtime.contact import Contact
from nodeyard.runtime.line import Line
from nodeyard.runtime.reaching import Connect, reach
from nodeyard.runtime.roots import ref_of
from nodeyard.runtime.served import Served
from nodeyard.watch.view import CacheView
from nodeyard.watch.watches import Watches

CONNECTING: Final = 32
"""How many clusters are being connected at once, in the whole process: enough for the dead not to delay the living."""
REQUEST_SECONDS: Final = 10.0
RESTART_SECONDS: Final = 5.0

_log = get_logger("clusters")


@dataclass(frozen=True)
class Surroundings:
    """What the clusters of all capabilities of a process share."""

    clock: Clock
    random: Random
    connect: Connect = reach
    observe: Observer | None = None
    connecting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONNECTING))
    show: Callable[[str, str, bool | None], None] = lambda _capability, _cluster, _is_connected: None
    """Told how the contact of a capability with a cluster is; None when it is not named any more."""


@dataclass(frozen=True)
class Following:
    """What is done when something happens in a further cluster."""

    noting: Callable[[Watch, str], Watch] = lambda watch, _cluster: watch
    """The watch as it is to be run there."""
    mark: Callable[[Key], None] = lambda _key: None
    """Told each key that a change concerns, right after the watch that `noting` made has named it."""
    due: Callable[[Key], None] = lambda _key: None
    """Told a key that is due for any other reason."""


class Cluster:
    """One further cluster, for as long as it is named."""

    def __init__(
        self, given: Elsewhere, capability: Capability, around: Surroundings, following: Following, home: View
    ) -> None:
        self.name = given.name
        self._capability = capability
        self._around = around
        self._following = following
        self._home = home
        self._line = Line(given.name, self._doubt)
        client = self._client = Client(self._line, timeout=REQUEST_SECONDS, observe=around.observe)
        self._watches = Watches(client, around.clock, around.random, identifies=False)
        self._watches.hold()
        self._served = Served(client, around.clock)
        self._served.watch(watch.resource for watch in capability.cluster_watches if not watch.metadata_only)
        self.view = _registered(self._watches, capability, given.name, following, self._tell)
        self.target = self._new_target()
        self._contact = Contact(
            given,
            around.connect,
            self._line,
            self,
            clock=around.clock,
            random=around.random,
            connecting=around.connecting,
        )

    def give(self, given: Elsewhere) -> None:
        self._contact.give(given)

    def look_again(self) -> None:
        """Our own view has changed; what is needed here may depend on it."""
        self._watches.look_again()

    @property
    def is_settled(self) -> bool:
        """Whether it is known how things stand: everything told, or no contact and why."""
        return bool(self.view.error) or (self.view.is_connected and self._watches.is_synced)

    def inquire(self) -> None:
        """Find out beforehand what a plan may ask about the server itself."""
        self._watches.facts.ask_versions()

    async def run(self) -> None:
        """Until cancelled; then it is disconnected."""
        bind(capability=self._capability.name, cluster=self.name)
        while True:
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._watches.run(), name=f"watches {self.name}")
                    tasks.create_task(self._served.run(at_once=False), name=f"served {self.name}")
                    tasks.create_task(self._contact.run(), name=f"contact {self.name}")
            except Exception:
                # A fault of ours; it shall not cost more than this cluster, nor that one for good.
                _log.exception("beginning anew")
            self.lost("connecting anew after an error of ours")
            await self._around.clock.sleep(RESTART_SECONDS)

    # following the contact

    async def forget(self) -> None:
        self.view.version = ""
        await self._watches.forget()
        # Last, and while the line is cut: until here plans were made of what was known of the one before.
        self.target = self._new_target()

    def learned(self, version: str) -> None:
        is_late = self.view.is_connected and self.view.version != version
        self.view.version = version
        if is_late:
            self._tell()

    async def made(self, uid: str) -> None:
        # Watches that still run use what was behind the line before.
        await self._watches.rest()
        self._watches.facts.learn_uid(uid)
        self._watches.release()
        self._served.look_again()
        self.view.connected_at = self._around.clock.now()
        self._turn(is_connected=True, error="")

    def lost(self, why: str) -> None:
        self._watches.hold()
        self._turn(is_connected=False, error=why)

    def _turn(self, *, is_connected: bool, error: str) -> None:
        is_news = (self.view.is_connected, self.view.error) != (is_connected, error)
        self.view.is_connected, self.view.error = is_connected, error
        self._around.show(self._capability.name, self.name, is_connected)
        if is_news:
            self._tell()

    def _doubt(self) -> None:
        self._contact.doubt()

    def _tell(self) -> None:
        """The capability's keys for this cluster are due."""
        try:
            keys = tuple(self._capability.cluster_keys(self._home, self.name))
        except Exception:
            _log.exception("keys are not known", capability=self._capability.name, cluster=self.name)
            return
        for key in keys:
            self._following.due(key)

    # own writes

    def _new_target(self) -> Target:
        now = self._around.clock.monotonic()
        return Target(self._client, self._served.find, self._wrote, self._deleted, since=now)

    def _wrote(self, resource: Resource[Any], answer: Json) -> None:
        self._watches.wrote(ref_of(answer, resource.api_version, resource.kind), answer)

    def _deleted(self, _resource: Resource[Any], ref: ObjectRef) -> None:
        self._watches.deleted(ref)


def blank(capability: Capability, around: Surroundings) -> CacheView:
    """The view of a cluster that is not named, or not yet: nothing is known of it."""
    client = Client(Line("", lambda: None))
    return _registered(Watches(client, around.clock, around.random), capability, "", Following())


def _registered(
    watches: Watches,
    capability: Capability,
    name: str,
    following: Following,
    tell: Callable[[], None] = lambda: None,
) -> CacheView:
    view = watches.register(
        [following.noting(_placed(watch, name), name) for watch in capability.cluster_watches],
        capability.cluster_aggregates,
        mark=following.mark,
        on_synced=lambda _kind: tell(),
        on_news=tell,
        on_trouble=tell,
    )
    view.name, view.is_connected = name, False
    return view


def _placed(watch: Watch, cluster: str) -> Watch:
    keys_of = watch.keys_of
    if keys_of is None:
        return watch
    return replace(watch, keys=lambda old, new: keys_of(cluster, old, new))
