"""`nodeyard run`: the operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli.failures import Failure

if TYPE_CHECKING:
    from nodeyard.admission.upkeep import Webhooks
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
    webhook_bind: Annotated[
        str, typer.Option(help="Where admission webhooks are served; 0 for nowhere.", metavar="HOST:PORT")
    ] = "127.0.0.1:9443",
    webhook_url: Annotated[
        str,
        typer.Option(help="How the API server reaches them; needless where it runs on this machine.", metavar="URL"),
    ] = "",
    webhook_service: Annotated[
        str, typer.Option(help="The Service by which it reaches them instead.", metavar="NS/NAME")
    ] = "",
    webhook_cert_dir: Annotated[
        Path | None,
        typer.Option(
            help="Your own tls.crt, tls.key and ca.crt; else they are made and kept in a Secret.", metavar="DIR"
        ),
    ] = None,
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
    webhooks = None
    if any(each.webhooks for each in enabled) or webhook_url or webhook_service or webhook_cert_dir:
        webhooks = webhooks_of(webhook_bind, webhook_url, webhook_service, webhook_cert_dir)
    if not enabled:
        raise Failure("there is no capability to run")
    settings = Settings(
        identity=identity(), leader_elect=leader_elect, observe=observe, take_over=take_over, limit=limit
    )
    operation = Operation(
        cluster.configuration(kubeconfig),
        enabled,
        settings,
        install_crds=install_crds,
        health=health,
        metrics=metrics,
        webhooks=webhooks,
    )
    with cluster.failing_in_one_line():
        signals.run(operate(operation, signals.until_stopped))


def _bind(text: str) -> Address | None:
    from nodeyard.runtime.health import parse_bind

    return None if text == "0" else parse_bind(text)


def webhooks_of(bind: str, url: str, service: str, folder: Path | None) -> Webhooks | None:
    from nodeyard.admission.reach import Reach, parse_service, parse_url
    from nodeyard.cli import cluster

    address = cluster.option("--webhook-bind", _bind, bind)
    if url and service:
        raise Failure("--webhook-url and --webhook-service: give one of them")
    reach: Reach | None = None
    if url:
        reach = cluster.option("--webhook-url", parse_url, url)
    elif service:
        reach = cluster.option("--webhook-service", parse_service, service)
    if address is None:
        return None
    # With them come certificates, and the libraries for those.
    from nodeyard.admission.upkeep import Webhooks
    from nodeyard.app.webhooks import is_loopback

    if reach is None and not is_loopback(address.host):
        raise Failure(
            f"--webhook-bind {bind}: say how the API server gets there, by --webhook-service or --webhook-url"
        )
    if folder is not None and not folder.is_dir():
        raise Failure(f"--webhook-cert-dir: {folder} is no folder")
    return Webhooks(address, reach, folder)
