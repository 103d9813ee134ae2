"""Child processes of tests: each with its own log and session, none outlives the test process.

The kernel sends the parent-death signal when the *thread* that started the child ends. So one thread that lives as long
as the interpreter starts all children, and callers may be on any thread.
"""

from __future__ import annotations

import atexit
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from nodeyard.testing import die_with_parent
from nodeyard.testing.wait import until

GRACE = 20.0


class Process:
    """A program that can be started, stopped, killed and restarted; its output is appended to `log`."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self._popen: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def start(self, command: Sequence[str | Path]) -> None:
        if self.is_alive():
            raise RuntimeError(f"{self.name} is already running")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._log_start = output.tell()
            self._popen = _starter().start([str(part) for part in command], output.fileno())
        _started.add(self)

    @property
    def pid(self) -> int | None:
        return self._popen.pid if self._popen else None

    def is_alive(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._popen.poll() if self._popen else None

    def stop(self, grace: float = GRACE) -> None:
        """Send SIGTERM; kill the process if it does not end in time."""
        self.signal(signal.SIGTERM)
        try:
            until(lambda: not self.is_alive(), f"{self.name} ends", grace)
        except TimeoutError:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL and wait until the process is gone."""
        self.signal(signal.SIGKILL)
        if self._popen:
            self._popen.wait()

    def signal(self, number: signal.Signals) -> None:
        if self._popen and self._popen.poll() is None:
            self._popen.send_signal(number)

    def output(self) -> str:
        """Return the output since the last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def tail(self, lines: int = 40) -> str:
        if not self.log.exists():
            return ""
        with self.log.open(errors="replace") as log:
            return "".join(deque(log, maxlen=lines))


class _Starter:
    """The thread that starts all child processes."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._requests: queue.SimpleQueue[tuple[Future[subprocess.Popen[bytes]], list[str], int]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="nodeyard-process-starter", daemon=True).start()

    def start(self, command: list[str], output: int) -> subprocess.Popen[bytes]:
        started: Future[subprocess.Popen[bytes]] = Future()
        self._requests.put((started, command, output))
        return started.result()

    def _run(self) -> None:
        while True:
            started, command, output = self._requests.get()
            try:
                started.set_result(_spawn(command, output))
            except Exception as error:
                started.set_exception(error)


def _spawn(command: list[str], output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C goes to the test runner only, which then stops the child
    )


_lock = threading.Lock()
_current_starter: _Starter | None = None
_started: weakref.WeakSet[Process] = weakref.WeakSet()


def _starter() -> _Starter:
    global _current_starter
    with _lock:
        if _current_starter is None or _current_starter.owner != os.getpid():  # a fork has no threads
            _current_starter = _Starter()
        return _current_starter


@atexit.register
def _kill_all() -> None:
    for process in list(_started):
        process.signal(signal.SIGKILL)
