"""Puts the verbs together, and turns what goes wrong into one line and exit code 1."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from nodeyard.cli import apiserver, approve, crds, demo, plan, version, why
from nodeyard.cli import run as operator
from nodeyard.cli.failures import Failure

app = typer.Typer(
    name="nodeyard",
    help="One operator for a whole Kubernetes node fleet: every decision is a plan that can be read.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(operator.run)
app.command("plan")(plan.plan)
app.command("why")(why.why)
app.command("approve")(approve.approve)
app.command("apiserver")(apiserver.apiserver)
app.command("crds")(crds.crds)
app.command("demo")(demo.demo)
app.command("version")(version.version)


def run() -> None:
    try:
        app(prog_name=_program(sys.argv[0]))
    except Failure as failure:
        print(f"nodeyard: {failure}", file=sys.stderr)
        sys.exit(1)


def _program(invoked: str) -> str:
    """As kubectl's plugin it is called in two words."""
    return "kubectl nodeyard" if Path(invoked).name.startswith("kubectl") else "nodeyard"
