"""Values that the shell completes: kinds and names for `why`, ids of held plans for `approve`.

The cluster is asked for at most two seconds. Whatever goes wrong completes nothing: a shell has no place for errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from nodeyard.client.api import Client
    from nodeyard.client.config import Config

SECONDS: Final = 2.0
_COMMON: Final = ("node", "pod")


def complete_subject(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete KIND/NAME: first the kind, then the objects of the cluster."""
    from nodeyard.app.capabilities import CAPABILITIES

    kind, slash, name = incomplete.partition("/")
    kinds = {*_COMMON, *(alias for each in CAPABILITIES for alias in each.explain.aliases)}
    kinds |= {each.resource.kind.lower() for capability in CAPABILITIES for each in capability.kinds}
    matching = sorted(each for each in kinds if each.startswith(kind.lower()))
    if not slash and len(matching) != 1:
        return [f"{each}/" for each in matching]
    # A shell adds a space after the only answer, so a kind that is the only one comes with its objects.
    chosen = kind if slash else matching[0]
    names = _ask(ctx, lambda client, config: _names(client, config, ctx, chosen))
    found = [f"{chosen}/{each}" for each in names if each.startswith(name)]
    return found or ([] if slash else [f"{chosen}/"])


def complete_held(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the ID of a held plan, as the operators publish it."""

    async def find_ids(client: Client, _config: Config) -> list[str]:
        from nodeyard.app.capabilities import CAPABILITIES
        from nodeyard.app.operators import find_operators

        operators = await find_operators(client, CAPABILITIES)
        return [plan.id for each in operators.running.values() for plan in each.held]

    return [each for each in _ask(ctx, find_ids) if each.startswith(incomplete)]


async def _names(client: Client, config: Config, ctx: typer.Context, kind: str) -> list[str]:
    from nodeyard.client.metadata_only import metadata_only

    resource = (await client.catalog()).find(kind).resource
    namespace = (ctx.params.get("namespace") or config.namespace) if resource.namespaced else ""
    page = await metadata_only(client).list(resource, namespace)
    return [each["metadata"]["name"] for each in page.items]


def _ask(ctx: typer.Context, ask: Callable[[Client, Config], Awaitable[list[str]]]) -> list[str]:
    """Ask the cluster that --kubeconfig and --context select."""
    from nodeyard.cli import cluster
    from nodeyard.client.errors import ClientError
    from nodeyard.client.kubeconfig import load_config
    from nodeyard.process import logs

    logs.configure("error")
    path = ctx.params.get("kubeconfig")

    async def within_time() -> list[str]:
        config = load_config(Path(path) if path else None, context=ctx.params.get("context") or "")
        async with asyncio.timeout(SECONDS), cluster.connect(config) as client:
            return await ask(client, config)

    try:
        return asyncio.run(within_time())
    except (ClientError, OSError, ValueError):
        return []
