"""What `nodeyard plan` looks at, and how it prints what it found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import typer

from nodeyard.app import files
from nodeyard.app.inspection import Look, inspecting
from nodeyard.cli.cluster import connected, served, tell_unreached
from nodeyard.client.api import Client
from nodeyard.client.config import Config
from nodeyard.client.errors import NoCluster
from nodeyard.client.kubeconfig import load_config
from nodeyard.kube.manifests import dump
from nodeyard.plan.brake import Limit
from nodeyard.plan.model import API_VERSION, to_wire
from nodeyard.plan.render import render_plans
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.crds import install


async def look(
    kubeconfig: Path | None, capabilities: Sequence[Capability], paths: Sequence[Path], limit: Limit
) -> list[Look]:
    objects = files.read(paths)
    if paths and not objects:
        # What made them has failed, more often than not: the plan without them would be taken for the one with them.
        raise files.FileError(f"{', '.join(map(str, paths))}: there is no object in there")
    async with _cluster(kubeconfig, capabilities, is_needed=not objects) as (client, config):
        is_live = config is not None
        namespace = config.namespace if config is not None else "default"
        answers = await files.send(client, objects, dry_run=is_live, namespace=namespace)
        able, missing = await served(client, capabilities)
        if missing:
            typer.echo(f"not installed, and left out: {', '.join(missing)}", err=True)
        async with inspecting(client, able) as inspection:
            if is_live:
                await inspection.suppose(answers)
            tell_unreached(inspection)
            return inspection.plans(limit)


@asynccontextmanager
async def _cluster(
    kubeconfig: Path | None, capabilities: Sequence[Capability], *, is_needed: bool
) -> AsyncIterator[tuple[Client, Config | None]]:
    """The live one, or where there is none and files are given, an embedded one for them alone, without a Config."""
    try:
        config = load_config(kubeconfig)
    except NoCluster:
        if is_needed:
            raise
        typer.echo("no cluster configured: planning for the files alone", err=True)
        async with _embedded(capabilities) as client:
            yield client, None
        return
    async with connected(config) as client:
        yield client, config


@asynccontextmanager
async def _embedded(capabilities: Sequence[Capability]) -> AsyncIterator[Client]:
    from nodeyard.apiserver.server import Server
    from nodeyard.sim.embedded import connect

    server = Server()
    await server.start(())
    try:
        client = connect(server)
        await install(client, capabilities, SystemClock())
        yield client
    finally:
        await server.stop()


def shown(looks: Sequence[Look], form: str) -> str:
    if form == "text":
        text = render_plans([(look.braked.now, look.capability.messages) for look in looks])
        return text or "nothing to plan\n"
    listed = {"apiVersion": API_VERSION, "kind": "PlanList", "items": [to_wire(look.braked.now) for look in looks]}
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n"
    return dump(msgspec.to_builtins(listed))
