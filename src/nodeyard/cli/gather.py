"""`nodeyard gather`: writes a support bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli import CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.cli.failures import Failure, UsageFailure

if TYPE_CHECKING:
    from nodeyard.app.gather import Gathered, ReadMetrics
    from nodeyard.client.config import Config

_METRICS_SECONDS = 10.0
_METRICS_BYTES = 16 << 20


def gather(
    output: Annotated[Path, typer.Option("-o", "--output", help="Bundle to write.", metavar="FILE")] = Path(
        "bundle.tgz"
    ),
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
    metrics: Annotated[
        str,
        typer.Option(
            help="Address of the operator's metrics; default its pods, through the API server.", metavar="URL"
        ),
    ] = "",
) -> None:
    """Write a support bundle: the objects that plans depend on, the plans, explanations, metrics and events.

    Secrets, tokens, kubeconfigs and all texts that may hold them are hashed. What the account may not read is left
    out, with one line for each. Nothing is written to the cluster. Read the bundle with `nodeyard plan --from`, `why
    --from` or `apiserver --load`.
    """
    from nodeyard.app.gather import write
    from nodeyard.bundle.model import BundleError
    from nodeyard.cli import cluster, signals
    from nodeyard.process import logs

    logs.configure("error")
    if metrics and not metrics.startswith(("http://", "https://")):
        raise UsageFailure(f'--metrics: "{metrics}" is no http or https address')
    config = cluster.load(kubeconfig, context)
    try:
        with cluster.one_line_errors(config):
            gathered = signals.run(_gather(config, (lambda: _fetch(metrics)) if metrics else None))
        write(output, gathered)
    except BundleError as error:
        raise Failure(str(error)) from None
    for omission in gathered.omitted:
        typer.echo(f"left out: {omission}", err=True)
    number = sum(len(found) for each in (gathered.cluster, *gathered.clusters) for found in each.objects.values())
    typer.echo(f"wrote {output}: {number} objects, {output.stat().st_size / 1e6:.1f} MB")


async def _gather(config: Config, metrics: ReadMetrics | None) -> Gathered:
    from nodeyard.app.capabilities import CAPABILITIES
    from nodeyard.app.gather import gather
    from nodeyard.cli import cluster

    async with cluster.connect(config) as client:
        return await gather(client, CAPABILITIES, metrics=metrics)


def _fetch(url: str) -> bytes:
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=_METRICS_SECONDS) as response:  # The user's own address, and http or https.
            content: bytes = response.read(_METRICS_BYTES)
            return content
    except (OSError, ValueError) as error:
        raise Failure(f"--metrics: {url}: {error}") from None
