"""Writes a bundle.

    with BundleWriter(path, created_at=clock.now(), nodeyard_version=VERSION) as writer:
        writer.add_cluster(HOST, resources, version)
        writer.add_objects(HOST, gvr, objects)
        writer.add_document("plans", plans)

The file appears, readable by its owner only, when the block ends without an exception; before that nothing is written
beside temporary files.

The manifest is the first member, so that a reader knows the version before anything else; its counts are known last.
Both fit because gzip streams may be concatenated: the members wait, compressed, in a temporary file.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Final

import msgspec

from nodeyard.bundle.model import GVR, MANIFEST, BundleError, ClusterEntry, Manifest, Omission, Section, ServedResource
from nodeyard.kube.json import Json, Object

_BLOCK: Final = 512
_END: Final = bytes(2 * _BLOCK)
_SPOOLED_BYTES: Final = 16 << 20
_LEVEL: Final = 6

_encode = msgspec.json.Encoder().encode


class BundleWriter:
    def __init__(self, path: Path, *, created_at: datetime, nodeyard_version: str) -> None:
        self._path = path
        self._created_at = created_at
        self._nodeyard_version = nodeyard_version
        self._clusters: dict[str, ClusterEntry] = {}
        self._documents: dict[str, str] = {}
        self._omitted: list[Omission] = []
        self._stack = ExitStack()
        self._members = 0

    def __enter__(self) -> BundleWriter:
        with ExitStack() as stack:
            self._body = stack.enter_context(tempfile.TemporaryFile())
            self._gzip = gzip.GzipFile(fileobj=self._body, mode="wb", compresslevel=_LEVEL, mtime=0)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with self._stack:
            if kind is not None:
                return
            try:
                self._publish()
            except OSError as error:
                raise BundleError(f"{self._path}: cannot be written: {error.strerror or error}") from None

    def add_cluster(
        self, name: str, resources: Iterable[ServedResource], version: Object | None = None, error: str = ""
    ) -> None:
        """Add a cluster; the first is the one that the operator runs on."""
        file = f"{_folder(len(self._clusters))}/resources.json"
        self._add(file, _encode(list(resources)))
        self._clusters[name] = ClusterEntry(name, file, version or {}, error)

    def add_objects(self, cluster: str, gvr: GVR, objects: Iterable[Object]) -> int:
        """Add all objects of a resource, also if there are none; return their number."""
        entry = self._clusters[cluster]
        index = list(self._clusters).index(cluster)
        file = f"{_folder(index)}/{len(entry.sections):03}-{gvr.resource}.jsonl"
        count = 0
        with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as lines:
            for each in objects:
                lines.write(_encode(each))
                lines.write(b"\n")
                count += 1
            size = lines.tell()
            lines.seek(0)
            self._copy(file, size, lines)
        section = Section(file, *gvr, count)
        self._clusters[cluster] = msgspec.structs.replace(entry, sections=(*entry.sections, section))
        return count

    def add_document(self, name: str, value: Json) -> None:
        file = f"documents/{name}.json"
        self._add(file, _encode(value))
        self._documents[name] = file

    def omit(self, omission: Omission) -> None:
        """Record that something could not be read."""
        self._omitted.append(omission)

    @property
    def omitted(self) -> tuple[Omission, ...]:
        return tuple(self._omitted)

    def _add(self, file: str, content: bytes) -> None:
        self._gzip.write(_header(file, len(content)))
        self._gzip.write(content)
        self._gzip.write(bytes(-len(content) % _BLOCK))

    def _copy(self, file: str, size: int, content: IO[bytes]) -> None:
        self._gzip.write(_header(file, size))
        shutil.copyfileobj(content, self._gzip, 1 << 20)
        self._gzip.write(bytes(-size % _BLOCK))

    def _publish(self) -> None:
        self._gzip.write(_END)
        self._gzip.close()
        manifest = Manifest(
            created_at=self._created_at,
            nodeyard_version=self._nodeyard_version,
            clusters=tuple(self._clusters.values()),
            documents=self._documents,
            omitted=self.omitted,
        )
        content = msgspec.json.format(_encode(manifest), indent=1)
        head = gzip.compress(_header(MANIFEST, len(content)) + content + bytes(-len(content) % _BLOCK), _LEVEL, mtime=0)
        self._body.seek(0)
        handle, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(head)
                shutil.copyfileobj(self._body, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def _folder(index: int) -> str:
    return f"clusters/{index:03}" if index else "cluster"


def _header(file: str, size: int) -> bytes:
    entry = tarfile.TarInfo(file)
    entry.size = size
    return entry.tobuf(tarfile.USTAR_FORMAT)
