"""Connects a command to its cluster, and turns errors of cluster and files into one line with a remedy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import typer

from nodeyard.app.approvals import NotHeld
from nodeyard.app.capabilities import choose
from nodeyard.app.dry_planner import DryPlanner, ReadForbidden, dry_planning_readable
from nodeyard.app.files import FileError
from nodeyard.app.operators import Operators, find_operators
from nodeyard.app.replay import Replay
from nodeyard.bundle.model import BundleError
from nodeyard.cli.failures import Failure, UsageFailure
from nodeyard.client.api import Client
from nodeyard.client.config import Config
from nodeyard.client.errors import ClientError, Forbidden, TransportError, Unauthorized
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.plan.model import Decision
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.dry_plan import DryPlan

T = TypeVar("T")


@contextmanager
def one_line_errors(config: Config | None = None) -> Iterator[None]:
    """Turn errors of a cluster or a file into a Failure. A bug of ours keeps its traceback."""
    try:
        yield
    except (BundleError, ClientError, FileError, NotHeld, ReadForbidden, OSError) as error:
        raise Failure(_add_remedy(error, config)) from None


def _add_remedy(error: Exception, config: Config | None) -> str:
    text = " ".join(str(error).split())
    where = f"{config.server} ({config.source})" if config is not None and config.source else ""
    if isinstance(error, Unauthorized):
        return f"{where or 'the server'} refused the credentials: {text}; renew them, or select others with --context"
    if isinstance(error, TransportError):
        return f"{where or 'the server'} does not answer: {text}; check the server, or select another with --context"
    if isinstance(error, (Forbidden, ReadForbidden)):
        return f"{text}; ask for the ClusterRole nodeyard-reader, or select another account with --context"
    return text


def parse_option(name: str, parse: Callable[[str], T], text: str) -> T:
    """Parse the value of an option. Raises a UsageFailure that names the option."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageFailure(f"{name}: {error}") from None


def load(kubeconfig: Path | None, context: str = "") -> Config:
    """Load the cluster's configuration. Raises a Failure if there is none."""
    with one_line_errors():
        return load_config(kubeconfig, context=context)


@asynccontextmanager
async def connect(config: Config) -> AsyncIterator[Client]:
    client = Client(HttpTransport(config))
    try:
        yield client
    finally:
        await client.close()


def parse_capabilities(names: str) -> tuple[Capability, ...]:
    """Parse `a,b`; an empty text means all capabilities."""

    def parse(text: str) -> tuple[Capability, ...]:
        return choose([each.strip() for each in text.split(",") if each.strip()])

    return parse_option("--capabilities", parse, names)


@asynccontextmanager
async def plan_dry(client: Client, capabilities: Sequence[Capability]) -> AsyncIterator[DryPlanner]:
    """Open a DryPlanner. Capabilities without CRDs or rights are skipped, each with one line on stderr."""
    served = await select_served(client, capabilities)
    async with dry_planning_readable(client, served) as planner:
        for name, reason in planner.skipped.items():
            typer.echo(f"{name}: skipped: {reason}", err=True)
        yield planner


@asynccontextmanager
async def replay_dry(replay: Replay, capabilities: Sequence[Capability]) -> AsyncIterator[DryPlanner]:
    """Open a DryPlanner on a bundle, like `plan_dry` on a cluster."""
    served = await select_served(replay.client, capabilities)
    async with replay.planner(served) as planner:
        for name, reason in planner.skipped.items():
            typer.echo(f"{name}: skipped: {reason}", err=True)
        yield planner


def describe_bundle(replay: Replay) -> str:
    return f"Bundle of {replay.created_at:%Y-%m-%d %H:%M:%S} UTC."


def drop_hidden(replay: Replay, dry_plans: Sequence[DryPlan]) -> list[DryPlan]:
    """Drop the plans that a hash would falsify, with one line on stderr for each."""
    hidden = [each for each in dry_plans if (each.capability.name, each.key) in replay.hidden]
    for each in hidden:
        typer.echo(str(replay.hidden[each.capability.name, each.key]), err=True)
    return [each for each in dry_plans if each not in hidden]


def drop_hidden_answers(
    replay: Replay, explained: Sequence[tuple[DryPlan, Decision]]
) -> list[tuple[DryPlan, Decision]]:
    """Drop the decisions of such plans."""
    shown = {id(each) for each in drop_hidden(replay, list({id(plan): plan for plan, _ in explained}.values()))}
    return [(plan, decision) for plan, decision in explained if id(plan) in shown]


def refuse_beside_bundle(bundle: Path | None, kubeconfig: Path | None, context: str) -> None:
    if bundle is not None and (kubeconfig is not None or context):
        raise UsageFailure("--from needs no cluster: leave out --kubeconfig and --context")


def warn_unreachable(planner: DryPlanner, among: Collection[str] | None = None) -> None:
    """Print on stderr which clusters the plans were made without; `among` selects capabilities."""
    for each in planner.unreachable:
        if among is None or each.capability in among:
            typer.echo(str(each), err=True)


async def find_running(client: Client, capabilities: Sequence[Capability]) -> tuple[Operators, list[Capability]]:
    """Find the operators of the cluster, and the capabilities that they run."""
    operators = await find_operators(client, capabilities)
    return operators, operators.select(capabilities)


async def select_served(client: Client, capabilities: Sequence[Capability]) -> list[Capability]:
    """Return the capabilities whose CRDs are installed."""
    catalog = await client.catalog()
    served = []
    for each in capabilities:
        resources = [kind.resource for kind in each.kinds]
        missing = [str(one) for one in resources if catalog.by_kind(one.api_version, one.kind) is None]
        if not missing:
            served.append(each)
            continue
        typer.echo(f"{each.name}: skipped: CRDs not installed: {', '.join(missing)}", err=True)
    if capabilities and not served:
        raise Failure("no capability has its CRDs on this server; install them: nodeyard crds | kubectl apply -f -")
    return served
