"""Commands and features of the distribution nodeyard-testbed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import typer

from nodeyard.cli.failures import Failure

COMMANDS: Final = {
    "apiserver": ("nodeyard.apiserver", "Serve the Kubernetes API from memory, for kubectl, tests and demos."),
    "demo": ("nodeyard.demo", "Run a simulated fleet on the embedded API server."),
    "rehearse": ("nodeyard.rehearsal", "Try a change on a twin of the cluster, and print what happens."),
}


def add_testbed_commands(app: typer.Typer) -> None:
    """Register the testbed's commands; without the testbed each only prints what to install."""
    for name, (package, summary) in COMMANDS.items():
        if find_spec(package) is None:
            app.command(name, help=f"{summary} Needs the testbed.", context_settings=_ANY_ARGUMENTS)(
                _command_that_fails(name)
            )
        else:
            app.command(name)(getattr(import_module(f"{package}.command"), name))


def load_testbed(module: str, feature: str) -> Any:
    """Import a module of the testbed, or fail with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise Failure(_remedy(feature)) from None


_ANY_ARGUMENTS: Final = {"allow_extra_args": True, "ignore_unknown_options": True}


def _command_that_fails(name: str) -> Any:
    def command() -> None:
        raise Failure(_remedy(f"nodeyard {name}"))

    return command


def _remedy(feature: str) -> str:
    return f"{feature} needs the testbed, which is not installed: pip install 'nodeyard[testbed]'"
