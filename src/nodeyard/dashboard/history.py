"""The yard over the last hour: the rows at its beginning and every change since."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from nodeyard.dashboard.tiles import COLUMNS, Row

SECONDS: Final = 3600.0
CHANGES: Final = 50_000
"""Bound on the changes that are kept; with more, the history begins later."""


class History:
    def __init__(self, now: float, *, seconds: float = SECONDS, most: int = CHANGES) -> None:
        self._seconds = seconds
        self._most = most
        self._begin = now
        self._rows: dict[str, Row] = {}
        """The rows at `_begin`."""
        self._changes: deque[tuple[float, Row | str]] = deque()

    def start(self, rows: Iterable[Row], now: float) -> None:
        """Begin again with these rows."""
        self._begin = now
        self._rows = {row.name: row for row in rows}
        self._changes.clear()

    def record(self, now: float, changed: Iterable[Row], deleted: Iterable[str]) -> None:
        """Record changed rows and names of deleted nodes."""
        self._changes.extend((now, row) for row in changed)
        self._changes.extend((now, name) for name in deleted)
        self._forget(now)

    def _forget(self, now: float) -> None:
        """Move changes that are too old or too many into the rows at the beginning."""
        while self._changes and (len(self._changes) > self._most or self._changes[0][0] < now - self._seconds):
            self._begin, change = self._changes.popleft()
            if isinstance(change, Row):
                self._rows[change.name] = change
            else:
                self._rows.pop(change, None)

    def read(self, now: float) -> dict[str, Any]:
        self._forget(now)
        return {
            "from": max(self._begin, now - self._seconds),
            "to": now,
            "columns": COLUMNS,
            "rows": list(self._rows.values()),
            "changes": list(self._changes),
        }
