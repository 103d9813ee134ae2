"""Output of the demo: headings, sentences, progress bars and commands that work when they are pasted."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from nodeyard.cli.failures import Failure

INDENT: Final = "   "
_BAR_WIDTH: Final = 24
_LABEL_WIDTH: Final = 38
_REFRESHES_PER_SECOND: Final = 4


class Bar(NamedTuple):
    """Progress of one kind of work."""

    label: str
    done: int
    total: int

    @property
    def is_complete(self) -> bool:
        return self.done >= self.total


class Screen:
    def __init__(self, kubeconfig: Path, *, pause: float, interval: float) -> None:
        """`pause` gives the reader seconds for each step; `interval` is that between two reads of the cluster."""
        self.console = Console(highlight=False)
        self._kubeconfig = kubeconfig
        self._pause = pause
        self._interval = interval
        self._steps = 0

    async def begin_step(self, title: str, text: str) -> None:
        """Print a numbered heading and what happens now."""
        self._steps += 1
        self.console.print()
        self.console.print(Text(f"{self._steps}. {title}", style="bold"))
        self.say(text)
        await asyncio.sleep(self._pause)

    def say(self, text: str) -> None:
        self.console.print(Padding(Text(text), (0, 0, 0, len(INDENT)), expand=False))

    def offer(self, program: str, *arguments: str) -> None:
        """Print a command to paste; nothing if its program is not installed."""
        path = find_program(program)
        if path:
            words = shlex.join([*shlex.split(path), *arguments])
            line = f"{INDENT}KUBECONFIG={shlex.quote(str(self._kubeconfig))} {words}"
            # Not wrapped: a terminal joins the line again when it is copied.
            self.console.print(Text(line, style="cyan"), soft_wrap=True)

    async def follow(
        self, read: Callable[[], Awaitable[Sequence[Bar]]], timeout: float | None, *, quiet: float = 0.0
    ) -> None:
        """Show bars until all of them have been complete for `quiet` seconds. Each read returns the same bars.

        Raises Failure with what is left after the timeout; None waits without end.
        """
        columns = (
            TextColumn(INDENT + "{task.description}"),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        )
        started = time.monotonic()
        complete_since: float | None = None
        bars = await read()
        with Progress(*columns, console=self.console, refresh_per_second=_REFRESHES_PER_SECOND) as progress:
            tasks = {bar.label: progress.add_task(bar.label.ljust(_LABEL_WIDTH), total=bar.total) for bar in bars}
            while True:
                for bar in bars:
                    progress.update(tasks[bar.label], completed=min(bar.done, bar.total), total=bar.total)
                if not all(bar.is_complete for bar in bars):
                    complete_since = None
                    if timeout is not None and time.monotonic() - started > timeout:
                        left = "; ".join(
                            f"{bar.label}: {bar.done} of {bar.total}" for bar in bars if not bar.is_complete
                        )
                        raise Failure(f"the demo did not get on within {timeout:.0f} s: {left}")
                elif complete_since is None:
                    complete_since = time.monotonic()
                if complete_since is not None and time.monotonic() - complete_since >= quiet:
                    return
                await asyncio.sleep(self._interval)
                bars = await read()


def find_program(name: str) -> str:
    """Return the absolute path of a program, beside this interpreter first; empty if there is none."""
    beside = Path(sys.executable).with_name(name)
    if beside.is_file():
        return shlex.quote(str(beside))
    found = shutil.which(name)
    return shlex.quote(str(Path(found).absolute())) if found else ""
