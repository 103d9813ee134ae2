"""Reads a bundle, which may come from a stranger.

    bundle = read_bundle(Path("bundle.tgz"))
    for node in bundle.cluster.objects[GVR("", "v1", "nodes")]: ...

Nothing is unpacked to disk. Members other than regular files, names that the manifest does not list, more bytes or
members than a limit, and counts that do not match are errors. Python's tarfile is not used: it reads extended headers
of any size into memory before it can be asked not to.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple, TypeVar

import msgspec

from nodeyard.bundle.model import (
    FORMAT_VERSION,
    HOST,
    KIND,
    MANIFEST,
    Bundle,
    BundleError,
    ClusterEntry,
    ClusterState,
    Documents,
    Manifest,
    Objects,
    Section,
    ServedResource,
)
from nodeyard.kube.json_depth import is_too_deep

T = TypeVar("T")


class Limits(NamedTuple):
    members: int = 20_000
    total_bytes: int = 2 << 30
    """Size of all members together, after decompression."""
    document_bytes: int = 256 << 20
    described_bytes: int = 64 << 20
    """Size of the manifest and the discovery of all clusters together, which are decoded at once."""
    object_bytes: int = 4 << 20
    """An API server stores objects of at most 1.5 MiB; in JSON they may be somewhat larger."""
    ratio: int = 300
    """Bytes per compressed byte: objects of a fleet have at most 100, a bomb a thousand."""


LIMITS: Final = Limits()
_BLOCK: Final = 512
_CHUNK: Final = 1 << 20
_FREE_BYTES: Final = 32 << 20
"""The ratio is not looked at before: a small file may well compress by a thousand."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,80}(/[a-z0-9][a-z0-9._-]{0,80}){0,3}", re.ASCII)
_TYPE_REGULAR: Final = (b"0", b"\0")


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class _Checked(msgspec.Struct, rename="camel"):
    """The fields that every object has; the rest is only checked to be JSON."""

    api_version: str
    kind: str
    metadata: _Meta


class _Version(msgspec.Struct, rename="camel"):
    kind: str
    format_version: int


class _Flaw(Exception):
    """The reason to refuse the bundle."""


