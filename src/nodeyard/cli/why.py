"""`nodeyard why`: explains why an object is as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli import BUNDLE_HELP, CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.cli.completion import complete_subject
from nodeyard.cli.failures import Failure, UsageFailure
from nodeyard.cli.terminal import COLOR_HELP, Color, echo, find_style

if TYPE_CHECKING:
    from nodeyard.app.dry_planner import DryPlanner
    from nodeyard.app.operators import Operators
    from nodeyard.client.api import Client
    from nodeyard.client.config import Config
    from nodeyard.dashboard.wire import Why
    from nodeyard.plan.explain import Answer
    from nodeyard.plan.model import Decision, ObjectRef
    from nodeyard.runtime.capability import Capability
    from nodeyard.runtime.dry_plan import DryPlan

    Explained = list[tuple[DryPlan, Decision]]


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class Explanation:
    headline: str
    """Names the running operator."""
    answers: list[Answer]
    """One answer of each capability that has something to say."""
    why: Why
    """The same for programs and pages."""


def why(
    subject: Annotated[
        str,
        typer.Argument(
            help="The object, with kinds and short names as in kubectl, for example node/n1.",
            metavar="KIND[.GROUP]/NAME",
            autocompletion=complete_subject,
        ),
    ],
    namespace: Annotated[
        str,
        typer.Option("-n", "--namespace", help="Namespace of the object; default the kubeconfig's.", metavar="NS"),
    ] = "",
    bundle: Annotated[Path | None, typer.Option("--from", help=BUNDLE_HELP, metavar="BUNDLE")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
    output: Annotated[Format, typer.Option("-o", "--output", help="Output format.")] = Format.TEXT,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the answer into this file, as one HTML page.", metavar="FILE")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Name every candidate.")] = False,
    color: Annotated[Color, typer.Option("--color", help=COLOR_HELP)] = Color.AUTO,
) -> None:
    """Explain an object: which rule applied, which candidates were rejected and why, and what would change it.

    With --from the answer is that of the moment when the bundle was gathered, and no cluster is needed.

    The answer joins the decision with the object's conditions, its held plans and the running operator, which the
    first line names.
    """
    from nodeyard.cli import cluster, signals
    from nodeyard.dashboard.answers import CANDIDATES
    from nodeyard.dashboard.why_page import render_page
    from nodeyard.plan.explain import render_answers
    from nodeyard.process import logs

    logs.configure("error")
    kind, slash, name = subject.partition("/")
    if not (kind and slash and name):
        raise UsageFailure(f'"{subject}" is not of the form KIND/NAME, for example node/n1')
    cluster.refuse_beside_bundle(bundle, kubeconfig, context)
    if bundle is not None:
        with cluster.one_line_errors():
            explanation = signals.run(explain_from(bundle, kind, name, namespace or "default"))
    else:
        config = cluster.load(kubeconfig, context)
        with cluster.one_line_errors(config):
            explanation = signals.run(explain(config, kind, name, namespace or config.namespace))
    if not explanation.answers:
        raise Failure(f"no capability has anything to say about {subject}")
    if html is not None:
        try:
            most = None if full else CANDIDATES
            html.write_text(render_page(explanation.why, explanation.headline, most=most), encoding="utf-8")
        except OSError as error:
            raise Failure(f"--html: {error.filename}: {error.strerror or error}") from None
        typer.echo(f"wrote {html}", err=True)
    if output is Format.JSON:
        typer.echo(explanation.headline, err=True)
        typer.echo(render_json(explanation.why), nl=False)
    elif html is None:
        typer.echo(explanation.headline)
        style = find_style(color, is_full=full)
        echo(render_answers(explanation.answers, style), style)


def render_json(why: Why) -> str:
    import msgspec

    from nodeyard.plan.model import API_VERSION

    answer = {"apiVersion": API_VERSION, "kind": "Why", **msgspec.to_builtins(why)}
    return msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n"


async def explain(config: Config, kind: str, name: str, namespace: str) -> Explanation:
    """Explain an object of the cluster."""
    from nodeyard.app.capabilities import CAPABILITIES
    from nodeyard.cli import cluster

    async with cluster.connect(config) as client:
        operators = (await cluster.find_running(client, CAPABILITIES))[0]
        source = _Source(client, operators, lambda capabilities: cluster.plan_dry(client, capabilities))
        return await _explain(source, kind, name, namespace)


async def explain_from(bundle: Path, kind: str, name: str, namespace: str) -> Explanation:
    """Explain an object as it was when the bundle was gathered."""
    from nodeyard.app.replay import replaying
    from nodeyard.bundle.reader import read_bundle
    from nodeyard.cli import cluster

    async with replaying(read_bundle(bundle)) as replay:
        source = _Source(
            replay.client,
            replay.operators,
            lambda capabilities: cluster.replay_dry(replay, capabilities),
            lambda explained: cluster.drop_hidden_answers(replay, explained),
            f"{cluster.describe_bundle(replay)} ",
        )
        return await _explain(source, kind, name, namespace)


@dataclass(frozen=True)
class _Source:
    """The cluster or the bundle that is asked."""

    client: Client
    operators: Operators
    plan_dry: Callable[[Sequence[Capability]], AbstractAsyncContextManager[DryPlanner]]
    select: Callable[[Explained], Explained] = lambda explained: explained
    """Drops the decisions that would be invented."""
    prefix: str = ""


async def _explain(source: _Source, kind: str, name: str, namespace: str) -> Explanation:
    from nodeyard.app.capabilities import CAPABILITIES
    from nodeyard.app.explanations import BadName, compose_answers, find_subject, why_to_wire
    from nodeyard.cli import cluster
    from nodeyard.dashboard.wire import Why
    from nodeyard.plan.brake import Limit

    operators = source.operators
    run = operators.select(CAPABILITIES)
    try:
        ref, obj = await find_subject(source.client, CAPABILITIES, kind, name, namespace)
    except BadName as error:
        raise UsageFailure(str(error)) from None
    others = [each for each in CAPABILITIES if each not in run]
    # An object that only a capability without an operator knows is explained too, as NotServed.
    unserved = [each for each in others if _knows(each, kind, ref)]
    answers: list[Answer] = []
    why = Why(object=ref)
    for capabilities in filter(None, (run, unserved)):
        async with source.plan_dry(capabilities) as planner:
            await planner.watch_kinds_of(ref)
            explained = source.select(planner.why(ref, operators.limits()))
            answers = compose_answers(explained, operators, ref, obj)
            why = why_to_wire(answers, explained, planner.views, ref, obj, most=None)
            cluster.warn_unreachable(planner, {each.by for each in answers})
        if answers:
            break
    if not (answers or obj):
        raise Failure(f"{kind}/{name}: {ref} does not exist")
    headline = f"{source.prefix}{operators.describe(Limit(), [each.name for each in others])}"
    return Explanation(headline, answers, why)


def _knows(capability: Capability, word: str, ref: ObjectRef) -> bool:
    """Return whether the object is of a group, or asked for by an alias, of the capability."""
    group = ref.api_version.rpartition("/")[0]
    return word in capability.explain.aliases or group in {kind.resource.group for kind in capability.kinds}
