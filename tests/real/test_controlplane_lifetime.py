"""The control plane never outlives the process that started it."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeyard.testing import ControlPlane
from nodeyard.testing.wait import until

pytestmark = pytest.mark.real

START = """
import signal, threading
from nodeyard.testing import ControlPlane
plane = ControlPlane()
thread = threading.Thread(target=plane.start)
thread.start()
thread.join()
print(plane.directory, *(part.process.pid for part in plane.components.values()), flush=True)
signal.pause()
"""
INTERRUPTED = """
import os, signal
import pytest
from nodeyard.testing import ControlPlane

def test_interrupted():
    with ControlPlane() as plane:
        print("PIDS", *(part.process.pid for part in plane.components.values()), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def another_process() -> Iterator[tuple[subprocess.Popen[str], Path, list[int]]]:
    """A Python process that started a control plane from a thread that has ended."""
    with subprocess.Popen([sys.executable, "-c", START], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        directory, *pids = parent.stdout.readline().split()
        yield parent, Path(directory), [int(pid) for pid in pids]
        parent.kill()


@pytest.fixture
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a temporary directory in which control planes of other processes do not remove our leftovers."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.usefixtures("_apart")
def test_kill_9_of_the_test_process_ends_all_of_it_and_the_next_one_cleans_up() -> None:
    with another_process() as (parent, directory, pids):
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        until(lambda: not any(is_running(pid) for pid in pids), "etcd and kube-apiserver are gone")
    assert directory.exists()
    ControlPlane().close()
    assert not directory.exists()


def test_an_interrupt_of_pytest_ends_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "test_interrupted.py").write_text(INTERRUPTED)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    # A shell that runs us in the background makes us and our children ignore SIGINT.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=heed)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    line = next(line for line in done.stdout.splitlines() if "PIDS" in line)
    pids = [int(pid) for pid in line.partition("PIDS")[2].split()]
    assert len(pids) == 2
    until(lambda: not any(is_running(pid) for pid in pids), "etcd and kube-apiserver are gone")
