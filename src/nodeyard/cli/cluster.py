"""The cluster a verb speaks to, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import typer

from nodeyard.app.approvals import NotHeld
from nodeyard.app.capabilities import choose
from nodeyard.app.files import FileError
from nodeyard.app.inspection import Inspection
from nodeyard.cli.failures import Failure
from nodeyard.client.aio import AioTransport
from nodeyard.client.api import Client
from nodeyard.client.config import Config
from nodeyard.client.errors import ClientError
from nodeyard.client.kubeconfig import load_config
from nodeyard.runtime.capability import Capability

T = TypeVar("T")


@contextmanager
def failing_in_one_line() -> Iterator[None]:
    """What can be wrong with a cluster or a file, as a Failure; a fault of our own keeps its traceback."""
    try:
        yield
    except (ClientError, FileError, NotHeld, OSError) as error:
        raise Failure(str(error)) from None


def option(name: str, parse: Callable[[str], T], text: str) -> T:
    """The value of an option; a Failure that names it where it has none."""
    try:
        return parse(text)
    except ValueError as error:
        raise Failure(f"{name}: {error}") from None


def configuration(kubeconfig: Path | None) -> Config:
    with failing_in_one_line():
        return load_config(kubeconfig)


@asynccontextmanager
async def connected(config: Config) -> AsyncIterator[Client]:
    client = Client(AioTransport(config))
    try:
        yield client
    finally:
        await client.close()


def chosen(names: str) -> tuple[Capability, ...]:
    """`a,b`; all of them where it is empty."""

    def parse(text: str) -> tuple[Capability, ...]:
        return choose([each.strip() for each in text.split(",") if each.strip()])

    return option("--capabilities", parse, names)


def tell_unreached(inspection: Inspection) -> None:
    """On stderr: what is printed was planned without these clusters."""
    for each in inspection.unreached:
        typer.echo(str(each), err=True)


async def served(client: Client, capabilities: Sequence[Capability]) -> tuple[list[Capability], list[str]]:
    """Those whose kinds the server has, and the kinds that it lacks."""
    catalog = await client.catalog()
    missing = {
        each.name: [
            str(kind.resource)
            for kind in each.kinds
            if catalog.by_kind(kind.resource.api_version, kind.resource.kind) is None
        ]
        for each in capabilities
    }
    lacking = [kind for kinds in missing.values() for kind in kinds]
    return [each for each in capabilities if not missing[each.name]], lacking
