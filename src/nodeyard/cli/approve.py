"""`nodeyard approve`: lists held plans, approves one, or revokes an approval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeyard.cli import CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.cli.completion import complete_held
from nodeyard.cli.failures import UsageFailure


def approve(
    id: Annotated[
        str,
        typer.Argument(
            help="Plan ID from a condition, an event or `nodeyard plan`.", metavar="ID", autocompletion=complete_held
        ),
    ] = "",
    reason: Annotated[str, typer.Option(help="Why you approve; recorded with your user name.", metavar="TEXT")] = "",
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke the approval; finished actions are not undone.")
    ] = False,
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
) -> None:
    """Approve a held plan; without an ID, list held plans.

    The brake holds a plan that would disrupt more nodes than --max-disruption allows. The approval covers this plan
    and its later steps; a plan with other actions is held again.
    """
    from nodeyard.app import approvals
    from nodeyard.app.capabilities import choose
    from nodeyard.cli import cluster, signals
    from nodeyard.client.config import Config
    from nodeyard.plan.brake import Limit, describe_disrupted
    from nodeyard.plan.layout import counted
    from nodeyard.process import logs

    logs.configure("error")
    if (revoke or reason) and not id:
        raise UsageFailure(f"{'--revoke' if revoke else '--reason'}: give the ID of the plan")

    async def execute(config: Config) -> list[str]:
        async with cluster.connect(config) as client:
            operators, run = await cluster.find_running(client, choose(()))
            async with cluster.plan_dry(client, run) as planner:
                cluster.warn_unreachable(planner)
                if revoke:
                    refs = await approvals.revoke(client, planner, id)
                    return [f"{id} revoked on {ref}" for ref in refs]
                if id:
                    done = await approvals.approve(client, planner, id, reason)
                    return [f"{id} approved on {done.root}: {counted(len(done.plan.actions), 'action')}"]
                dry_plans = planner.plans(Limit(), operators.limits())
                held = [(each, each.braked.held) for each in dry_plans if each.braked.held is not None]
                return [
                    f"{plan.id}  {dry_plan.capability.name} {dry_plan.key}: "
                    f"{describe_disrupted(plan.actions)} disrupted by "
                    f"{counted(len(plan.actions), 'action')}"
                    for dry_plan, plan in held
                ] or ["no plan is held"]

    config = cluster.load(kubeconfig, context)
    with cluster.one_line_errors(config):
        typer.echo("\n".join(signals.run(execute(config))))
