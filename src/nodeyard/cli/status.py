"""`nodeyard status`: shows the operators of a cluster, their held plans and problems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli import CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.plan.layout import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from nodeyard.app.operators import OperatorProcess, Operators
    from nodeyard.client.config import Config
    from nodeyard.runtime.capability import Capability

_HEADER = ("CAPABILITY", "HOLDER", "VERSION", "WRITES", "LIMIT", "HELD", "RENEWED")


def status(
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
) -> None:
    """Show which operator runs each capability: version, leader, limit, observe mode, held plans and problems.

    All of it is read from the Leases that operators renew in namespace nodeyard-system.
    """
    from datetime import UTC, datetime

    from nodeyard.app.capabilities import CAPABILITIES
    from nodeyard.app.operators import find_operators
    from nodeyard.cli import cluster, signals
    from nodeyard.cli.failures import Failure
    from nodeyard.process import logs

    logs.configure("error")

    async def execute(config: Config) -> tuple[Operators, list[str]]:
        async with cluster.connect(config) as client:
            catalog = await client.catalog()
            missing = [
                f"{each.name}: CRD {kind.resource} is not installed; install it: nodeyard crds | kubectl apply -f -"
                for each in CAPABILITIES
                for kind in each.kinds
                if catalog.by_kind(kind.resource.api_version, kind.resource.kind) is None
            ]
            return await find_operators(client, CAPABILITIES), missing

    config = cluster.load(kubeconfig, context)
    with cluster.one_line_errors(config):
        operators, missing = signals.run(execute(config))
    if operators.error:
        raise Failure(operators.error)
    served = [each for each in missing if each.partition(":")[0] in operators.running]
    typer.echo("\n".join(render(operators, CAPABILITIES, datetime.now(UTC), served)))


def render(
    operators: Operators, capabilities: Sequence[Capability], now: datetime, problems: Sequence[str] = ()
) -> Iterator[str]:
    """Render a table of the capabilities, then held plans, then problems, line by line."""
    rows = [_HEADER, *(_row(each.name, operators, now) for each in capabilities)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    held = [(name, plan) for name, each in operators.running.items() for plan in each.held]
    if held:
        yield ""
        yield "Held plans (approve one with: nodeyard approve ID):"
        for name, plan in held:
            disrupted = plan.disrupts or counted(plan.nodes, "node")
            yield f"  {plan.id}  {name} {plan.key}: {disrupted} disrupted by {counted(plan.actions, 'action')}"
    if more := sum(each.held_count - len(each.held) for each in operators.running.values()):
        yield f"  and {more} more"
    found = [*problems, *_find_problems(operators)]
    if found:
        yield ""
        yield "Problems:"
        yield from (f"  {each}" for each in found)


def _row(name: str, operators: Operators, now: datetime) -> tuple[str, ...]:
    each = operators.running.get(name)
    if each is None:
        return (name, "<none>", "", "", "", "", _ago(operators.gone.get(name), now))
    published = each.published
    writes = f"no ({published.observe})" if published.observe else "yes"
    return (name, each.holder, published.version, writes, published.limit, str(each.held_count), _ago(each, now))


def _ago(process: OperatorProcess | None, now: datetime) -> str:
    if process is None or process.renewed is None:
        return ""
    return f"{max(0, round((now - process.renewed).total_seconds()))}s ago"


def _find_problems(operators: Operators) -> Iterator[str]:
    if not operators.running and not operators.gone:
        yield "no operator runs on this cluster: install the chart, or start nodeyard run"
    for name, each in operators.gone.items():
        reason = f"{each.holder} stopped renewing its Lease" if each.holder else "its Lease was released"
        yield f"{name}: not running: {reason}"
    for name, each in operators.running.items():
        if not each.published.version:
            yield f"{name}: version unknown: {each.holder} is an older nodeyard that does not publish it; upgrade it"
