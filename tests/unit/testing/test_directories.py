"""Directories of control planes, and those of killed processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nodeyard.testing import directories
from nodeyard.testing.directories import Directory

ABANDON = (
    "import os; from nodeyard.testing.directories import Directory; print(Directory().path, flush=True); os._exit(1)"
)


@pytest.fixture(autouse=True)
def _a_temporary_directory_of_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(directories.tempfile, "tempdir", str(tmp_path))


def test_a_temporary_one_is_removed_when_closed() -> None:
    directory = Directory()
    (directory.path / "data").write_text("data")
    directory.close()
    directory.close()
    assert not directory.path.exists()


def test_a_given_one_is_kept_and_can_be_opened_again(tmp_path: Path) -> None:
    for content in ("first", "second"):
        directory = Directory(tmp_path / "given")
        (directory.path / content).write_text(content)
        directory.close()
    assert {"first", "second"} <= {path.name for path in (tmp_path / "given").iterdir()}


def test_one_directory_cannot_be_opened_twice_at_once(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "given")
    with pytest.raises(BlockingIOError):
        Directory(tmp_path / "given")
    directory.close()


def test_directories_of_dead_processes_are_removed_by_the_next() -> None:
    left = Path(subprocess.run([sys.executable, "-c", ABANDON], capture_output=True, text=True).stdout.strip())
    assert left.is_dir()
    directory = Directory()
    assert not left.exists()
    directory.close()


def test_directories_of_living_processes_are_kept() -> None:
    used = Directory()
    directories.sweep()
    assert used.path.is_dir()
    used.close()
