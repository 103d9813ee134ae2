"""`nodeyard rehearse`: what will happen over the next hours if a change is made."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodeyard.cli import CONTEXT_HELP, KUBECONFIG_HELP
from nodeyard.cli.failures import Failure, UsageFailure

if TYPE_CHECKING:
    from nodeyard.rehearsal.engine import Rehearsal
    from nodeyard.rehearsal.timeline import Timeline

DOES_NOT_CONVERGE = 2


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    HTML = "html"


def rehearse(
    files: Annotated[
        list[Path] | None,
        typer.Option("-f", "--file", help="File, directory or - (stdin) with the change.", metavar="FILE"),
    ] = None,
    scenario: Annotated[
        Path | None, typer.Option(help="Fleet, events, faults and assertions in YAML.", metavar="FILE")
    ] = None,
    source: Annotated[
        str, typer.Option("--from", help="Bundle, or live for the configured cluster.", metavar="BUNDLE|live")
    ] = "",
    kubeconfig: Annotated[Path | None, typer.Option(help=KUBECONFIG_HELP, metavar="FILE")] = None,
    context: Annotated[str, typer.Option(help=CONTEXT_HELP, metavar="NAME")] = "",
    capabilities: Annotated[
        str, typer.Option(help="Capabilities to rehearse; default all that the cluster serves.", metavar="A,B")
    ] = "",
    until: Annotated[
        str, typer.Option(help="End: converged (at most 24h), or a duration such as 2h.", metavar="WHEN")
    ] = "",
    fault: Annotated[
        list[str] | None,
        typer.Option(
            help="zone-lost=ZONE, boot-fails=RATE, leaf-silent=LEAF or slow-api=DELAY, with @START and +DURATION.",
            metavar="FAULT",
        ),
    ] = None,
    assertion: Annotated[
        list[str] | None, typer.Option("--assert", help="A comparison, such as 'evicted < 50'.", metavar="TEXT")
    ] = None,
    profile: Annotated[str, typer.Option(help="Delays: fast or typical.", metavar="NAME")] = "",
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Take delays from the timestamps of the cluster where it shows them.")
    ] = False,
    max_disruption: Annotated[str, typer.Option(help="The operator's limit; default 25,10%.", metavar="N,P%")] = "",
    approve: Annotated[bool, typer.Option("--approve", help="Approve held plans, to see how it goes on.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the delays; default 0.", metavar="N")] = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="Output format.")] = Format.TEXT,
) -> None:
    """Try a change on a twin of the cluster, and print the timeline of what happens.

    The twin is an API server in this process with the objects of the cluster, simulated machines, kubelets and
    controllers, and the operator itself. Its time jumps, so hours take seconds. Nothing is written to the cluster. Exit
    code: 0 it converges and all assertions hold; 2 it does not; 1 error; 64 usage error.
    """
    from nodeyard.process import logs
    from nodeyard.rehearsal.engine import RehearsalError
    from nodeyard.rehearsal.options import OptionError, Options, prepare

    logs.configure("error")
    options = Options(
        files=tuple(files or ()),
        scenario=scenario,
        source=source,
        kubeconfig=kubeconfig,
        context=context,
        capabilities=capabilities,
        until=until,
        faults=tuple(fault or ()),
        assertions=tuple(assertion or ()),
        profile=profile,
        calibrates=calibrate,
        max_disruption=max_disruption,
        approves=approve,
        seed=seed,
    )
    try:
        timeline = _run(prepare(options))
    except OptionError as error:
        raise UsageFailure(str(error)) from None
    except RehearsalError as error:
        raise Failure(str(error)) from None
    typer.echo(_render(timeline, output), nl=False)
    if not timeline.passes:
        raise typer.Exit(DOES_NOT_CONVERGE)


def _run(rehearsal: Rehearsal) -> Timeline:
    from nodeyard.rehearsal.engine import rehearse
    from nodeyard.rehearsal.virtual_loop import run

    return run(rehearse(rehearsal))


def _render(timeline: Timeline, output: Format) -> str:
    from nodeyard.rehearsal.html import render_html
    from nodeyard.rehearsal.text import render_text
    from nodeyard.rehearsal.timeline import to_json

    if output is Format.JSON:
        return to_json(timeline).decode()
    return render_html(timeline) if output is Format.HTML else render_text(timeline)
