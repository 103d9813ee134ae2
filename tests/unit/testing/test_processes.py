"""Processes of tests: logs, exit codes, and their end with the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeyard.testing.processes import Process
from nodeyard.testing.wait import until

STAYS = "import signal, sys; print('here', flush=True); signal.pause()"
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True)\nwhile 1: signal.pause()"
)
PARENT = f"""
import pathlib, signal, sys
from nodeyard.testing.processes import Process
process = Process("child", pathlib.Path(sys.argv[1]))
process.start([sys.executable, "-c", {STAYS!r}])
print(process.pid, flush=True)
"""


def is_running(pid: int) -> bool:
    """Return whether the process is alive; a zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process("child", tmp_path / "logs" / "child.log")
    yield process
    process.kill()


def start(process: Process, code: str = STAYS) -> int:
    process.start([sys.executable, "-c", code])
    until(lambda: "here" in process.output() or not process.is_alive(), "the child speaks")
    assert process.pid is not None
    return process.pid


def test_its_output_is_in_its_log(process: Process) -> None:
    start(process, "import sys; print('here'); print('and there', file=sys.stderr)")
    until(lambda: not process.is_alive(), "the child ends")
    assert process.exit_code == 0
    assert sorted(process.tail().splitlines()) == ["and there", "here"]
    assert process.tail(1).count("\n") == 1


def test_the_output_of_an_earlier_run_stays_in_the_log_but_is_not_of_this_run(process: Process) -> None:
    start(process, "print('here at first')")
    until(lambda: not process.is_alive(), "the child ends")
    start(process, "print('here at last')")
    assert process.tail().splitlines() == ["here at first", "here at last"]
    assert process.output() == "here at last\n"


def test_it_is_stopped_by_asking(process: Process) -> None:
    start(process)
    process.stop()
    assert process.exit_code == -signal.SIGTERM


def test_it_is_killed_when_it_does_not_listen(process: Process) -> None:
    start(process, STUBBORN)
    process.stop(grace=0.1)
    assert process.exit_code == -signal.SIGKILL


def test_stopping_a_stopped_process_does_nothing(process: Process) -> None:
    process.stop()
    process.kill()
    assert process.exit_code is None


def test_it_cannot_be_started_twice(process: Process) -> None:
    start(process)
    with pytest.raises(RuntimeError, match="child is already running"):
        process.start(["/bin/true"])


def test_a_program_that_does_not_exist_ends_at_once(process: Process) -> None:
    process.start(["/no/such/program"])
    until(lambda: not process.is_alive(), "the child ends")
    assert process.exit_code
    assert "No such file or directory" in process.tail()


def test_it_outlives_the_thread_that_started_it(process: Process) -> None:
    thread = threading.Thread(target=start, args=(process,))
    thread.start()
    until(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists(), "the kernel has ended the thread")
    assert process.is_alive()


@pytest.mark.parametrize(
    ("ending", "code"),
    [("signal.pause()", -signal.SIGKILL), ("sys.exit(3)", 3), ("raise KeyboardInterrupt", -signal.SIGINT)],
    ids=["killed", "exits", "interrupted"],
)
def test_it_does_not_outlive_its_parent(tmp_path: Path, ending: str, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{PARENT}{ending}", tmp_path / "log"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        if ending == "signal.pause()":
            assert is_running(child)
            os.kill(parent.pid, signal.SIGKILL)
        assert parent.wait(30) == code
    until(lambda: not is_running(child), "the child is gone")


def test_it_is_not_hit_by_the_terminals_interrupt(process: Process) -> None:
    assert os.getsid(start(process)) != os.getsid(0)
