"""Group commit: changes of the store reach the disk in batches, beside the event loop.

While one batch is written, the next one fills. Nothing leaves the server before the batch of what it shows is on disk:
responses wait for `settle`, watches send events up to `revision`. So nobody ever sees what a crash takes back.

A batch that the disk does not take is taken back in memory, with the one that filled meanwhile; whoever waits for it
gets NotDurableError. The next write tries again.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import structlog

from nodeyard.apiserver.durability import records
from nodeyard.apiserver.durability.data_directory import DataDirectory, JournalFile, Snapshot
from nodeyard.apiserver.events import Events
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Change, Event, Replacement, Store
from nodeyard.apiserver.watches import Hub
from nodeyard.process.clock import Clock

log = structlog.get_logger(__name__)

_LONGEST_LINE: Final = 300


class NotDurableError(Exception):
    """The disk did not take a write, so it was taken back."""


class _Batch:
    __slots__ = ("changes", "done", "error", "revision")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.revision = 0
        self.done = asyncio.Event()
        self.error = ""


class Journal:
    """Records the changes of a store in a data directory."""

    def __init__(
        self,
        store: Store,
        events: Events,
        hub: Hub,
        clock: Clock,
        directory: DataDirectory,
        file: JournalFile,
        revision: int,
    ) -> None:
        """`revision` is the last one that the directory has."""
        self._store = store
        self._events = events
        self._hub = hub
        self._clock = clock
        self._directory = directory
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._filling = _Batch()
        self._writing: _Batch | None = None
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apiserver-journal")
        self._snapshots = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apiserver-snapshot")
        self._snapshot: asyncio.Future[None] | None = None
        self._is_failing = False
        self.revision = revision
        """The last revision on disk."""
        self.failures = 0
        """Number of times that changes were taken back."""
        store.recorder = hub.durability = self

    def record(self, resource: GroupResource, change: Event | Replacement) -> None:
        changes = self._filling.changes
        if not changes and self._writing is None:
            self._loop.call_soon(self._write)
        changes.append((resource, change))

    async def durable(self) -> None:
        """Wait until everything so far is on disk or taken back."""
        batch = self._filling if self._filling.changes else self._writing
        if batch is not None:
            await batch.done.wait()

    async def settle(self, failures: int) -> None:
        """Wait until everything so far is on disk; NotDurableError if anything was taken back since `failures`."""
        batch = self._filling if self._filling.changes else self._writing
        if batch is not None:
            await batch.done.wait()
            if batch.error:
                raise NotDurableError(batch.error)
        if self.failures != failures:
            raise NotDurableError("the disk did not take an earlier write")

    async def close(self) -> None:
        """Write what is left, and close the files."""
        await self.durable()
        if self._snapshot is not None:
            await asyncio.wait([self._snapshot])
        self._store.recorder = self._hub.durability = None
        self._writer.shutdown()
        self._snapshots.shutdown()
        self._file.close()

    # batches

    def _write(self) -> None:
        batch, self._filling = self._filling, _Batch()
        self._writing = batch
        batch.revision = self._store.revision
        payload = records.encode(
            records.Batch(
                batch.revision, self._clock.now().timestamp(), [_encoded(*change) for change in batch.changes]
            )
        )
        is_full = self._snapshot is None and self._file.is_full
        snapshot = self._directory.snapshot(self._store, self._events.written()) if is_full else None
        self._writer.submit(self._append, payload, snapshot).add_done_callback(
            lambda future: self._loop.call_soon_threadsafe(self._written, batch, snapshot, future)
        )

    def _append(self, payload: bytes, snapshot: Snapshot | None) -> JournalFile | None:
        """Write a batch; return the journal that is to be continued after a snapshot. Runs in the writer's thread."""
        self._file.append(payload)
        if snapshot is None:
            return None
        try:
            return self._directory.begin_journal(snapshot.generation, snapshot.revision)
        except OSError as error:
            log.error("journal not rotated", error=error.strerror)
            self._file.grow()
            return None

    def _written(self, batch: _Batch, snapshot: Snapshot | None, future: Future[JournalFile | None]) -> None:
        self._writing = None
        error = future.exception()
        if error is not None:
            self._take_back(batch, error)
            return
        if self._is_failing:
            self._is_failing = False
            log.info("journal written again", file=str(self._file.path))
        self.revision = batch.revision
        batch.done.set()
        following = future.result()
        if snapshot is not None and following is not None:
            self._file.close()
            self._file = following
            self._snapshot = self._loop.run_in_executor(self._snapshots, self._directory.write_snapshot, snapshot)
            self._snapshot.add_done_callback(self._snapshot_written)
        if self._filling.changes:
            self._write()

    def _take_back(self, batch: _Batch, error: BaseException) -> None:
        if not isinstance(error, OSError):
            log.error("journal broken", file=str(self._file.path), exc_info=error)
        elif not self._is_failing:
            self._is_failing = True
            log.error("journal not written", file=str(self._file.path), error=error.strerror or str(error))
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        later, self._filling = self._filling, _Batch()
        self.failures += 1
        self._store.undo(self.revision, [*batch.changes, *later.changes])
        self._hub.forget(self.revision)
        for each in (batch, later):
            each.error = f"{self._file.path.name}: {reason}"[:_LONGEST_LINE]
            each.done.set()

    def _snapshot_written(self, future: asyncio.Future[None]) -> None:
        self._snapshot = None
        if error := future.exception():
            log.error("snapshot not written", error=str(error))
            self._file.grow()


def _encoded(resource: GroupResource, change: Event | Replacement) -> records.Change:
    if isinstance(change, Replacement):
        return records.Put.of(resource, change.new, is_event=False)
    return records.change_of(resource, change)
