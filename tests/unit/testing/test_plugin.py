"""The pytest plugin in other projects: opt-in, with prefixed fixtures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OTHERS = """
import pytest

@pytest.fixture
def api():
    return "mine"

@pytest.fixture
def clock():
    return "mine too"

def test_mine(api, clock):
    assert (api, clock) == ("mine", "mine too")
"""
USING = """
def test_both(nodeyard_api, nodeyard_eventually):
    assert nodeyard_api.url.startswith("https://")

async def test_world(nodeyard_clock):
    await nodeyard_clock.advance(60)
"""


def run(directory: Path, text: str, *arguments: str) -> str:
    (directory / "test_it.py").write_text(text)
    (directory / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("arguments", [(), ("-p", "nodeyard.testing.plugin")], ids=["without", "with"])
def test_fixtures_of_the_same_name_stay_their_owners(tmp_path, arguments):
    assert "1 passed" in run(tmp_path, OTHERS, *arguments)


def test_without_being_asked_for_it_is_not_there(tmp_path):
    assert "nodeyard" not in run(tmp_path, OTHERS, "--fixtures")


def test_its_mark_is_known_and_its_fixtures_have_its_prefix(tmp_path):
    shown = run(tmp_path, USING, "-p", "nodeyard.testing.plugin", "--collect-only")
    passed = run(tmp_path, USING, "-p", "nodeyard.testing.plugin", "-m", "not real")

    assert "test_both[embedded]" in shown
    assert "test_both[real]" in shown
    assert "2 passed, 1 deselected" in passed
