"""Decisions from a bundle: the operator's planners on the bundle's objects, at the bundle's time, without a cluster.

    async with replaying(bundle) as replay:
        async with replay.planner(CAPABILITIES) as planner: planner.plans(...)

Where a hash hides a value that a plan rests on, the replay would invent a decision. `nodeyard gather` finds these keys:
it compares the plan from what it read with the plan from what it wrote. They are in `replay.hidden`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from nodeyard.app.dry_planner import DryPlanner, dry_planning_readable
from nodeyard.app.operators import Operators
from nodeyard.bundle.model import Bundle, BundleError, ClusterState, remote_name
from nodeyard.bundle.replay import BundleTransport
from nodeyard.client.api import Client
from nodeyard.client.transport import Transport
from nodeyard.plan.layout import counted
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.capability import Capability, Key, RemoteClusterRef, SecretKey
from nodeyard.runtime.remote.connect import Connect

T = TypeVar("T")

OPERATORS: Final = "operators"
PLANS: Final = "plans"
WHY: Final = "why"
HIDDEN: Final = "hidden"


class HiddenPlan(msgspec.Struct, frozen=True):
    """A key whose plan cannot be replayed: it rests on a value that the bundle has only as a hash."""

    capability: str
    key: Key
    actions: int = 0
    """The actions of the plan when the bundle was gathered."""

    def __str__(self) -> str:
        return (
            f"{self.capability}: {self.key}: left out: its plan rests on values that the bundle has only as hashes; it "
            f"had {counted(self.actions, 'action')} when the bundle was gathered"
        )


class PinnedClock(SystemClock):
    """A clock whose date stands still, while timeouts run."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at


class Replay:
    def __init__(self, bundle: Bundle) -> None:
        self.client = Client(BundleTransport(bundle.cluster, bundle.manifest.omitted))
        self.operators = _convert(bundle, OPERATORS, Operators, Operators())
        hidden: tuple[HiddenPlan, ...] = _convert(bundle, HIDDEN, tuple[HiddenPlan, ...], ())
        self.hidden: Mapping[tuple[str, Key], HiddenPlan] = {(each.capability, each.key): each for each in hidden}
        self.created_at = bundle.manifest.created_at
        self._clusters = bundle.clusters
        self._omitted = bundle.manifest.omitted

    def planner(self, capabilities: Sequence[Capability]) -> AbstractAsyncContextManager[DryPlanner]:
        """Open a planner on the bundle."""
        clock = PinnedClock(self.created_at)
        return dry_planning_readable(self.client, capabilities, clock, self._connect_of, _read)

    def _connect_of(self, capability: Capability) -> Connect:
        def connect(ref: RemoteClusterRef) -> Transport:
            name = remote_name(capability.name, ref.name)
            state = self._clusters.get(name) or ClusterState(name, error="the bundle has nothing of this cluster")
            return BundleTransport(state, self._omitted)

        return connect


@asynccontextmanager
async def replaying(bundle: Bundle) -> AsyncIterator[Replay]:
    replay = Replay(bundle)
    try:
        yield replay
    finally:
        await replay.client.close()


async def _read(_secret: SecretKey) -> bytes:
    """Return no kubeconfig: the connection leads into the bundle."""
    await asyncio.sleep(0)
    return b""


def _convert(bundle: Bundle, name: str, type: Any, default: T) -> T:
    try:
        found: T = msgspec.convert(bundle.documents[name], type)
        return found
    except KeyError:
        return default
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BundleError(f"documents/{name}.json: {error}") from None
