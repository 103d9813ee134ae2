"""The view "What if": the plans as if a manifest were applied, beside the present ones.

It runs on a thread and an event loop of its own, with informers of its own and the viewer's credentials, so that
neither the page nor admission waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from nodeyard.app import files
from nodeyard.app.dry_planner import DryPlanner, NotSynced, ReadForbidden, dry_planning_readable
from nodeyard.client.api import Client
from nodeyard.client.config import Config
from nodeyard.client.http_transport import HttpTransport
from nodeyard.dashboard.plan_summary import fold, identity, summarize
from nodeyard.dashboard.wire import Group, PlanSummary, Refused, WhatIf
from nodeyard.kube.json import Object
from nodeyard.plan.brake import Limit
from nodeyard.plan.model import Action
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.dry_plan import DryPlan

T = TypeVar("T")

_SOURCE = "manifest"


async def try_out(
    config: Config, capabilities: Sequence[Capability], limits: Mapping[str, Limit], text: bytes
) -> WhatIf:
    """Return the plans with the manifest. Raises Refused if it is invalid or the cluster does not admit it."""
    try:
        objects = files.parse(text, _SOURCE)
        if not objects:
            raise Refused(400, "The manifest contains no object.", "Drop the YAML that you would apply.")
        warnings: list[str] = []

        async def plan(client: Client) -> WhatIf:
            return await _try_out(client, capabilities, limits, objects, config.namespace, warnings)

        return await run_apart(config, plan, warnings.append)
    except files.FileError as error:
        raise Refused(422, str(error), "Correct the manifest and drop it again.") from None
    except ReadForbidden as error:
        raise Refused(403, str(error), "Ask for the ClusterRole nodeyard-reader.") from None
    except NotSynced as error:
        raise Refused(504, str(error), "Try again in a moment.") from None


async def run_apart(
    config: Config, work: Callable[[Client], Awaitable[T]], on_warning: Callable[[str], None] | None = None
) -> T:
    """Run with a client of its own on a thread and an event loop of its own."""

    async def run() -> T:
        client = Client(HttpTransport(config), on_warning=on_warning)
        try:
            return await work(client)
        finally:
            await client.close()

    return await asyncio.to_thread(lambda: asyncio.run(run()))


async def _try_out(
    client: Client,
    capabilities: Sequence[Capability],
    limits: Mapping[str, Limit],
    objects: list[tuple[str, Object]],
    namespace: str,
    warnings: list[str],
) -> WhatIf:
    answers = await files.send(client, objects, dry_run=True, namespace=namespace)
    async with dry_planning_readable(client, capabilities) as planner:
        before = _plans(planner, limits)
        await planner.overlay(answers)
        after = _plans(planner, limits)
        warnings += (f"{name} is not planned: {reason}" for name, reason in planner.skipped.items())
        warnings += map(str, planner.unreachable)
    plans = tuple(
        summarize(dry_plan.braked, new=_identities(dry_plan) - _identities(before.get(subject)))
        for subject, dry_plan in after.items()
        if dry_plan.has_changes
    )
    gone = tuple(_gone(dry_plan, after.get(subject)) for subject, dry_plan in before.items())
    gone = tuple(each for each in gone if each.groups)
    return WhatIf(
        plans=plans, gone=gone, markdown=render_markdown(plans, gone), warnings=tuple(dict.fromkeys(warnings))
    )


def _plans(planner: DryPlanner, limits: Mapping[str, Limit]) -> dict[tuple[str, str], DryPlan]:
    return {(each.capability.name, each.key): each for each in planner.plans(Limit(), limits)}


def _actions(dry_plan: DryPlan | None) -> Iterator[Action]:
    if dry_plan is not None:
        yield from dry_plan.braked.now.actions
        yield from () if dry_plan.braked.held is None else dry_plan.braked.held.actions


def _identities(dry_plan: DryPlan | None) -> set[Any]:
    return set(map(identity, _actions(dry_plan)))


def _gone(before: DryPlan, after: DryPlan | None) -> PlanSummary:
    """Return the actions of a present plan that would not be there."""
    kept = _identities(after)
    groups = fold(action for action in _actions(before) if identity(action) not in kept)
    return PlanSummary(capability=before.capability.name, key=before.key, groups=groups)


def render_markdown(plans: Sequence[PlanSummary], gone: Sequence[PlanSummary]) -> str:
    """Return the plans as Markdown for a pull request; what the change causes is bold."""
    lines = ["### Nodeyard plan", ""]
    if not plans and not gone:
        return "\n".join([*lines, "Nothing would be done."]) + "\n"
    for plan in plans:
        lines += [f"**{_escape(plan.capability)} {_escape(plan.key)}**", ""]
        if plan.held is not None:
            lines += [f"> {_escape(plan.held.message)}", ""]
        lines += _table([*(() if plan.held is None else plan.held.groups), *plan.groups])
    for plan in gone:
        lines += [f"**{_escape(plan.capability)} {_escape(plan.key)}: no longer done**", "", *_table(plan.groups)]
    return "\n".join(lines).rstrip() + "\n"


def _table(groups: Sequence[Group]) -> list[str]:
    rows = ["| action | count | reason | disruption |", "|---|--:|---|---|"]
    for group in groups:
        what = f"{group.verb} {group.kind}"
        title = f"**{what}**" if group.is_new else what
        reason = f"{group.reason}: {group.message}"
        rows.append(f"| {title} | {group.count} | {_escape(reason)} | {group.disruption} |")
    return [*rows, ""]


def _escape(text: str) -> str:
    """Escape what Markdown or HTML would interpret; names and messages may come from anyone."""
    for character in "\\`*_[]<>|#":
        text = text.replace(character, f"\\{character}" if character not in "<>" else f"&{'lg'[character == '>']}t;")
    return " ".join(text.split())