_check_object = msgspec.json.Decoder(_Checked).decode
_check_json = msgspec.json.Decoder().decode
"""Decoder without a type: a typed one does not check the members that it skips."""
_MALFORMED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read_bundle(path: Path, limits: Limits = LIMITS) -> Bundle:
    """Read and check a whole bundle. Raises BundleError."""
    try:
        with path.open("rb") as file:
            return _Reader(file, limits).read()
    except _Flaw as flaw:
        raise BundleError(f"{path}: is no usable bundle: {flaw}") from None
    except EOFError:
        raise BundleError(f"{path}: is truncated; gather or copy it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BundleError(f"{path}: is no bundle, or a damaged one: {error}") from None
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from None


class _Reader:
    def __init__(self, file: IO[bytes], limits: Limits) -> None:
        self._file = file
        self._stream = gzip.GzipFile(fileobj=file, mode="rb")
        self._limits = limits
        self._total = 0
        self._described = 0

    def read(self) -> Bundle:
        manifest = self._read_manifest()
        wanted = _list_members(manifest, self._limits)
        documents: dict[str, bytes] = {}
        resources: dict[str, tuple[ServedResource, ...]] = {}
        objects: dict[str, Objects] = {}
        while (member := self._next_member()) is not None:
            name, size = member
            what = wanted.pop(name, None)
            if what is None:
                raise _Flaw(f"member {_quote(name)} is not in the manifest, or is there twice")
            if isinstance(what, Section):
                objects[name] = self._read_objects(what, size)
            elif isinstance(what, ClusterEntry):
                resources[name] = _decode(name, self._read_description(name, size), tuple[ServedResource, ...])
            else:
                documents[what] = self._read_document(name, size)
                _decode(name, documents[what], msgspec.Raw)
            self._skip(-size % _BLOCK)
        if wanted:
            raise _Flaw(f"member {min(wanted)} of the manifest is missing")
        clusters = {
            each.name: ClusterState(
                each.name,
                resources[each.resources],
                {section.gvr: objects[section.file] for section in each.sections},
                each.version,
                each.error,
            )
            for each in manifest.clusters
        }
        return Bundle(manifest, clusters.pop(HOST), clusters, Documents(documents))

    def _read_manifest(self) -> Manifest:
        member = self._next_member()
        if member is None or member[0] != MANIFEST:
            raise _Flaw(f"its first member is not {MANIFEST}")
        content = self._read_description(MANIFEST, member[1])
        self._skip(-member[1] % _BLOCK)
        version = _decode(MANIFEST, content, _Version)
        if version.kind != KIND:
            raise _Flaw(f"{MANIFEST}: kind is {_quote(version.kind)}, not {KIND}")
        if version.format_version > FORMAT_VERSION:
            raise _Flaw(
                f"its format version {version.format_version} is newer than {FORMAT_VERSION}; "
                "read it with a newer nodeyard"
            )
        return _decode(MANIFEST, content, Manifest)

    def _read_objects(self, section: Section, size: int) -> Objects:
        lines = []
        for number, line in enumerate(self._lines(section.file, size), 1):
            try:
                found = _check_object(line)
                _check_json(line)
                if is_too_deep(line):
                    raise _Flaw(f"{section.file}: object {number} is nested too deeply")
            except _MALFORMED as error:
                raise _Flaw(f"{section.file}: object {number} is no Kubernetes object: {error}") from None
            if found.api_version != section.gvr.api_version:
                raise _Flaw(f"{section.file}: object {number} has apiVersion {_quote(found.api_version)}")
            lines.append(line)
        if len(lines) != section.count:
            raise _Flaw(f"{section.file}: has {len(lines)} objects, and the manifest says {section.count}")
        return Objects(lines)

    def _lines(self, name: str, size: int) -> Iterator[bytes]:
        rest = b""
        while size:
            chunk = self._read(min(size, _CHUNK))
            size -= len(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > self._limits.object_bytes or any(len(line) > self._limits.object_bytes for line in lines):
                raise _Flaw(f"{name}: an object is larger than {self._limits.object_bytes} bytes")
            yield from lines
        if rest:
            raise _Flaw(f"{name}: the last object does not end")

    def _read_description(self, name: str, size: int) -> bytes:
        self._described += size
        if self._described > self._limits.described_bytes:
            raise _Flaw(f"{name}: manifest and resources have more than {self._limits.described_bytes} bytes")
        return self._read_document(name, size)

    def _read_document(self, name: str, size: int) -> bytes:
        if size > self._limits.document_bytes:
            raise _Flaw(f"{name}: is larger than {self._limits.document_bytes} bytes")
        chunks = []
        while size:
            chunks.append(self._read(min(size, _CHUNK)))
            size -= len(chunks[-1])
        content = b"".join(chunks)
        if is_too_deep(content):
            raise _Flaw(f"{name}: is nested too deeply")
        return content

    # tar

    def _next_member(self) -> tuple[str, int] | None:
        """Return name and size of the next member; None at the end of the archive."""
        header = self._read(_BLOCK)
        if not any(header):
            self._expect_end()
            return None
        if header[257:262] != b"ustar" or _octal(header[148:156]) != _checksum(header):
            raise _Flaw("a tar header is damaged")
        name = header[:100].partition(b"\0")[0].decode("ascii", "replace")
        if header[156:157] not in _TYPE_REGULAR:
            raise _Flaw(f"member {_quote(name)} is a link, directory or device, or has an extended header")
        if header[345] or not _NAME.fullmatch(name) or ".." in name:
            raise _Flaw(f"member {_quote(name)} has a name that no bundle uses")
        return name, _octal(header[124:136])

    def _expect_end(self) -> None:
        """Read the padding to the end of the stream, where gzip checks its sum."""
        self._skip(_BLOCK)
        while chunk := self._inflate(_CHUNK):
            if any(chunk):
                raise _Flaw("there is data after its end")

    def _skip(self, size: int) -> None:
        if any(self._read(size)):
            raise _Flaw("the padding of a member is not empty")

    def _read(self, size: int) -> bytes:
        data = self._inflate(size) if size else b""
        while len(data) < size:
            more = self._inflate(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def _inflate(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._total += len(data)
        if self._total > self._limits.total_bytes:
            raise _Flaw(f"it has more than {self._limits.total_bytes} bytes after decompression")
        if self._total > _FREE_BYTES and self._total > self._limits.ratio * max(1, self._file.tell()):
            raise _Flaw(f"it is compressed by more than {self._limits.ratio} to 1")
        return data


def _list_members(manifest: Manifest, limits: Limits) -> dict[str, Section | ClusterEntry | str]:
    """Return what each member contains: objects, what a cluster serves, or the document of a name."""
    found: list[tuple[str, Section | ClusterEntry | str]] = []
    for cluster in manifest.clusters:
        found.append((cluster.resources, cluster))
        found += ((section.file, section) for section in cluster.sections)
    found += ((file, name) for name, file in manifest.documents.items())
    if len(found) > limits.members:
        raise _Flaw(f"it has {len(found)} members; at most {limits.members} are read")
    members = dict(found)
    if len(members) != len(found):
        raise _Flaw(f"{MANIFEST}: two entries name the same member")
    names = [each.name for each in manifest.clusters]
    if HOST not in names or len(set(names)) != len(names):
        raise _Flaw(f"{MANIFEST}: the cluster of the operator is missing, or a cluster is there twice")
    return members


def _decode(name: str, content: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=type)
    except _MALFORMED as error:
        raise _Flaw(f"{name}: {error}") from None


def _octal(field: bytes) -> int:
    text = field.strip(b"\0 ")
    if not re.fullmatch(rb"[0-7]{1,12}", text):
        raise _Flaw("a tar header is damaged")
    return int(text, 8)


def _checksum(header: bytes) -> int:
    return sum(header[:148]) + 8 * 0x20 + sum(header[156:])


def _quote(name: str) -> str:
    return ascii(name[:100])
