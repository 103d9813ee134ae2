"""The operations of the dashboard's API. Those that read or write the cluster use the viewer's own credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from nodeyard.app.approvals import NotHeld, approve_plans
from nodeyard.app.dashboard.whatif import run_apart, try_out
from nodeyard.app.explanations import BadName, compose_answers, find_subject, why_to_wire
from nodeyard.app.operators import Operators
from nodeyard.client.api import Client
from nodeyard.client.discovery import UnknownResource
from nodeyard.client.errors import ClientError, Forbidden
from nodeyard.dashboard.access import Viewer
from nodeyard.dashboard.approval_preview import preview
from nodeyard.dashboard.could_run import could_run_manifest, could_run_pod, parse_pod
from nodeyard.dashboard.live import Live
from nodeyard.dashboard.plan_summary import to_wire
from nodeyard.dashboard.recorder import SECONDS
from nodeyard.dashboard.search import list_objects, search
from nodeyard.dashboard.server import Query, Route
from nodeyard.dashboard.wire import ApprovalPreview, CouldRun, Found, Refused, WhatIf, Why
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Plan
from nodeyard.process.clock import Clock
from nodeyard.runtime.dry_plan import DryPlan

MANIFEST_BYTES: Final = 1 << 20
ACTIONS: Final = 200
REASON_MAX: Final = 500
_UNEXPLAINED: Final = frozenset({"secret", "secrets"})


class _Approve(msgspec.Struct, frozen=True):
    capability: str
    key: str
    id: str
    reason: str = ""


class _Pod(msgspec.Struct, frozen=True):
    namespace: str = "default"
    name: str = ""
    yaml: str = ""


class Operations:
    def __init__(self, live: Live, client: Client, clock: Clock) -> None:
        """`client` reads for viewers who have no credentials of their own."""
        self._live = live
        self._client = client
        self._clock = clock
        self._trying = asyncio.Lock()
        self.operators = Operators()
        """The operators of the cluster as last seen."""

    def routes(self) -> Iterator[Route]:
        yield Route("GET", "history", self.history)
        yield Route("GET", "recorder", self.recorder)
        yield Route("GET", "recorder/writes", self.recorded_writes)
        yield Route("GET", "plans/actions", self.actions)
        yield Route("GET", "approval", self.approval)
        yield Route("POST", "approve", self.approve)
        yield Route("POST", "whatif", self.what_if, body=MANIFEST_BYTES, is_yaml=True)
        yield Route("GET", "search", self.search)
        yield Route("GET", "why", self.why)
        yield Route("POST", "could-run", self.could_run, body=MANIFEST_BYTES)

    async def history(self, _viewer: Viewer, _query: Query) -> dict[str, Any]:
        return self._live.history.read(self._live.feed.now)

    async def recorder(self, viewer: Viewer, query: Query) -> dict[str, Any]:
        now = self._live.feed.now
        start, end = query.time("from", now - SECONDS), query.time("to", now)
        return self._live.recorder.read(start, end, viewer.visible)

    async def recorded_writes(self, viewer: Viewer, query: Query) -> dict[str, Any]:
        capability, now = query.get("capability"), self._live.feed.now
        self._require_visible(viewer, capability)
        start, end = query.time("from", now - SECONDS), query.time("to", now)
        return self._live.recorder.writes(capability, start, end, query.number("offset", 0, 10**9))

    # plans

    async def actions(self, viewer: Viewer, query: Query) -> dict[str, Any]:
        capability, key = query.get("capability"), query.get("key")
        self._require_visible(viewer, capability)
        offset, limit = query.number("offset", 0, 10**9), query.number("limit", ACTIONS, ACTIONS)
        found = await asyncio.to_thread(self._live.planner.actions, capability, key, query.get("group"))
        return {"total": len(found), "actions": [to_wire(each) for each in found[offset : offset + limit]]}

    async def approval(self, viewer: Viewer, query: Query) -> ApprovalPreview:
        _, held = self._held(viewer, query.get("capability"), query.get("key"))
        return await preview(viewer.client, held)

    async def approve(self, viewer: Viewer, query: Query) -> dict[str, Any]:
        asked: _Approve = query.json(_Approve)
        dry_plan, held = self._held(viewer, asked.capability, asked.key)
        if held.id != asked.id:
            message = f"The plan has changed: it is {held.id} now, not {asked.id}."
            raise Refused(409, message, "Read the new plan and approve that one.", id=held.id)
        if viewer.client is None:
            remedy = "Sign in with a bearer token, or run `nodeyard dashboard` with your kubeconfig."
            raise Refused(403, "A client certificate only reads; it cannot approve.", remedy)
        try:
            # Other keys may hold parts of the same approval group.
            holding = self._live.planner.holding(held.id) or [(dry_plan, held)]
            approved = await approve_plans(viewer.client, holding, held.id, asked.reason[:REASON_MAX], self._clock)
        except Forbidden as error:
            remedy = f"Ask for the right to patch it, or let somebody who has it run `nodeyard approve {held.id}`."
            raise Refused(403, error.message, remedy) from None
        except NotHeld as error:
            raise Refused(409, str(error), "Reload the page.", id=held.id) from None
        self._live.planner.mark(asked.capability, asked.key)
        message = f"{held.id} approved on {approved.root}: {counted(len(held.actions), 'action')}"
        return {"approved": True, "by": approved.by or viewer.name, "message": message}

    async def what_if(self, viewer: Viewer, query: Query) -> WhatIf:
        if viewer.config is None:
            raise Refused(403, "A client certificate only reads; it cannot try out a change.", "Sign in with a token.")
        if self._trying.locked():
            raise Refused(429, "Another change is being tried out.", "Try again in a moment.")
        seen = [
            each for name, (each, _) in self._live.views.items() if viewer.visible is None or name in viewer.visible
        ]
        async with self._trying:
            return await try_out(viewer.config, seen, self._live.planner.limits, query.body)

    def _require_visible(self, viewer: Viewer, capability: str) -> None:
        if capability not in self._live.views or (viewer.visible is not None and capability not in viewer.visible):
            raise Refused(404, f'There is no capability "{capability[:50]}" that you may see.')

    def _held(self, viewer: Viewer, capability: str, key: str) -> tuple[DryPlan, Plan]:
        self._require_visible(viewer, capability)
        dry_plan = self._live.planner.dry_plan(capability, key)
        if dry_plan is None or dry_plan.braked.held is None:
            message = "This plan is not held any more: it was approved or has changed."
            raise Refused(409, message, "Look at the present plan.", id="")
        return dry_plan, dry_plan.braked.held

    # objects

    async def search(self, viewer: Viewer, query: Query) -> list[Found]:
        text = query.get("q")
        # The caches are read here; the names, which may be a hundred thousand, are compared in a thread.
        listed = list_objects(self._live.nodes, self._live.views, viewer.visible)
        found = await asyncio.to_thread(search, text, listed)
        parts = text.strip().split("/")
        if found or len(parts) < 2 or not all(parts) or parts[0].lower() in _UNEXPLAINED:
            return found
        # Not in a cache: perhaps an object that is not watched.
        kind, namespace, name = parts[0], parts[1] if len(parts) == 3 else "", parts[-1]
        try:
            capabilities = [each for each, _ in self._live.views.values()]
            ref, obj = await find_subject(viewer.client or self._client, capabilities, kind, name, namespace)
        except (ClientError, BadName, ValueError):
            return []
        if not obj:
            return []
        return [Found(kind=ref.kind, api_version=ref.api_version, namespace=ref.namespace, name=ref.name)]

    async def why(self, viewer: Viewer, query: Query) -> Why:
        kind, namespace, name = query.get("kind"), query.get("namespace"), query.get("name")
        if not kind or not name:
            raise Refused(400, "kind and name are missing.", "Search for an object first.")
        group = query.get("apiVersion").rpartition("/")[0]
        if kind.partition(".")[0].lower() in _UNEXPLAINED:
            raise Refused(404, "The page shows nothing of Secrets.")
        live, client = self._live, viewer.client or self._client
        try:
            word = f"{kind}.{group}" if group and "." not in kind else kind
            capabilities = [each for each, _ in live.views.values()]
            ref, obj = await find_subject(client, capabilities, word, name, namespace)
        except (UnknownResource, BadName, ValueError) as error:
            raise Refused(404, f"{str(error).capitalize()}.", "Search for the object.") from None
        await live.watch_kinds_of(ref, viewer.visible)
        explained = await live.planner.explain(ref, viewer.visible)
        views = {name: view for name, (_, view) in live.views.items()}
        answers = compose_answers(explained, self.operators, ref, obj)
        return why_to_wire(answers, explained, views, ref, obj)

    async def could_run(self, viewer: Viewer, query: Query) -> CouldRun:
        asked: _Pod = query.json(_Pod)
        if viewer.config is None:
            raise Refused(403, "A client certificate only reads; it cannot try out a pod.", "Sign in with a token.")
        if not asked.yaml and not asked.name:
            raise Refused(400, "Neither a pod's name nor a manifest is given.")
        nodes = self._live.nodes.all("Node.core")
        pod = parse_pod(asked.yaml, asked.namespace) if asked.yaml else None

        async def check(client: Client) -> CouldRun:
            if pod is not None:
                return await could_run_manifest(client, nodes, pod)
            return await could_run_pod(client, nodes, asked.namespace, asked.name)

        return await run_apart(viewer.config, check)
