"""Facts about the API server itself: the versions it serves of each kind, and which cluster it is.

    CacheView ──asks──▶ ServerInfoQueries ──▶ ServerInfo ──▶ RESTMapper, Namespace kube-system

A view is notified when an answer that it was given changes. The cluster's identity is read when a view first asks for
it, and again after watches broke. If the server does not respond, the last known facts stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import NAMESPACES
from nodeyard.client.rest_mapper import RESTMapper
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

IDENTIFY_RETRY_SECONDS: Final = 2.0
# Every cluster has this Namespace; its uid identifies the cluster.
SYSTEM_NAMESPACE: Final = "kube-system"

_log = get_logger("watches")


class ServerInfo:
    """The known facts of one server. `on_asked` is called when a fact is first asked for."""

    def __init__(
        self, client: Client, clock: Clock, mapper: RESTMapper, on_asked: Callable[[], None] = lambda: None
    ) -> None:
        self._client = client
        self._clock = clock
        self._mapper = mapper
        self._on_asked = on_asked
        self.uid = ""
        """The uid of Namespace kube-system, which identifies the cluster; empty while unknown."""
        self.is_uid_asked = False
        self.are_versions_asked = False
        self._all_queries: list[ServerInfoQueries] = []
        self._identify_at = 0.0
        self._identified_after = -1
        """The number of watch failures when the cluster was last identified."""
        self._is_failing = False

    def register(self, on_unmapped: Callable[[], None]) -> ServerInfoQueries:
        queries = ServerInfoQueries(self, on_unmapped)
        self._all_queries.append(queries)
        return queries

    @property
    def is_waited_for(self) -> bool:
        """True if a view asked for versions and discovery has not succeeded yet."""
        return self.are_versions_asked and self._mapper.catalog is None

    def versions(self, group: str, kind: str) -> tuple[str, ...] | None:
        """Return the served versions of a kind; None while unknown."""
        catalog = self._mapper.catalog
        return None if catalog is None else catalog.versions(group, kind)

    def ask_uid(self) -> None:
        if not self.is_uid_asked:
            self.is_uid_asked = True
            self._on_asked()

    def ask_versions(self, *, is_new: bool = False) -> None:
        """Have discovery repeated. `is_new`: the interval may depend on the answer about this kind."""
        if not self.are_versions_asked:
            self.are_versions_asked = True
            self._mapper.follow()
        elif is_new:
            self._on_asked()

    def expects_changes(self, *, is_signalled: bool) -> bool:
        """Return True if discovery may change an answer: a kind is missing, or no watch signals changes of kinds."""
        answers = [answer for queries in self._all_queries for answer in queries.answers]
        return not all(answers) or (bool(answers) and not is_signalled)

    # called by the informer factory

    @property
    def due_in(self) -> float:
        """The seconds until `identify` should be called again."""
        return max(0.0, self._identify_at - self._clock.monotonic()) if self._is_failing else float("inf")

    async def identify(self, restarts: int) -> None:
        """Read the cluster's uid if a view asked for it and watches have failed since; `restarts` counts failures."""
        is_known = self._identified_after == restarts and not self._is_failing
        if not self.is_uid_asked or is_known or self._clock.monotonic() < self._identify_at:
            return
        self._identify_at = self._clock.monotonic() + IDENTIFY_RETRY_SECONDS
        try:
            uid = (await self._client.get(NAMESPACES, SYSTEM_NAMESPACE))["metadata"]["uid"]
        except (ClientError, msgspec.MsgspecError, LookupError) as error:
            # MsgspecError, LookupError: a proxy in front of the server returned another document.
            OUTAGES.log(_log, "cluster identity unknown", "", error)
            self._is_failing = True
            return
        self._identified_after, self._is_failing = restarts, False
        self.set_uid(uid)

    def set_uid(self, uid: str) -> None:
        self.uid = uid
        self.notify()

    def forget(self) -> None:
        """Forget the identity, because the server is another one now."""
        self.uid = ""

    def notify(self) -> None:
        """Notify the views whose answers have changed."""
        for queries in self._all_queries:
            queries.compare()


class ServerInfoQueries:
    """The questions of one view and the answers it was given."""

    def __init__(self, info: ServerInfo, on_unmapped: Callable[[], None]) -> None:
        self._info = info
        self._on_unmapped = on_unmapped
        self._uid: str | None = None
        self._versions: dict[tuple[str, str], tuple[str, ...] | None] = {}

    @property
    def uid(self) -> str:
        self._info.ask_uid()
        self._uid = self._info.uid
        return self._uid

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        self._info.ask_versions(is_new=(group, kind) not in self._versions)
        answer = self._versions[group, kind] = self._info.versions(group, kind)
        return answer or ()

    @property
    def answers(self) -> Iterable[tuple[str, ...] | None]:
        """The versions of each kind that was asked for; empty if it is not served, None while that is unknown."""
        return self._versions.values()

    @property
    def is_answered(self) -> bool:
        """True if discovery has answered every question about versions; before that, no versions means unknown."""
        return None not in self._versions.values()

    def compare(self) -> None:
        """Call `on_unmapped` if an answer has changed."""
        answers = {subject: self._info.versions(*subject) for subject in self._versions}
        uid = None if self._uid is None else self._info.uid
        if (answers, uid) != (self._versions, self._uid):
            self._versions, self._uid = answers, uid
            self._on_unmapped()
