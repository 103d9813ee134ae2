"""Assembles the commands and turns a Failure into one line on stderr and an exit code: 1, or 64 for a usage error."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Annotated

import typer

from nodeyard.cli import approve, crds, dashboard, gather, plan, status, why
from nodeyard.cli import run as operator
from nodeyard.cli.failures import USAGE_ERROR, Failure
from nodeyard.cli.testbed import add_testbed_commands
from nodeyard.process.version import VERSION

# Base class of typer's usage errors. Its exit code 2 would collide with "changes pending" of `nodeyard plan`.
_usage_error = typer.BadParameter.__mro__[1]
_usage_error.exit_code = USAGE_ERROR  # type: ignore[attr-defined]

app = typer.Typer(
    name="nodeyard",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(operator.run)
app.command("plan")(plan.plan)
app.command("why")(why.why)
app.command("approve")(approve.approve)
app.command("status")(status.status)
app.command("dashboard")(dashboard.dashboard)
app.command("gather")(gather.gather)
app.command("crds")(crds.crds)


@app.command()
def version() -> None:
    """Print the version."""
    print(f"nodeyard {VERSION} (Python {platform.python_version()})")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


@app.callback()
def main(
    _: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """One operator for a Kubernetes node fleet: read every plan before it runs, and ask why afterwards."""


add_testbed_commands(app)


def run() -> None:
    try:
        # kubectl calls a plugin by its file name; help shows the two words that a person types.
        is_plugin = Path(sys.argv[0]).name.startswith("kubectl")
        app(prog_name="kubectl nodeyard" if is_plugin else "nodeyard")
    except Failure as failure:
        print(f"nodeyard: {failure}", file=sys.stderr)
        sys.exit(failure.exit_code)
