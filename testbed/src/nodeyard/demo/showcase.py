"""The operator of the demo: runs all capabilities, applies their examples and reads the resulting objects."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from nodeyard.admission.manager import Webhooks
from nodeyard.app import files
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.dashboard.server import DashboardOptions
from nodeyard.app.operator import Operation, Running, identity, operating
from nodeyard.cli.failures import Failure
from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import Resource
from nodeyard.demo.leaf_clusters import LeafClusters
from nodeyard.demo.summary import ObjectState
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.health import Address
from nodeyard.runtime.settings import Settings
from nodeyard.schema.crd import CATEGORY
from nodeyard.sim.scenarios import SCENARIOS

TIMEOUT_SECONDS = 60.0
LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.2
_NODE = "Node"
"""Nodes of the examples are left out: the demo simulates its own."""
_EXAMPLES = (Path(__file__).parents[1] / "examples", Path(__file__).parents[4] / "examples")
"""In an installed package and in the repository."""


@asynccontextmanager
async def run_operator(kubeconfig: Path) -> AsyncIterator[tuple[Running, str]]:
    """Run the operator with webhooks and the dashboard; yield it with the address that opens the dashboard."""
    token = secrets.token_urlsafe(9)
    settings = Settings(identity(), leader_elect=False)
    operation = Operation(
        load_config(kubeconfig),
        CAPABILITIES,
        settings,
        install_crds=True,
        webhooks=Webhooks(Address(LOOPBACK, 0)),
        dashboard=DashboardOptions(Address(LOOPBACK, 0), token=token),
    )
    async with operating(operation) as running:
        yield running, f"http://{LOOPBACK}:{running.ports['dashboard']}/?token={token}"


async def apply_examples(client: Client, leaf_clusters: LeafClusters) -> None:
    manifests = files.read(example_folders())
    await _apply_all(
        client, [(where, leaf_clusters.with_kubeconfig(obj)) for where, obj in manifests if obj["kind"] != _NODE]
    )


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


def _shown(capability: Capability, catalog: Catalog) -> Iterator[Resource[Object]]:
    """Yield the kinds of a capability and those that its objects declare in the same groups."""
    own = [kind.resource.decoded_as(dict) for kind in capability.kinds]
    yield from own
    groups, kinds = {each.group for each in own}, {(each.group, each.kind) for each in own}
    for known in catalog.known:
        resource = known.resource
        if CATEGORY in known.categories and resource.group in groups and (resource.group, resource.kind) not in kinds:
            yield resource


async def read_objects(client: Client) -> list[ObjectState]:
    """Return the state of every object of the capabilities, by its condition Ready, or else its first one."""
    catalog = await client.catalog()
    shown = [(each.name, resource) for each in CAPABILITIES for resource in _shown(each, catalog)]
    pages = await asyncio.gather(*(client.list(resource) for _, resource in shown))
    return [
        _state(name, resource.kind, obj)
        for (name, resource), page in zip(shown, pages, strict=True)
        for obj in page.items
    ]


def _state(capability: str, kind: str, obj: Object) -> ObjectState:
    conditions: Sequence[Object] = (obj.get("status") or {}).get("conditions") or ()
    ready = next((each for each in conditions if each["type"] == "Ready"), None)
    condition = ready or next(iter(conditions), {"status": "Unknown", "message": "no condition yet"})
    is_ok = condition["status"] == "True"
    is_settled = bool(conditions) and (ready is None or is_ok)
    return ObjectState(capability, kind, obj["metadata"]["name"], is_ok, is_settled, condition.get("message") or "")
