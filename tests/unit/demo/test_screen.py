"""The output of the demo: bars, and commands that can be pasted."""

import shlex
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from nodeyard.cli.failures import Failure
from nodeyard.demo.screen import Bar, Screen, find_program


@pytest.fixture
def screen():
    made = Screen(Path("/tmp/a folder/kubeconfig"), pause=0.0, interval=0.0)
    made.console = Console(file=StringIO(), width=80, highlight=False)
    return made


def printed(screen):
    return screen.console.file.getvalue()


def readings(*answers):
    left = list(answers)

    async def read():
        return [left.pop(0) if len(left) > 1 else left[0]]

    return read


def test_a_command_is_one_quoted_line(screen):
    screen.offer("nodeyard", "approve", "abc", "--reason", "the demo's own")
    (line,) = printed(screen).splitlines()
    variable, program, *arguments = shlex.split(line)
    assert variable == "KUBECONFIG=/tmp/a folder/kubeconfig"
    assert Path(program).is_absolute()
    assert arguments == ["approve", "abc", "--reason", "the demo's own"]


def test_a_program_that_is_not_installed_is_not_offered(screen):
    screen.offer("no-such-program-anywhere")
    assert printed(screen) == ""


def test_a_program_beside_the_interpreter_is_preferred(tmp_path, monkeypatch):
    program = tmp_path / "nodeyard"
    program.touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_program("nodeyard") == str(program)


async def test_bars_are_followed_until_they_are_complete(screen):
    await screen.follow(readings(Bar("pods evicted", 0, 4), Bar("pods evicted", 3, 4), Bar("pods evicted", 4, 4)), 60)
    assert "pods evicted" in printed(screen)
    assert "4/4" in printed(screen)


async def test_pending_work_is_named_on_timeout(screen):
    with pytest.raises(Failure, match="pods evicted: 1 of 4"):
        await screen.follow(readings(Bar("pods evicted", 1, 4)), 0.0)


async def test_steps_are_numbered(screen):
    await screen.begin_step("A node fails", "It loses power.")
    await screen.begin_step("A pool drains", "It is removed.")
    assert [line for line in printed(screen).splitlines() if line[:1].isdigit()] == [
        "1. A node fails",
        "2. A pool drains",
    ]
