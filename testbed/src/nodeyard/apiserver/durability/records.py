"""Contents of the frames of a data directory, as MessagePack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event, Key, Stored
from nodeyard.kube.json import Object

FORMAT_VERSION: Final = 1
_CHUNK_BYTES: Final = 1 << 20


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The first frame of every file."""

    format: int
    kind: Literal["journal", "snapshot"]
    generation: int
    revision: int
    """The revision of a snapshot; that before the first batch of a journal."""
    extra: bytes = b"{}"
    """State of a snapshot beside objects, as JSON."""


class Put(msgspec.Struct, frozen=True, array_like=True, tag="+", gc=False):
    """A version of an object. `is_event` is False if it replaced one of the same revision."""

    group: str
    plural: str
    namespace: str
    name: str
    revision: int
    uid: str
    raw: bytes
    labels: dict[str, str]
    fields: dict[str, str]
    is_event: bool = True

    @classmethod
    def of(cls, resource: GroupResource, stored: Stored, *, is_event: bool = True) -> Put:
        key, kept = stored.key, stored
        return cls(*resource, *key, kept.revision, kept.uid, kept.raw, kept.labels, kept.fields, is_event)

    @property
    def resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    @property
    def stored(self) -> Stored:
        key = Key(self.namespace, self.name)
        return Stored(key, self.revision, self.uid, self.raw, self.labels, self.fields)


class Removal(msgspec.Struct, frozen=True, array_like=True, tag="-", gc=False):
    """The end of an object."""

    group: str
    plural: str
    namespace: str
    name: str
    revision: int

    @property
    def resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


Change = Put | Removal


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The changes of one group commit: all of them are there after a crash, or none."""

    revision: int
    time: float
    changes: list[Change]


class Objects(msgspec.Struct, frozen=True, array_like=True):
    """Objects of a snapshot; `written` has the write times of Events by revision."""

    objects: list[Put]
    written: dict[int, float]


class End(msgspec.Struct, frozen=True, array_like=True):
    """The last frame of a snapshot."""

    objects: int


encode = msgspec.msgpack.Encoder().encode
decode_header = msgspec.msgpack.Decoder(Header).decode
decode_batch = msgspec.msgpack.Decoder(Batch).decode
decode_objects = msgspec.msgpack.Decoder(Objects).decode
decode_end = msgspec.msgpack.Decoder(End).decode
decode_extra = msgspec.json.Decoder(Object).decode


def decode_format(payload: bytes | memoryview) -> int:
    """Return the format version of a header, also of one that has more fields than this version knows."""
    values = msgspec.msgpack.decode(payload, type=list[object])
    if not values or not isinstance(values[0], int):
        raise msgspec.ValidationError("it has no format version")
    return values[0]


def change_of(resource: GroupResource, event: Event) -> Change:
    if event.type == "DELETED":
        return Removal(*resource, *event.stored.key, event.revision)
    return Put.of(resource, event.stored)


def snapshot_frames(
    header: Header, objects: Iterable[tuple[GroupResource, Iterable[Stored]]], written: dict[int, float]
) -> Iterator[bytes]:
    """Yield the payloads of a snapshot, of about a megabyte each."""
    yield encode(header)
    pending: list[Put] = []
    size = count = 0
    for resource, kept in objects:
        for stored in kept:
            pending.append(Put.of(resource, stored))
            count += 1
            size += len(stored.raw)
            if size >= _CHUNK_BYTES:
                yield encode(Objects(pending, {}))
                pending, size = [], 0
    yield encode(Objects(pending, written))
    yield encode(End(count))
