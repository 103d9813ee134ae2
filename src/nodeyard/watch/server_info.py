"""Facts about the API server itself: the versions it serves of each kind, and which cluster it is.

    CacheView ──asks──▶ ServerInfoQueries ──▶ ServerInfo ◀──learns── ServerInfoPoller ──▶ discovery, kube-system

Discovery runs only on demand: the first question of a view starts it, and a view is notified when an answer that it was
given changes. The poller repeats discovery; it reads the cluster's identity once, and again after watches broke. If the
server does not respond, the poller retries soon and the last known facts stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.errors import ClientError
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import NAMESPACES
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

DISCOVERY_SECONDS: Final = 30.0
DISCOVERY_RETRY_SECONDS: Final = 2.0
# Delays of repeated discovery after `hurry`: a server publishes a new kind a moment after it is defined.
FOLLOW_UP_SECONDS: Final = (0.5, 1.0, 2.0, 4.0)
# Every cluster has this Namespace; its uid identifies the cluster.
SYSTEM_NAMESPACE: Final = "kube-system"
# MsgspecError and LookupError: a proxy in front of the server returned another document.
_ERRORS = (ClientError, msgspec.MsgspecError, LookupError)

_log = get_logger("watches")


class ServerInfo:
    """The known facts of one server. `on_asked` is called when a fact is first asked for."""

    def __init__(self, on_asked: Callable[[], None] = lambda: None) -> None:
        self.uid = ""
        """The uid of Namespace kube-system, which identifies the cluster; empty while unknown."""
        self.is_uid_asked = False
        self.are_versions_asked = False
        self._on_asked = on_asked
        self._versions: dict[tuple[str, str], tuple[str, ...]] | None = None
        self._all_queries: list[ServerInfoQueries] = []

    def register(self, on_news: Callable[[], None]) -> ServerInfoQueries:
        queries = ServerInfoQueries(self, on_news)
        self._all_queries.append(queries)
        return queries

    @property
    def is_waited_for(self) -> bool:
        """True if a view asked for versions and discovery has not succeeded yet."""
        return self.are_versions_asked and self._versions is None

    def versions(self, group: str, kind: str) -> tuple[str, ...] | None:
        """Return the served versions of a kind; None while unknown."""
        return None if self._versions is None else self._versions.get((group, kind), ())

    # asked by views

    def ask_uid(self) -> None:
        if not self.is_uid_asked:
            self.is_uid_asked = True
            self._on_asked()

    def ask_versions(self) -> None:
        if not self.are_versions_asked:
            self.are_versions_asked = True
            self._on_asked()

    # called by the poller

    def learn_versions(self, catalog: Catalog) -> None:
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for one in catalog.known:
            subject = (one.resource.group, one.resource.kind)
            known = found.get(subject, ())
            if one.resource.version not in known:
                found[subject] = (*known, one.resource.version)
        self._versions = found
        self._notify()

    def learn_uid(self, uid: str) -> None:
        self.uid = uid
        self._notify()

    def forget(self) -> None:
        """Forget all facts, because the server is another one now."""
        self.uid, self._versions = "", None

    def _notify(self) -> None:
        for queries in self._all_queries:
            queries.compare()


class ServerInfoQueries:
    """The questions of one view and the answers it was given."""

    def __init__(self, info: ServerInfo, on_news: Callable[[], None]) -> None:
        self._info = info
        self._on_news = on_news
        self._uid: str | None = None
        self._versions: dict[tuple[str, str], tuple[str, ...] | None] = {}

    @property
    def uid(self) -> str:
        self._info.ask_uid()
        self._uid = self._info.uid
        return self._uid

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        self._info.ask_versions()
        answer = self._versions[group, kind] = self._info.versions(group, kind)
        return answer or ()

    @property
    def is_answered(self) -> bool:
        """True if discovery has answered every question about versions; before that, no versions means unknown."""
        return None not in self._versions.values()

    def compare(self) -> None:
        """Call `on_news` if an answer has changed."""
        answers = {subject: self._info.versions(*subject) for subject in self._versions}
        uid = None if self._uid is None else self._info.uid
        if (answers, uid) != (self._versions, self._uid):
            self._versions, self._uid = answers, uid
            self._on_news()


class ServerInfoPoller:
    def __init__(self, client: Client, clock: Clock, info: ServerInfo) -> None:
        self._client = client
        self._clock = clock
        self._info = info
        self._discover_at = 0.0
        self._follow_ups: tuple[float, ...] = ()
        self._identify_at = 0.0
        self._identified_after = -1
        """The number of watch failures when the cluster was last identified."""
        self._error = ""

    def hurry(self) -> None:
        """Run discovery at the next opportunity and a few times soon after: a kind may have been added or removed."""
        self._discover_at, self._follow_ups = 0.0, FOLLOW_UP_SECONDS

    def left(self, *, discovers: bool) -> float:
        """Return the seconds until the next request is due."""
        now = self._clock.monotonic()
        left = self._discover_at - now if discovers or self._info.are_versions_asked else DISCOVERY_SECONDS
        return max(0.0, min(left, self._identify_at - now) if self._error else left)

    async def discover(self, *, is_wanted: bool) -> Catalog | None:
        """Run discovery if it is wanted and due; return None otherwise, or if it failed."""
        is_wanted = is_wanted or self._info.are_versions_asked
        if not is_wanted or self._clock.monotonic() < self._discover_at:
            return None
        try:
            catalog = await self._client.catalog()
        except _ERRORS as error:
            self._discover_at = self._clock.monotonic() + DISCOVERY_RETRY_SECONDS
            OUTAGES.tell(_log, "discovery failed", "", error)
            return None
        wait, self._follow_ups = (*self._follow_ups, DISCOVERY_SECONDS)[0], self._follow_ups[1:]
        self._discover_at = self._clock.monotonic() + wait
        self._info.learn_versions(catalog)
        return catalog

    async def identify(self, breaks: int) -> None:
        """Read the cluster's uid if a view asked for it and watches have failed since; `breaks` counts failures."""
        is_known = self._identified_after == breaks and not self._error
        if not self._info.is_uid_asked or is_known or self._clock.monotonic() < self._identify_at:
            return
        self._identify_at = self._clock.monotonic() + DISCOVERY_RETRY_SECONDS
        try:
            uid = (await self._client.get(NAMESPACES, SYSTEM_NAMESPACE))["metadata"]["uid"]
        except _ERRORS as error:
            OUTAGES.tell(_log, "cluster identity unknown", "", error)
            self._error = str(error) or type(error).__name__
            return
        self._identified_after, self._error = breaks, ""
        self._info.learn_uid(uid)
