"""`nodeyard plan`: prints what the operator would do now, or would do if these files were applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli import BUNDLE_HELP, CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.cli.failures import UsageFailure
from nodeyard.cli.terminal import COLOR_HELP, Color, echo, find_style
from nodeyard.plan.style import PLAIN, Style

if TYPE_CHECKING:
    from nodeyard.client.api import Client
    from nodeyard.client.config import Config
    from nodeyard.kube.json import Object
    from nodeyard.plan.brake import Limit
    from nodeyard.runtime.capability import Capability
    from nodeyard.runtime.dry_plan import DryPlan

CHANGES_PENDING = 2


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    MARKDOWN = "markdown"


@dataclass(frozen=True)
class PlanOptions:
    """The parsed options of `nodeyard plan`."""

    paths: Sequence[Path]
    capabilities: Sequence[Capability]
    is_chosen: bool = False
    """The user named the capabilities: they are planned even if no operator runs them."""
    limit: Limit | None = None
    namespace: str = ""
    bundle: Path | None = None


@dataclass(frozen=True)
class PlanResult:
    dry_plans: Sequence[DryPlan]
    headline: str = ""
    """Names the running operator; empty without a cluster."""


def plan(
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "-f", "--file", help="File, directory or - (stdin) to plan for as if it were applied.", metavar="FILE"
        ),
    ] = None,
    bundle: Annotated[Path | None, typer.Option("--from", help=BUNDLE_HELP, metavar="BUNDLE")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
    namespace: Annotated[
        str,
        typer.Option(
            "-n",
            "--namespace",
            help="Namespace of objects in the files that set none; default the kubeconfig's.",
            metavar="NS",
        ),
    ] = "",
    capabilities: Annotated[
        str, typer.Option(help="Capabilities to plan; default those that the operator runs, or all.", metavar="A,B")
    ] = "",
    max_disruption: Annotated[
        str,
        typer.Option(
            help="Nodes and percentage of nodes a plan may disrupt without approval; default the operator's, or "
            "25,10%.",
            metavar="N,P%",
        ),
    ] = "",
    output: Annotated[Format, typer.Option("-o", "--output", help="Output format.")] = Format.TEXT,
    full: Annotated[
        bool, typer.Option("--full", help="Do not fold equal actions, and show every plan, object and value.")
    ] = False,
    color: Annotated[Color, typer.Option("--color", help=COLOR_HELP)] = Color.AUTO,
) -> None:
    """Print the actions that the operator would take now, and change nothing.

    Equal actions are folded into one, and plans with nothing to do are only counted.

    With --from the plans are those of the moment when the bundle was gathered, and no cluster is needed.

    The first line names the running operator, whose capabilities and limit are used. Files are sent as a server-side
    dry run, so defaults, CEL rules and webhooks apply. Without a cluster the files are planned alone. Exit code: 0
    nothing to do, refusals included; 2 changes pending, also if all of them are held for approval; 1 error; 64 usage
    error.
    """
    from nodeyard.cli import cluster, signals
    from nodeyard.plan.brake import parse_limit
    from nodeyard.process import logs

    logs.configure("error")
    cluster.refuse_beside_bundle(bundle, kubeconfig, context)
    if bundle is not None and files:
        raise UsageFailure("--from plans what the bundle has; leave out -f, or rehearse the files on the bundle")
    options = PlanOptions(
        paths=tuple(files or ()),
        capabilities=cluster.parse_capabilities(capabilities),
        is_chosen=bool(capabilities),
        limit=cluster.parse_option("--max-disruption", parse_limit, max_disruption) if max_disruption else None,
        namespace=namespace,
        bundle=bundle,
    )
    result = signals.run(make_plans(kubeconfig, context, options))
    if result.headline:
        typer.echo(result.headline, err=output is not Format.TEXT)
    style = find_style(color, is_full=full)
    echo(render(result.dry_plans, output, style, result.headline), style)
    if any(each.has_changes for each in result.dry_plans):
        raise typer.Exit(CHANGES_PENDING)


async def make_plans(kubeconfig: Path | None, context: str, options: PlanOptions) -> PlanResult:
    """Plan for the configured cluster, with the files as if applied; without a cluster, for the files alone."""
    from nodeyard.app import files
    from nodeyard.cli import cluster
    from nodeyard.client.errors import NoCluster
    from nodeyard.client.kubeconfig import load_config

    if options.bundle is not None:
        with cluster.one_line_errors():
            return await _plan_bundle(options.bundle, options)
    config: Config | None = None
    with cluster.one_line_errors():
        objects = files.read(options.paths)
        if options.paths and not objects:
            # An empty file usually means that the command which should write it failed. Planning without it would
            # pass for a plan with it.
            raise files.FileError(f"{', '.join(map(str, options.paths))}: contains no object")
        try:
            config = load_config(kubeconfig, context=context)
        except NoCluster:
            if not objects:
                raise
    with cluster.one_line_errors(config):
        if config is None:
            return await _plan_files(objects, options)
        async with cluster.connect(config) as client:
            return await _plan_cluster(client, config, objects, options)


async def _plan_cluster(
    client: Client, config: Config, objects: Sequence[tuple[str, Object]], options: PlanOptions
) -> PlanResult:
    from nodeyard.app import files
    from nodeyard.cli import cluster
    from nodeyard.plan.brake import Limit

    answers = await files.send(client, objects, dry_run=True, namespace=options.namespace or config.namespace)
    operators, run = await cluster.find_running(client, options.capabilities)
    chosen = list(options.capabilities) if options.is_chosen else run
    skipped = [each.name for each in options.capabilities if each not in chosen]
    limit = options.limit or Limit()
    async with cluster.plan_dry(client, chosen) as planner:
        cluster.warn_unreachable(planner)
        await planner.overlay(answers)
        dry_plans = planner.plans(limit, {} if options.limit else operators.limits())
    headline = operators.describe(limit, skipped)
    return PlanResult(dry_plans, f"{headline} Planned with limit {limit.option}." if options.limit else headline)


async def _plan_bundle(path: Path, options: PlanOptions) -> PlanResult:
    from nodeyard.app.replay import replaying
    from nodeyard.bundle.reader import read_bundle
    from nodeyard.cli import cluster
    from nodeyard.plan.brake import Limit

    async with replaying(read_bundle(path)) as replay:
        operators = replay.operators
        chosen = list(options.capabilities) if options.is_chosen else operators.select(options.capabilities)
        skipped = [each.name for each in options.capabilities if each not in chosen]
        limit = options.limit or Limit()
        async with cluster.replay_dry(replay, chosen) as planner:
            cluster.warn_unreachable(planner)
            dry_plans = planner.plans(limit, {} if options.limit else operators.limits())
        shown = cluster.drop_hidden(replay, dry_plans)
    headline = f"{cluster.describe_bundle(replay)} {operators.describe(limit, skipped)}"
    return PlanResult(shown, f"{headline} Planned with limit {limit.option}." if options.limit else headline)


async def _plan_files(objects: Sequence[tuple[str, Object]], options: PlanOptions) -> PlanResult:
    from nodeyard.app import files
    from nodeyard.cli import cluster
    from nodeyard.cli.testbed import load_testbed
    from nodeyard.plan.brake import Limit

    typer.echo(
        "no cluster configured: planning for the files alone, as if Cluster API, its providers and Flux were installed",
        err=True,
    )
    offline = load_testbed("nodeyard.sim.offline", "nodeyard plan without a cluster")
    async with offline.offline_cluster(options.capabilities) as client:
        await files.send(client, objects, dry_run=False, namespace=options.namespace or "default")
        async with cluster.plan_dry(client, options.capabilities) as planner:
            cluster.warn_unreachable(planner)
            return PlanResult(planner.plans(options.limit or Limit()))


def render(dry_plans: Sequence[DryPlan], output: str, style: Style = PLAIN, headline: str = "") -> str:
    """Render plans as text, as Markdown, or as a PlanList in JSON or YAML."""
    import msgspec

    from nodeyard.kube.manifests import dump
    from nodeyard.plan.markdown import render_markdown
    from nodeyard.plan.model import API_VERSION, to_wire
    from nodeyard.plan.render import render_plans

    plans = [each.braked.now for each in dry_plans]
    if output == Format.TEXT:
        return render_plans(plans, style) or "nothing to plan\n"
    if output == Format.MARKDOWN:
        return render_markdown(plans, headline, Style(is_full=style.is_full))
    plan_list = {"apiVersion": API_VERSION, "kind": "PlanList", "items": list(map(to_wire, plans))}
    if output == Format.JSON:
        return msgspec.json.format(msgspec.json.encode(plan_list), indent=2).decode() + "\n"
    return dump(msgspec.to_builtins(plan_list))
