"""The files of a data directory.

    lock                 held by the process that serves the directory
    identity.json        format version, certificate authority, signing key of tokens, administrator's token
    00000003.snapshot    all objects at a revision
    00000003.journal     the changes after it
    00000004.journal     further changes, while the next snapshot is being written

Recovery reads the last snapshot and all journals from its generation on.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final, Self

import msgspec

from nodeyard.apiserver.durability import frames, records
from nodeyard.apiserver.durability.frames import DataDirectoryError, FrameReader, corrupted
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Store, Stored
from nodeyard.kube.json import Object
from nodeyard.process.certificates import Authority, Pair

VALID: Final = timedelta(days=3650)
SNAPSHOT_FROM: Final = 64 << 20
_FILES: Final = (".snapshot", ".journal")


class _Identity(msgspec.Struct, frozen=True):
    format: int
    certificate: bytes
    key: bytes
    token_key: bytes
    admin_token: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All objects at a revision; stored versions never change, so it can be written in a thread."""

    generation: int
    revision: int
    objects: Sequence[tuple[GroupResource, Sequence[Stored]]]
    written: Mapping[int, float]


@dataclass(slots=True)
class Recovered:
    """The state beside the objects."""

    revision: int
    compacted: int
    written: dict[int, float] = field(default_factory=dict)


class JournalFile:
    """The end of a journal. `append` is durable when it returns."""

    def __init__(self, path: Path, size: int, frames_written: int, limit: int) -> None:
        self.path = path
        self._limit = limit
        self._growth = limit
        self._size = size
        self._sequence = frames_written
        self._has_remains = True
        self._handle = os.open(path, os.O_WRONLY | os.O_DSYNC)

    @property
    def is_full(self) -> bool:
        return self._size >= self._limit

    def grow(self) -> None:
        """Be full later, after rotation has failed."""
        self._limit = self._size + self._growth

    def append(self, payload: bytes) -> None:
        """Write a frame; if that fails, the file ends before it."""
        if self._has_remains:
            self._remove_remains()
        frame = memoryview(frames.encode(self._sequence, payload))
        self._has_remains = True
        try:
            rest = frame
            while rest:
                rest = rest[os.write(self._handle, rest) :]
        except OSError:
            with suppress(OSError):
                self._remove_remains()
            raise
        self._has_remains = False
        self._size += len(frame)
        self._sequence += 1

    def _remove_remains(self) -> None:
        """Cut off what a failed write, or a killed process, has left behind the last frame."""
        os.ftruncate(self._handle, self._size)
        os.lseek(self._handle, self._size, os.SEEK_SET)
        self._has_remains = False

    def close(self) -> None:
        os.close(self._handle)


