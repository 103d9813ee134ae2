"""`nodeyard approve`: lets a held plan go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def approve(
    id: Annotated[str, typer.Argument(help="As events and `nodeyard plan` show it.", metavar="ID")],
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Cluster to work on; else KUBECONFIG, else the pod's own.", metavar="FILE")
    ] = None,
) -> None:
    """Approve a plan that the brake holds because it would disturb very many nodes.

    The approval is for this plan alone, with all its later steps: one that would do something else is held again.
    """
    from nodeyard.app import approvals
    from nodeyard.app.capabilities import choose
    from nodeyard.app.inspection import inspecting
    from nodeyard.cli import cluster, signals
    from nodeyard.client.config import Config
    from nodeyard.process import logs

    logs.configure("error")

    async def approving(config: Config) -> approvals.Approved:
        async with cluster.connected(config) as client:
            able, _ = await cluster.served(client, choose(()))
            async with inspecting(client, able) as inspection:
                cluster.tell_unreached(inspection)
                return await approvals.approve(client, inspection, id)

    config = cluster.configuration(kubeconfig)
    with cluster.failing_in_one_line():
        approved = signals.run(approving(config))
    typer.echo(f"{id} approved on {approved.root}: {len(approved.plan.actions)} actions")
