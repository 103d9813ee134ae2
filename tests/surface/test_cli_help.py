"""The command line's help is public: docs/reference/cli.md has all of it."""

import pytest
from typer.testing import CliRunner

from nodeyard.cli.app import app
from nodeyard.process.version import VERSION


def test_a_plan_has_exactly_these_verbs():
    result = CliRunner().invoke(app, ["--help"], prog_name="nodeyard")
    listed = {line.split()[0] for line in result.output.partition("Commands:")[2].splitlines() if line.strip()}
    assert listed == {
        "run",
        "plan",
        "why",
        "approve",
        "status",
        "dashboard",
        "gather",
        "apiserver",
        "rehearse",
        "crds",
        "demo",
        "version",
    }


def test_the_version_is_an_option_and_a_command():
    option, command = (CliRunner().invoke(app, [each], prog_name="nodeyard") for each in ("--version", "version"))
    assert option.exit_code == 0
    assert option.output == command.output
    assert option.output.startswith(f"nodeyard {VERSION} ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_common_shells_is_shown(shell, monkeypatch):
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: shell)
    result = CliRunner().invoke(app, ["--show-completion"], prog_name="nodeyard")
    assert result.exit_code == 0
    assert f"_NODEYARD_COMPLETE=complete_{shell}" in result.output


def test_an_unknown_verb_is_refused():
    result = CliRunner().invoke(app, ["fly"], prog_name="nodeyard")
    assert result.exit_code == 64
    assert "No such command 'fly'" in result.output


@pytest.mark.parametrize("arguments", [["apiserver"], ["apiserver", "--port", "70000", "--kubeconfig-out", "x"]])
def test_missing_and_wrong_options_are_named(arguments):
    result = CliRunner().invoke(app, arguments, prog_name="nodeyard")
    assert result.exit_code == 64
    assert "--port" in result.output
