"""Reads root objects before a write while caches may be stale.

    watch broken or silent ──▶ GET each root that the plan acts for ──▶ same version: write
                                                                   └──▶ changed: overlay the cache, plan again

A plan from a stale cache may follow a spec that a user has already reverted. The object that was read overlays the
cache like an own write, so the next plan uses it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nodeyard.apply.writers import answer_seconds, single_attempt
from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.plan.model import ObjectRef
from nodeyard.watch.informers import InformerFactory
from nodeyard.watch.view import CacheView


class Freshness:
    def __init__(self, client: Client, informers: InformerFactory, view: CacheView, required: Sequence[str]) -> None:
        """`required` are the kinds, as the view names them, that every plan depends on."""
        # A flow of its own: a plan may have many roots, and other reads must not wait for all of them.
        self._client = client.managed_by(client.field_manager, "nodeyard/freshness")
        self._informers = informers
        self._view = view
        self._required = required

    def staleness(self, seconds: float = 0.0) -> str:
        """Return why caches have been stale for this many seconds; empty if they are not."""
        return next((why for kind in self._required if (why := self._view.staleness(kind, seconds))), "")

    async def refresh(self, refs: Sequence[ObjectRef]) -> None:
        """Read these objects and overlay the cache with them. Raises ClientError if one cannot be read."""
        await asyncio.gather(*map(self._read, refs))

    async def _read(self, ref: ObjectRef) -> None:
        resource = self._informers.mapper.find(ref.api_version, ref.kind)
        if resource is None:
            return
        reader = single_attempt(self._client, self._client.field_manager, answer_seconds())
        try:
            found = await reader.get(resource.decoded_as(dict), ref.name, ref.namespace)
        except NotFound:
            self._informers.record_deletion(ref)
            return
        self._informers.record_write(ref, found)
