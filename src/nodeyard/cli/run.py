"""`nodeyard run`: the operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli.failures import Failure

if TYPE_CHECKING:
    from nodeyard.runtime.health import Address


def run(
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Cluster to work on; else KUBECONFIG, else the pod's own.", metavar="FILE")
    ] = None,
    capabilities: Annotated[str, typer.Option(help="Which to run; all by default.", metavar="A,B")] = "",
    install_crds: Annotated[
        bool, typer.Option("--install-crds", help="Create the CRDs that are missing; none is ever replaced.")
    ] = False,
    metrics_bind: Annotated[
        str, typer.Option(help="Where /metrics is served; 0 for nowhere.", metavar="HOST:PORT")
    ] = "127.0.0.1:8082",
    health_bind: Annotated[
        str, typer.Option(help="Where /healthz and /readyz are served; 0 for nowhere.", metavar="HOST:PORT")
    ] = "127.0.0.1:8081",
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="Let one of several replicas write, by a Lease per capability.")
    ] = False,
    observe: Annotated[
        bool, typer.Option("--observe", help="Plan, explain and measure; write nothing but the Lease.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Write although the operator this one replaces is still alive.")
    ] = False,
    max_disruption: Annotated[
        str, typer.Option(help="Nodes and share of nodes a plan may disturb unasked.", metavar="N,P%")
    ] = "25,10%",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.", metavar="LEVEL")] = "info",
) -> None:
    """Run the operator until SIGTERM; then finish what is in flight and release the leases."""
    from nodeyard.app.operator import Operation, identity, operate
    from nodeyard.cli import cluster, signals
    from nodeyard.plan.brake import parse_limit
    from nodeyard.process import logs
    from nodeyard.runtime.settings import Settings

    cluster.option("--log-level", logs.configure, log_level)
    limit = cluster.option("--max-disruption", parse_limit, max_disruption)
    health = cluster.option("--health-bind", _bind, health_bind)
    metrics = cluster.option("--metrics-bind", _bind, metrics_bind)
    enabled = cluster.chosen(capabilities)
    if not enabled:
        raise Failure("there is no capability to run")
    settings = Settings(
        identity=identity(), leader_elect=leader_elect, observe=observe, take_over=take_over, limit=limit
    )
    operation = Operation(
        cluster.configuration(kubeconfig), enabled, settings, install_crds=install_crds, health=health, metrics=metrics
    )
    with cluster.failing_in_one_line():
        signals.run(operate(operation, signals.until_stopped))


def _bind(text: str) -> Address | None:
    from nodeyard.runtime.health import parse_bind

    return None if text == "0" else parse_bind(text)
