"""Frames: the records of a journal or snapshot file, with sequence numbers and checksums.

    magic ─ length ─ sequence ─ checksum ─ payload

A process that is killed, or a machine that loses power, can leave a torn last frame: it ends early, or a sector of it
was never written. It was not acknowledged, so it is dropped. Anything else that does not match is corruption, and
refused: whatever follows it would be lost silently.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct("<4sIQI")
_MAGIC: Final = b"NYf\x01"
_SECTOR: Final = 512
REMEDY: Final = "restore the directory from a copy, or move it away to begin with an empty cluster"


class DataDirectoryError(Exception):
    """A directory that cannot be used; the text names the file and the remedy, in one line."""


def encode(sequence: int, payload: bytes) -> bytes:
    checksum = zlib.crc32(payload, sequence & 0xFFFFFFFF)
    return _HEADER.pack(_MAGIC, len(payload), sequence, checksum) + payload


class FrameReader:
    """The payloads of a file in order; after the last one `end` is the offset behind it."""

    def __init__(self, path: Path, *, may_be_torn: bool = False) -> None:
        """`may_be_torn`: end before a torn last frame, with `is_torn`, instead of raising DataDirectoryError."""
        self.path = path
        self.end = 0
        self.frames = 0
        self.is_torn = False
        self._may_be_torn = may_be_torn

    def __iter__(self) -> Iterator[memoryview]:
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise DataDirectoryError(f"{self.path}: cannot be read: {error.strerror}") from error
        while self.end < len(content):
            payload = _payload(content, self.end, self.frames)
            if payload is None:
                if self._may_be_torn and _is_torn(content, self.end, self.frames):
                    self.is_torn = True
                    return
                raise corrupted(self.path, f"the record at byte {self.end} is damaged")
            self.end += _HEADER.size + len(payload)
            self.frames += 1
            yield payload


def corrupted(path: Path, why: str) -> DataDirectoryError:
    return DataDirectoryError(f"{path}: corrupted: {why}; {REMEDY}")


def write_file(path: Path, payloads: Iterable[bytes]) -> int:
    """Write frames to a new file that is there whole or not at all; return its size."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with open(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb", buffering=0) as file:
            for sequence, payload in enumerate(payloads):
                rest = memoryview(encode(sequence, payload))
                while rest:
                    rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
            size = file.tell()
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
    return size


def sync_directory(path: Path) -> None:
    """Make renames and new files in a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _payload(content: bytes, at: int, sequence: int) -> memoryview | None:
    """Return the payload of a valid frame at this offset with this sequence number."""
    if at + _HEADER.size > len(content):
        return None
    magic, length, found, checksum = _HEADER.unpack_from(content, at)
    begin = at + _HEADER.size
    if magic != _MAGIC or found != sequence or begin + length > len(content):
        return None
    payload = memoryview(content)[begin : begin + length]
    return payload if zlib.crc32(payload, sequence & 0xFFFFFFFF) == checksum else None


def _is_torn(content: bytes, at: int, sequence: int) -> bool:
    """True if the frame was not written to its end, and none follows it."""
    following = content.find(_MAGIC, at + 1)
    while following >= 0:
        if following + _HEADER.size <= len(content):
            found = _HEADER.unpack_from(content, following)[2]
            if sequence < found and _payload(content, following, found) is not None:
                return False
        following = content.find(_MAGIC, following + 1)
    if at + _HEADER.size > len(content):
        return True
    magic, length, _, checksum = _HEADER.unpack_from(content, at)
    written = memoryview(content)[at + _HEADER.size :]
    if magic == _MAGIC and length > len(written):
        is_whole: bool = zlib.crc32(written, sequence & 0xFFFFFFFF) == checksum
        return not is_whole  # A whole frame has a damaged length.
    first = at - at % _SECTOR
    sectors = range(first, len(content), _SECTOR)
    return any(not any(content[max(at, sector) : sector + _SECTOR]) for sector in sectors)
