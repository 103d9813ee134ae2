"""The operator of the demo: runs all capabilities, applies their examples and lists the resulting objects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from rich.table import Column, Table
from rich.text import Text

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
from nodeyard.demo.leaf_clusters import LeafClusters
from nodeyard.demo.summary import LAYOUT
from nodeyard.kube.json import Object
from nodeyard.plan.brake import Limit
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.health import Address
from nodeyard.runtime.settings import Settings
from nodeyard.schema.crd import CATEGORY
from nodeyard.sim.scenarios import SCENARIOS

TIMEOUT_SECONDS = 60.0
QUIET_SECONDS = 1.0
"""All plans must be empty for this long, since effects of the last write arrive later."""
LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.2
_NODE = "Node"
"""Nodes of the examples are left out: the demo simulates its own."""
_EXAMPLES = (Path(__file__).parents[1] / "examples", Path(__file__).parents[4] / "examples")
"""In an installed package and in the repository."""


@asynccontextmanager
async def run_operator(kubeconfig: Path, client: Client, leaf_clusters: LeafClusters) -> AsyncIterator[None]:
    """Run the operator; yield when it has nothing left to do."""
    settings = Settings(identity(), leader_elect=False)
    webhooks = Webhooks(Address(LOOPBACK, 0))
    operation = Operation(load_config(kubeconfig), CAPABILITIES, settings, install_crds=True, webhooks=webhooks)
    async with operating(operation):
        manifests = files.read(example_folders())
        objects = [(where, leaf_clusters.with_kubeconfig(obj)) for where, obj in manifests if obj["kind"] != _NODE]
        await _apply_all(client, objects)
        await _wait_until_settled(client)
        yield


def example_folders(capabilities: Sequence[Capability] = CAPABILITIES) -> list[Path]:
    """Return the folders of the examples."""
    root = next((folder for folder in _EXAMPLES if folder.is_dir()), None)
    if root is None:
        raise Failure("the examples are missing from this installation; run the demo from the repository")
    return [root / SCENARIOS[each.name].example for each in capabilities if each.name in SCENARIOS]


async def _apply_all(client: Client, objects: Sequence[tuple[str, Object]]) -> None:
    """Apply all objects; retry those whose kind or namespace other objects create."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    pending = list(objects)
    while pending:
        failed = []
        for each in pending:
            try:
                await files.send(client, [each], dry_run=False)
            except files.FileError as error:
                if time.monotonic() > deadline:
                    raise Failure(f"the examples could not be applied in {TIMEOUT_SECONDS:.0f} s: {error}") from None
                failed.append(each)
        pending = failed
        await asyncio.sleep(_POLL_SECONDS if pending else 0)


async def _wait_until_settled(client: Client) -> None:
    """Wait until all plans are empty, as `nodeyard plan` shows them, and no object is not Ready."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    async with dry_planning(client, CAPABILITIES) as planner:
        since: float | None = None
        while since is None or time.monotonic() - since < QUIET_SECONDS:
            is_busy = any(look.has_changes for look in planner.plans(Limit())) or not await _are_ready(client)
            since = None if is_busy else since or time.monotonic()
            if time.monotonic() > deadline:
                raise Failure(
                    f"the operator did not settle in {TIMEOUT_SECONDS:.0f} s; `nodeyard plan` shows what is left"
                )
            await asyncio.sleep(_POLL_SECONDS)


async def _are_ready(client: Client) -> bool:
    catalog = await client.catalog()
    for resource in (resource for capability in CAPABILITIES for resource in _shown(capability, catalog)):
        for obj in (await client.list(resource)).items:
            conditions: Sequence[Object] = (obj.get("status") or {}).get("conditions") or ()
            if any(each["type"] == "Ready" and each["status"] != "True" for each in conditions):
                return False
    return True


def _shown(capability: Capability, catalog: Catalog) -> Iterator[Resource[Object]]:
    """Yield the kinds of a capability and those that its objects declare in the same groups."""
    own = [kind.resource.decoded_as(dict) for kind in capability.kinds]
    yield from own
    groups, kinds = {each.group for each in own}, {(each.group, each.kind) for each in own}
    for known in catalog.known:
        resource = known.resource
        if CATEGORY in known.categories and resource.group in groups and (resource.group, resource.kind) not in kinds:
            yield resource


async def object_table(client: Client) -> Table:
    """Return a table of the objects of each capability: whether they are Ready, and the message of the condition."""
    table = Table(Column("object", no_wrap=True), "ok", "message", title="Objects by capability", **LAYOUT)
    catalog = await client.catalog()
    for capability in CAPABILITIES:
        table.add_row(Text(capability.name, style="bold"))
        for resource in _shown(capability, catalog):
            for obj in (await client.list(resource)).items:
                conditions: Sequence[Object] = (obj.get("status") or {}).get("conditions") or ()
                ready = next((each for each in conditions if each["type"] == "Ready"), None)
                condition = ready or next(iter(conditions), {"status": "Unknown", "message": ""})
                is_ok = condition["status"] == "True"
                # One line for objects that are ok; the whole message for others.
                message = Text(condition["message"], no_wrap=is_ok, overflow="ellipsis" if is_ok else "fold")
                name = f"  {resource.kind.lower()}/{obj['metadata']['name']}"
                table.add_row(name, "yes" if is_ok else "no", message)
    return table