class DataDirectory:
    """A directory that this process holds; `close` releases it."""

    def __init__(self, path: Path, lock: int, identity: _Identity, snapshot_from: int) -> None:
        self.path = path
        self._snapshot_from = snapshot_from
        self._lock = lock
        self._identity = identity
        self._snapshot_size = 0
        self._generation = max(self._generations(".snapshot"), default=0)
        self.extra: Object = {}
        """State of a loaded bundle beside its objects."""

    @classmethod
    def open(cls, path: Path, *, snapshot_from: int = SNAPSHOT_FROM) -> Self:
        """Create or open the directory; raises DataDirectoryError.

        The next snapshot is written when the journal has `snapshot_from` bytes, and as many as the last snapshot.
        """
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_content(path)
            path.chmod(0o700)
            lock = _lock(path)
        except OSError as error:
            raise DataDirectoryError(f"{path}: {error.strerror}") from error
        try:
            return cls(path, lock, _identity(path), snapshot_from)
        except BaseException:
            os.close(lock)
            raise

    def close(self) -> None:
        os.close(self._lock)

    @property
    def authority(self) -> Authority:
        return _authority(self.path, self._identity)

    @property
    def token_key(self) -> bytes:
        return self._identity.token_key

    @property
    def admin_token(self) -> str:
        return self._identity.admin_token

    @property
    def is_empty(self) -> bool:
        """True if no cluster has been stored yet."""
        return self._generation == 0

    # recovery

    def recover(self, store: Store) -> tuple[Recovered, JournalFile]:
        """Put the stored objects and their history into an empty store; return the journal to continue."""
        recovered = self._read_snapshot(store)
        journals = sorted(self._generations(".journal"))
        expected = list(range(self._generation, self._generation + max(len(journals), 1)))
        if journals != expected:
            missing = min(set(expected) - set(journals))
            raise DataDirectoryError(f"{self._file(missing, '.journal')}: is missing; {frames.REMEDY}")
        for generation in journals:
            reader = self._replay(store, recovered, generation, is_last=generation == journals[-1])
        return recovered, JournalFile(reader.path, reader.end, reader.frames, self._limit)

    def _read_snapshot(self, store: Store) -> Recovered:
        path = self._file(self._generation, ".snapshot")
        reader = FrameReader(path)
        payloads = list(reader)
        header = _header(path, payloads[0] if payloads else b"", self._generation, "snapshot")
        recovered = Recovered(header.revision, header.revision)
        try:
            self.extra = records.decode_extra(header.extra)
            count = 0
            for payload in payloads[1:-1]:
                part = records.decode_objects(payload)
                recovered.written |= part.written
                count += len(part.objects)
                for put in part.objects:
                    store.restore(put.resource, put.stored)
            if count != records.decode_end(payloads[-1]).objects:
                raise corrupted(path, f"has {count} objects, and should have another number")
        except msgspec.MsgspecError as error:
            raise corrupted(path, str(error)) from error
        self._snapshot_size = reader.end
        return recovered

    def _replay(self, store: Store, recovered: Recovered, generation: int, *, is_last: bool) -> FrameReader:
        path = self._file(generation, ".journal")
        reader = FrameReader(path, may_be_torn=is_last)
        payloads = iter(reader)
        header = _header(path, next(payloads, b""), generation, "journal")
        if header.revision != recovered.revision:
            raise corrupted(path, f"begins at revision {header.revision} instead of {recovered.revision}")
        for payload in payloads:
            try:
                batch = records.decode_batch(payload)
            except msgspec.MsgspecError as error:
                raise corrupted(path, str(error)) from error
            for change in batch.changes:
                if isinstance(change, records.Removal):
                    store.replay(change.resource, change.key, change.revision, None)
                elif change.is_event:
                    store.replay(change.resource, change.stored.key, change.revision, change.stored)
                    if change.plural == "events":
                        recovered.written[change.revision] = batch.time
                else:
                    store.replace(change.resource, change.stored)
            recovered.revision = batch.revision
        return reader

    # writing

    def begin(self, store: Store, written: Mapping[int, float]) -> JournalFile:
        """Store a first snapshot, after which the directory is no longer empty."""
        for generation in self._generations(".journal"):  # An earlier start did not come to its end.
            self._file(generation, ".journal").unlink()
        snapshot = self.snapshot(store, written)
        file = self.begin_journal(snapshot.generation, snapshot.revision)
        self.write_snapshot(snapshot)
        return file

    def snapshot(self, store: Store, written: Mapping[int, float]) -> Snapshot:
        generation = max(self._generations(".journal"), default=0) + 1
        return Snapshot(generation, store.revision, store.all(), written)

    def begin_journal(self, generation: int, revision: int) -> JournalFile:
        path = self._file(generation, ".journal")
        header = records.Header(records.FORMAT_VERSION, "journal", generation, revision)
        try:
            size = frames.write_file(path, [records.encode(header)])
            return JournalFile(path, size, 1, self._limit)
        except OSError:
            path.unlink(missing_ok=True)
            raise

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Write a snapshot, and remove the files that it replaces."""
        extra = msgspec.json.encode(self.extra)
        header = records.Header(records.FORMAT_VERSION, "snapshot", snapshot.generation, snapshot.revision, extra)
        payloads = records.snapshot_frames(header, snapshot.objects, dict(snapshot.written))
        self._snapshot_size = frames.write_file(self._file(snapshot.generation, ".snapshot"), payloads)
        self._generation = snapshot.generation
        self._clear()

    def _clear(self) -> None:
        """Remove what recovery would not read."""
        for suffix in _FILES:
            for generation in self._generations(suffix):
                if generation < self._generation:
                    self._file(generation, suffix).unlink()
        for partial in self.path.glob("*.partial"):
            partial.unlink()

    @property
    def _limit(self) -> int:
        return max(self._snapshot_from, self._snapshot_size)

    def _file(self, generation: int, suffix: str) -> Path:
        return self.path / f"{generation:08}{suffix}"

    def _generations(self, suffix: str) -> list[int]:
        return [int(path.stem) for path in self.path.glob(f"*{suffix}") if path.stem.isdigit()]


def read_authority(path: Path) -> Authority:
    """Return the authority of a directory that may be in use, to issue client certificates."""
    return _authority(path, _identity(path))


def _authority(path: Path, identity: _Identity) -> Authority:
    try:
        return Authority.load(Pair(identity.certificate, identity.key), valid=VALID)
    except ValueError as error:
        raise corrupted(path / "identity.json", f"the authority: {error}") from error


def _check_content(path: Path) -> None:
    """Refuse a directory of something else, whose permissions this one would change."""
    known = {"lock", "identity.json", "lost+found"}
    for entry in path.iterdir():
        if entry.name not in known and entry.suffix not in (*_FILES, ".partial"):
            raise DataDirectoryError(f"{path}: contains {entry.name}; give a new or empty directory")


def _lock(path: Path) -> int:
    file = path / "lock"
    lock = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 20).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise DataDirectoryError(f"{path}: is in use by process {holder}; stop it, or give another directory") from None
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    return lock


def _identity(path: Path) -> _Identity:
    """Read the identity, or create that of a new cluster."""
    file = path / "identity.json"
    if file.exists():
        try:
            identity = msgspec.json.decode(file.read_bytes(), type=_Identity)
        except (OSError, msgspec.MsgspecError) as error:
            raise corrupted(file, str(error)) from error
        _check_format(file, identity.format)
        return identity
    if any(each.suffix == ".snapshot" for each in path.iterdir()):
        raise DataDirectoryError(f"{file}: is missing; {frames.REMEDY}")
    pair = Authority(valid=VALID).pair
    identity = _Identity(
        records.FORMAT_VERSION, pair.certificate, pair.key, secrets.token_bytes(32), secrets.token_hex(16)
    )
    partial = file.with_name(f"{file.name}.partial")
    with open(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as content:
        content.write(msgspec.json.encode(identity))
        content.flush()
        os.fsync(content.fileno())
    partial.rename(file)
    frames.sync_directory(path)
    return identity


def _check_format(path: Path, version: int) -> None:
    if version != records.FORMAT_VERSION:
        raise DataDirectoryError(
            f"{path}: has format {version}, this version of nodeyard reads {records.FORMAT_VERSION}; "
            "use the version that wrote it"
        )


def _header(path: Path, payload: bytes | memoryview, generation: int, kind: str) -> records.Header:
    try:
        version = records.decode_format(payload)
        _check_format(path, version)
        header = records.decode_header(payload)
    except msgspec.MsgspecError as error:
        raise corrupted(path, f"its header: {error}") from error
    if (header.kind, header.generation) != (kind, generation):
        raise corrupted(path, f"it is the {header.kind} of generation {header.generation}")
    return header
