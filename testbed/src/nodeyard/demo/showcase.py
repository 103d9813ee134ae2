"""The operator in the demo: runs every capability on the fleet, applies its example, and shows what became of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from rich.table import Column, Table

from nodeyard.admission.manager import Webhooks
from nodeyard.app import files
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.dry_planner import dry_planning
from nodeyard.app.operator import Operation, identity, operating
from nodeyard.cli.failures import Failure
from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import Resource
from nodeyard.demo.leaf_clusters import Neighbours
from nodeyard.kube.json import Object
from nodeyard.plan.brake import Limit
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.health import Address
from nodeyard.runtime.settings import Settings
from nodeyard.schema.crd import CATEGORY
from nodeyard.sim.scenarios import SCENARIOS

PATIENCE_SECONDS = 60.0
QUIET_SECONDS = 1.0
"""How long nothing may change: what follows from the last change is a moment behind it."""
LOOPBACK = "127.0.0.1"
_LOOK_SECONDS = 0.2
_NODE = "Node"
"""Examples bring nodes for clusters that have none to spare; the demo's world has its own."""
_PLACES = (Path(__file__).parents[1] / "examples", Path(__file__).parents[4] / "examples")
"""In an installed package, and in the repository."""


@asynccontextmanager
async def at_work(kubeconfig: Path, client: Client, beside: Neighbours) -> AsyncIterator[None]:
    """The operator runs and has nothing left to do when this yields."""
    settings = Settings(identity(), leader_elect=False)
    webhooks = Webhooks(Address(LOOPBACK, 0))
    operation = Operation(load_config(kubeconfig), CAPABILITIES, settings, install_crds=True, webhooks=webhooks)
    async with operating(operation):
        objects = [(where, beside.filled(obj)) for where, obj in files.read(examples()) if obj["kind"] != _NODE]
        await _applied(client, objects)
        await _settled(client)
        yield


def examples(capabilities: Sequence[Capability] = CAPABILITIES) -> list[Path]:
    """The folders whose manifests are applied."""
    root = next((place for place in _PLACES if place.is_dir()), None)
    if root is None:
        raise Failure("the examples are missing from this installation; run the demo from the repository")
    return [root / SCENARIOS[each.name].example for each in capabilities if each.name in SCENARIOS]


async def _applied(client: Client, objects: Sequence[tuple[str, Object]]) -> None:
    """All of them, in whatever order they stand: some are of kinds, or in namespaces, that others bring about."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    left = list(objects)
    while left:
        waiting = []
        for each in left:
            try:
                await files.send(client, [each], dry_run=False)
            except files.FileError as error:
                if time.monotonic() > deadline:
                    raise Failure(f"the examples could not be applied in {PATIENCE_SECONDS:.0f} s: {error}") from None
                waiting.append(each)
        left = waiting
        await asyncio.sleep(_LOOK_SECONDS if left else 0)


async def _settled(client: Client) -> None:
    """Until every plan is empty, as `nodeyard plan` would print it, and whatever can say that it is ready does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    async with dry_planning(client, CAPABILITIES) as inspection:
        since: float | None = None
        while since is None or time.monotonic() - since < QUIET_SECONDS:
            is_busy = any(look.has_changes for look in inspection.plans(Limit())) or not await _are_ready(client)
            since = None if is_busy else since or time.monotonic()
            if time.monotonic() > deadline:
                raise Failure(
                    f"the operator did not settle in {PATIENCE_SECONDS:.0f} s; `nodeyard plan` says what is left"
                )
            await asyncio.sleep(_LOOK_SECONDS)


async def _are_ready(client: Client) -> bool:
    catalog = await client.catalog()
    for resource in (resource for capability in CAPABILITIES for resource in _shown(capability, catalog)):
        for obj in (await client.list(resource)).items:
            conditions: Sequence[Object] = (obj.get("status") or {}).get("conditions") or ()
            if any(each["type"] == "Ready" and each["status"] != "True" for each in conditions):
                return False
    return True


def _shown(capability: Capability, catalog: Catalog) -> Iterator[Resource[Object]]:
    """Its kinds, and those in the same groups that its objects have declared."""
    own = [kind.resource.decoded_as(dict) for kind in capability.kinds]
    yield from own
    groups, kinds = {each.group for each in own}, {(each.group, each.kind) for each in own}
    for known in catalog.known:
        resource = known.resource
        if CATEGORY in known.categories and resource.group in groups and (resource.group, resource.kind) not in kinds:
            yield resource


async def roots(client: Client) -> Table:
    """The root objects of every capability, and how they are."""
    made = Table("capability", Column("object", overflow="fold"), "conditions", "says")
    catalog = await client.catalog()
    for capability in CAPABILITIES:
        for resource in _shown(capability, catalog):
            for obj in (await client.list(resource)).items:
                conditions: Sequence[Object] = (obj.get("status") or {}).get("conditions") or ()
                name = f"{resource.kind.lower()}/{obj['metadata']['name']}"
                shown = ", ".join(f"{each['type']}={each['status']}" for each in conditions)
                says = next((each["message"] for each in conditions if each["status"] != "True"), "")
                made.add_row(capability.name, name, shown, says)
    return made
