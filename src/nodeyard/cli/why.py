"""`nodeyard why`: why an object is as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodeyard.cli.failures import Failure


def why(
    subject: Annotated[str, typer.Argument(help="Kinds and short names as in kubectl.", metavar="KIND[.GROUP]/NAME")],
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="Of the object; else the kubeconfig's.", metavar="NS")
    ] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Cluster to look at; else KUBECONFIG, else the pod's own.", metavar="FILE")
    ] = None,
) -> None:
    """Say which rule applied to an object, who was refused and for what reason, and what would change it."""
    from nodeyard.cli import asking, cluster, signals
    from nodeyard.plan.explain import render_why
    from nodeyard.process import logs

    logs.configure("error")
    kind, slash, name = subject.partition("/")
    if not (kind and slash and name):
        raise Failure(f'"{subject}" is not of the form KIND/NAME, for example node/n1')
    config = cluster.configuration(kubeconfig)
    with cluster.failing_in_one_line():
        answers = signals.run(asking.ask(config, kind, name, namespace or config.namespace))
    if not answers:
        raise Failure(f"no capability has anything to say about {subject}")
    typer.echo(render_why(answers), nl=False)
