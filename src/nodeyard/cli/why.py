"""`nodeyard why`: explains why an object is as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli import CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.cli.failures import Failure, UsageFailure

if TYPE_CHECKING:
    from nodeyard.app.dry_planner import DryPlanner
    from nodeyard.app.operators import Operators
    from nodeyard.client.api import Client
    from nodeyard.client.config import Config
    from nodeyard.kube.json import Object
    from nodeyard.kube.objects import Condition
    from nodeyard.plan.explain import Answer
    from nodeyard.plan.model import ObjectRef
    from nodeyard.runtime.capability import Capability


def why(
    subject: Annotated[
        str,
        typer.Argument(
            help="The object, with kinds and short names as in kubectl, for example node/n1.",
            metavar="KIND[.GROUP]/NAME",
        ),
    ],
    namespace: Annotated[
        str,
        typer.Option("-n", "--namespace", help="Namespace of the object; default the kubeconfig's.", metavar="NS"),
    ] = "",
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
) -> None:
    """Explain an object: which rule applied, which candidates were rejected and why, and what would change it.

    The answer joins the decision with the object's conditions, its held plans and the running operator, which the
    first line names.
    """
    from nodeyard.cli import cluster, signals
    from nodeyard.plan.explain import render_answers
    from nodeyard.process import logs

    logs.configure("error")
    kind, slash, name = subject.partition("/")
    if not (kind and slash and name):
        raise UsageFailure(f'"{subject}" is not of the form KIND/NAME, for example node/n1')
    config = cluster.load(kubeconfig, context)
    with cluster.one_line_errors(config):
        headline, answers = signals.run(explain(config, kind, name, namespace or config.namespace))
    if not answers:
        raise Failure(f"no capability has anything to say about {subject}")
    typer.echo(headline)
    typer.echo(render_answers(answers), nl=False)


async def explain(config: Config, kind: str, name: str, namespace: str) -> tuple[str, list[Answer]]:
    """Return the line that names the running operator, and the answer of each capability about the object."""
    from nodeyard.app.capabilities import CAPABILITIES
    from nodeyard.cli import cluster
    from nodeyard.plan.brake import Limit

    async with cluster.connect(config) as client:
        operators, run = await cluster.find_running(client, CAPABILITIES)
        ref, obj = await _find_alias(client, CAPABILITIES, kind, name) or await _find(client, kind, name, namespace)
        others = [each for each in CAPABILITIES if each not in run]
        # An object that only a capability without an operator knows is explained too, as NotServed.
        unserved = [each for each in others if _knows(each, kind, ref)]
        answers: list[Answer] = []
        for capabilities in filter(None, (run, unserved)):
            async with cluster.plan_dry(client, capabilities) as planner:
                await planner.watch_kinds_of(ref)
                answers = compose_answers(planner, operators, ref, obj)
                cluster.warn_unreachable(planner, {each.by for each in answers})
            if answers:
                break
        if not (answers or obj):
            raise Failure(f"{kind}/{name}: {ref} does not exist")
        return operators.describe(Limit(), [each.name for each in others]), answers


def _knows(capability: Capability, word: str, ref: ObjectRef) -> bool:
    """Return whether the object is of a group, or asked for by an alias, of the capability."""
    group = ref.api_version.rpartition("/")[0]
    return word in capability.explain.aliases or group in {kind.resource.group for kind in capability.kinds}


def compose_answers(planner: DryPlanner, operators: Operators, ref: ObjectRef, obj: Object) -> list[Answer]:
    """Join each decision about an object with its conditions, held plans and the operator of the capability."""
    from nodeyard.plan.explain import compose

    conditions = conditions_of(obj)
    generation = int((obj.get("metadata") or {}).get("generation") or 0)
    is_known = not operators.error
    return [
        compose(
            dry_plan.capability.name,
            decision,
            fine=dry_plan.capability.explain.healthy,
            conditions=conditions if _is_same(decision.object, ref) else (),
            generation=generation,
            held=dry_plan.held_for(decision.object),
            pause=dry_plan.pause,
            is_served=not is_known or dry_plan.capability.name in operators.running,
        )
        for dry_plan, decision in planner.why(ref, operators.limits())
    ]


def conditions_of(obj: Object) -> Sequence[Condition]:
    """Return status.conditions of an object; entries that do not decode are skipped."""
    import msgspec

    from nodeyard.kube.objects import Condition

    found = (obj.get("status") or {}).get("conditions")
    conditions = []
    for each in found if isinstance(found, list) else ():
        try:
            conditions.append(msgspec.convert(each, Condition))
        except msgspec.ValidationError:
            continue
    return conditions


def _is_same(one: ObjectRef, other: ObjectRef) -> bool:
    return (one.kind, one.namespace, one.name, one.cluster) == (other.kind, other.namespace, other.name, other.cluster)


async def _find_alias(
    client: Client, capabilities: Iterable[Capability], word: str, name: str
) -> tuple[ObjectRef, Object] | None:
    """Resolve an alias of a capability, such as pool/CLUSTER/NAME; None if the word is no alias.

    The object is empty if it does not exist yet.
    """
    from nodeyard.client.errors import NotFound
    from nodeyard.runtime.annotations import ref_of

    aliases = (each.explain.aliases for each in capabilities)
    alias = next((found[word] for found in aliases if word in found), None)
    if alias is None:
        return None
    refs = alias.parse(name)
    if not refs:
        raise Failure(f'"{name}" names no {word}; write it as {word}/{alias.syntax}')
    for ref in refs:
        resource = (await client.catalog()).by_kind(ref.api_version, ref.kind)
        try:
            if resource is not None:
                found = await client.get(resource.resource, ref.name, ref.namespace)
                return ref_of(found, ref.api_version, ref.kind), found
        except NotFound:
            continue
    return refs[0], {}


async def _find(client: Client, kind: str, name: str, namespace: str) -> tuple[ObjectRef, Object]:
    """Get an object. Raises UnknownResource if the kind is unknown or ambiguous, NotFound if the object is missing."""
    from nodeyard.runtime.annotations import ref_of

    resource = (await client.catalog()).find(kind).resource
    found = await client.get(resource, name, namespace if resource.namespaced else "")
    return ref_of(found, resource.api_version, resource.kind), found
