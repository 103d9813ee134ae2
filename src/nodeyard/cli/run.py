"""`nodeyard run`: runs the operator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli import CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.cli.failures import UsageFailure

if TYPE_CHECKING:
    from nodeyard.admission.manager import Webhooks
    from nodeyard.app.dashboard.server import DashboardOptions
    from nodeyard.runtime.health import Address


def run(
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
    capabilities: Annotated[str, typer.Option(help="Capabilities to run; default all.", metavar="A,B")] = "",
    install_crds: Annotated[
        bool, typer.Option("--install-crds", help="Create missing CRDs; existing ones are never changed.")
    ] = False,
    metrics_bind: Annotated[
        str, typer.Option(help="Address of /metrics; 0 disables it.", metavar="HOST:PORT")
    ] = "127.0.0.1:8082",
    health_bind: Annotated[
        str, typer.Option(help="Address of /healthz and /readyz; 0 disables them.", metavar="HOST:PORT")
    ] = "127.0.0.1:8081",
    webhook_bind: Annotated[
        str, typer.Option(help="Address of the admission webhooks; 0 disables them.", metavar="HOST:PORT")
    ] = "127.0.0.1:9443",
    webhook_url: Annotated[
        str,
        typer.Option(
            help="URL at which the API server calls the webhooks; not needed if it runs on this machine.", metavar="URL"
        ),
    ] = "",
    webhook_service: Annotated[
        str, typer.Option(help="Service through which the API server calls the webhooks.", metavar="NS/NAME")
    ] = "",
    webhook_cert_dir: Annotated[
        Path | None,
        typer.Option(
            help="Directory with your tls.crt, tls.key and ca.crt; default certificates generated into a Secret.",
            metavar="DIR",
        ),
    ] = None,
    webhook_client_ca: Annotated[
        Path | None,
        typer.Option(
            help="Answer only API servers whose client certificate is signed by a CA in this file.",
            metavar="FILE",
        ),
    ] = None,
    webhook_client_name: Annotated[
        list[str] | None,
        typer.Option(help="Name that the client certificate must have; repeatable; default any name.", metavar="NAME"),
    ] = None,
    dashboard_bind: Annotated[
        str,
        typer.Option(
            help="Address of the dashboard; 0 disables it. Beyond the loopback address it needs --dashboard-cert.",
            metavar="HOST:PORT",
        ),
    ] = "0",
    dashboard_cert: Annotated[
        Path | None, typer.Option(help="TLS certificate of the dashboard, as PEM.", metavar="FILE")
    ] = None,
    dashboard_key: Annotated[Path | None, typer.Option(help="Private key of the certificate.", metavar="FILE")] = None,
    dashboard_client_ca: Annotated[
        Path | None,
        typer.Option(
            help="Also show the dashboard, read-only, to client certificates signed by a CA in this file.",
            metavar="FILE",
        ),
    ] = None,
    leader_elect: Annotated[
        bool,
        typer.Option(
            "--leader-elect/--no-leader-elect", help="Elect the replica that writes, with one Lease per capability."
        ),
    ] = True,
    observe: Annotated[
        bool, typer.Option("--observe", help="Observe-only mode: plan, explain and measure; write only the Lease.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Write even while the operator that Nodeyard replaces is still running.")
    ] = False,
    max_disruption: Annotated[
        str,
        typer.Option(help="Nodes and percentage of nodes a plan may disrupt without approval.", metavar="N,P%"),
    ] = "25,10%",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.", metavar="LEVEL")] = "info",
) -> None:
    """Run the operator until SIGTERM, then finish writes in flight and release the Leases."""
    from nodeyard.app.operator import Operation, identity, operate
    from nodeyard.cli import cluster, signals
    from nodeyard.plan.brake import parse_limit
    from nodeyard.process import logs
    from nodeyard.runtime.settings import Settings

    cluster.parse_option("--log-level", logs.configure, log_level)
    limit = cluster.parse_option("--max-disruption", parse_limit, max_disruption)
    health = cluster.parse_option("--health-bind", _bind, health_bind)
    metrics = cluster.parse_option("--metrics-bind", _bind, metrics_bind)
    enabled = cluster.parse_capabilities(capabilities)
    webhooks = None
    if any(each.admission.webhooks for each in enabled) or webhook_url or webhook_service or webhook_cert_dir:
        webhooks = parse_webhooks(webhook_bind, webhook_url, webhook_service, webhook_cert_dir)
    if webhook_client_name and webhook_client_ca is None:
        raise UsageFailure("--webhook-client-name: also give --webhook-client-ca, the CA of the certificates")
    if webhook_client_ca is not None and not webhook_client_ca.is_file():
        raise UsageFailure(f"--webhook-client-ca: {webhook_client_ca} is not a file")
    if webhooks is not None:
        names = tuple(webhook_client_name or ())
        webhooks = replace(webhooks, client_authority=webhook_client_ca, client_names=names)
    if not enabled:
        raise UsageFailure("no capability to run")
    settings = Settings(
        identity=identity(), leader_elect=leader_elect, observe=observe, take_over=take_over, limit=limit
    )
    operation = Operation(
        cluster.load(kubeconfig, context),
        enabled,
        settings,
        install_crds=install_crds,
        health=health,
        metrics=metrics,
        webhooks=webhooks,
        dashboard=parse_dashboard(dashboard_bind, dashboard_cert, dashboard_key, dashboard_client_ca),
    )
    with cluster.one_line_errors():
        signals.run(operate(operation, signals.wait_for_signal))


def _bind(text: str) -> Address | None:
    from nodeyard.runtime.health import parse_bind

    return None if text == "0" else parse_bind(text)


def parse_dashboard(
    bind: str, certificate: Path | None, key: Path | None, client_authority: Path | None
) -> DashboardOptions | None:
    """Parse the --dashboard options; None if the dashboard is disabled."""
    from nodeyard.cli import cluster

    address = cluster.parse_option("--dashboard-bind", _bind, bind)
    if address is None:
        return None
    from nodeyard.app.dashboard.server import BadCertificate, DashboardOptions, DashboardTls, server_context
    from nodeyard.app.webhooks import is_loopback

    if (certificate is None) != (key is None):
        raise UsageFailure("--dashboard-cert and --dashboard-key: give both or none")
    if certificate is None or key is None:
        if not is_loopback(address.host):
            raise UsageFailure(
                f"--dashboard-bind {bind}: viewers send bearer tokens to this address, so also give --dashboard-cert "
                "and --dashboard-key"
            )
        if client_authority is not None:
            raise UsageFailure("--dashboard-client-ca: also give --dashboard-cert and --dashboard-key")
        return DashboardOptions(address)
    tls = DashboardTls(certificate, key, client_authority)
    try:
        server_context(tls)
    except BadCertificate as error:
        raise UsageFailure(f"--dashboard-cert: {error}") from None
    return DashboardOptions(address, tls)


def parse_webhooks(bind: str, url: str, service: str, folder: Path | None) -> Webhooks | None:
    """Parse the --webhook options; None if webhooks are disabled."""
    from nodeyard.admission.client_config import Reach, parse_service, parse_url
    from nodeyard.cli import cluster

    address = cluster.parse_option("--webhook-bind", _bind, bind)
    if url and service:
        raise UsageFailure("--webhook-url and --webhook-service: give only one of them")
    reach: Reach | None = None
    if url:
        reach = cluster.parse_option("--webhook-url", parse_url, url)
    elif service:
        reach = cluster.parse_option("--webhook-service", parse_service, service)
    if address is None:
        return None
    # Imported late: the certificate libraries are large.
    from nodeyard.admission.manager import Webhooks
    from nodeyard.app.webhooks import is_loopback

    if reach is None and not is_loopback(address.host):
        raise UsageFailure(
            f"--webhook-bind {bind}: also give --webhook-service or --webhook-url, which the API server calls"
        )
    if folder is not None and not folder.is_dir():
        raise UsageFailure(f"--webhook-cert-dir: {folder} is not a directory")
    return Webhooks(address, reach, folder)
