"""`nodeyard dashboard`: serves the web page on this machine, with the user's own kubeconfig."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli import CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.cli.failures import Failure, UsageFailure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nodeyard.client.config import Config
    from nodeyard.runtime.capability import Capability
    from nodeyard.runtime.health import Address


def dashboard(
    bind: Annotated[
        str, typer.Option(help="Loopback address of the page; port 0 takes a free one.", metavar="HOST:PORT")
    ] = "127.0.0.1:8090",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    capabilities: Annotated[
        str, typer.Option(help="Capabilities to show; default all whose CRDs are installed.", metavar="A,B")
    ] = "",
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
) -> None:
    """Serve the dashboard on this machine until Ctrl+C: nodes, plans, answers and rollouts, live.

    The first line is the address of the page. It contains a token; whoever has it acts with your kubeconfig. The page
    writes nothing but approvals.
    """
    from nodeyard.cli import cluster, signals
    from nodeyard.process import logs

    logs.configure("error")
    address = parse_loopback(bind)
    chosen = cluster.parse_capabilities(capabilities)
    config = cluster.load(kubeconfig, context)
    with cluster.one_line_errors(config):
        signals.run(_serve(config, chosen, address, open_browser=open_browser))


def parse_loopback(bind: str) -> Address:
    """Parse --bind. Raises a UsageFailure for an address that other machines reach."""
    from nodeyard.app.webhooks import is_loopback
    from nodeyard.cli import cluster
    from nodeyard.runtime.health import parse_bind

    address = cluster.parse_option("--bind", parse_bind, bind)
    if not is_loopback(address.host):
        raise UsageFailure(
            f"--bind {bind}: the page acts with your kubeconfig, so it is served on the loopback address only; for "
            "other machines use ssh -L, or nodeyard run --dashboard-bind"
        )
    return address


async def _serve(config: Config, chosen: Sequence[Capability], address: Address, *, open_browser: bool) -> None:
    from nodeyard.app.dashboard.server import serve_local
    from nodeyard.cli import cluster, signals

    async with cluster.connect(config) as client:
        served = await cluster.select_served(client, chosen)
    try:
        async with serve_local(config, served, address) as url:
            # A pipe would keep the line back until the end.
            print(url, flush=True)
            if open_browser:
                typer.launch(url)
            await signals.wait_for_signal()
    except OSError as error:
        if error.errno is None:
            raise
        raise Failure(
            f"cannot listen on {address.host}:{address.port}: {error.strerror}; choose another --bind"
        ) from None
