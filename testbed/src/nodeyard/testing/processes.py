"""Processes that tests start: each with its own log, in its own session, and never alive after the test process.

The kernel sends the death signal when the *thread* that started a process ends, not the process. So one thread, which
lives as long as the interpreter, starts them all, and a control plane may be started from any thread.
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
    """One program, which can be started, stopped, killed and started again; its output is appended to `log`."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self._popen: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def start(self, command: Sequence[str | Path]) -> None:
        if self.is_alive():
            raise RuntimeError(f"{self.name} already runs")
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
        """Ask it to end; kill it when it does not in time."""
        self.signal(signal.SIGTERM)
        try:
            until(lambda: not self.is_alive(), f"{self.name} ends", grace)
        except TimeoutError:
            self.kill()

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        if self._popen:
            self._popen.wait()

    def signal(self, number: signal.Signals) -> None:
        if self._popen and self._popen.poll() is None:
            self._popen.send_signal(number)

    def output(self) -> str:
        """What it wrote since it was last started."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def tail(self, lines: int = 40) -> str:
        if not self.log.exists():
            return ""
        with self.log.open(errors="replace") as log:
            return "".join(deque(log, maxlen=lines))


class _Starter:
    """The one thread that starts processes, so that none of them loses its parent while the interpreter runs."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._orders: queue.SimpleQueue[tuple[Future[subprocess.Popen[bytes]], list[str], int]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="nodeyard-process-starter", daemon=True).start()

    def start(self, command: list[str], output: int) -> subprocess.Popen[bytes]:
        started: Future[subprocess.Popen[bytes]] = Future()
        self._orders.put((started, command, output))
        return started.result()

    def _work(self) -> None:
        while True:
            started, command, output = self._orders.get()
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
        start_new_session=True,  # ctrl-c is for the test runner, which then stops us in order
    )


_lock = threading.Lock()
_the_starter: _Starter | None = None
_started: weakref.WeakSet[Process] = weakref.WeakSet()


def _starter() -> _Starter:
    global _the_starter
    with _lock:
        if _the_starter is None or _the_starter.owner != os.getpid():  # a fork has no threads
            _the_starter = _Starter()
        return _the_starter


@atexit.register
def _end_all() -> None:
    for process in list(_started):
        process.signal(signal.SIGKILL)
