"""`nodeyard plan`: what the operator would do now, or would do if these files were applied."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

CHANGES_PENDING = 2


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def plan(
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "-f", "--file", help="Suppose that this file, directory or - (stdin) were applied.", metavar="FILE"
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Cluster to look at; else KUBECONFIG, else the pod's own.", metavar="FILE")
    ] = None,
    capabilities: Annotated[str, typer.Option(help="Which to ask; all by default.", metavar="A,B")] = "",
    max_disruption: Annotated[
        str, typer.Option(help="Nodes and share of nodes a plan may disturb unasked.", metavar="N,P%")
    ] = "25,10%",
    output: Annotated[Form, typer.Option("-o", "--output", help="How to print it.")] = Form.TEXT,
) -> None:
    """Print what would be done, and change nothing.

    Files are first sent as a dry run, so that the server's defaults and rules have their say. Without a cluster they
    are planned alone. Exit code: 0 nothing to do, refusals alone included; 2 changes pending, also where all of them
    are held for approval; 1 error.
    """
    from nodeyard.cli import cluster, planning, signals
    from nodeyard.plan.brake import parse_limit
    from nodeyard.process import logs

    logs.configure("error")
    enabled = cluster.chosen(capabilities)
    limit = cluster.option("--max-disruption", parse_limit, max_disruption)
    with cluster.failing_in_one_line():
        looks = signals.run(planning.look(kubeconfig, enabled, files or [], limit))
    typer.echo(planning.shown(looks, output.value), nl=False)
    if any(look.has_changes for look in looks):
        raise typer.Exit(CHANGES_PENDING)
