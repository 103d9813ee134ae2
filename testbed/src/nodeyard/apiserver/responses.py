"""Encoding of stored objects into answers with as little copying as possible.

Stored bytes begin with kind and apiVersion, in that order (see `canonical`). So another version of a custom resource
(conversion None) differs in its beginning, and an item of a built-in list, which carries neither, is the rest.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from nodeyard.apiserver.resources import Resource
from nodeyard.apiserver.store import Stored
from nodeyard.kube.json import Json, Object

encode = msgspec.json.Encoder().encode

_METADATA_PREFIX = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'


def canonical(obj: Object, kind: str, api_version: str) -> Object:
    """Return the object with kind, apiVersion and metadata first."""
    rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion", "metadata")}
    return {"kind": kind, "apiVersion": api_version, "metadata": obj["metadata"], **rest}


@lru_cache(maxsize=4096)
def _prefix(kind: str, api_version: str) -> bytes:
    return b'{"kind":%s,"apiVersion":%s,' % (encode(kind), encode(api_version))


def prefix(resource: Resource, version: str) -> bytes:
    return _prefix(resource.kind, resource.api_version(version))


def object_bytes(resource: Resource, stored: Stored, version: str) -> bytes:
    """Return the bytes of the object in a version."""
    wanted = prefix(resource, version)
    return stored.raw if stored.raw.startswith(wanted) else wanted + _body(stored)


def _body(stored: Stored) -> bytes:
    """Return the bytes after kind and apiVersion of the stored version."""
    return stored.raw[stored.raw.index(b'"metadata":') :]


def unopened(stored: Stored) -> memoryview:
    """A view of a built-in object as a list item, without its opening brace."""
    return memoryview(stored.raw)[stored.raw.index(b'"metadata":') :]


def metadata_bytes(stored: Stored) -> bytes:
    """Return the PartialObjectMetadata."""
    return _METADATA_PREFIX + b'"metadata":' + bytes(_Metadata.decode(stored.raw).metadata) + b"}"


class _OnlyMetadata(msgspec.Struct):
    metadata: msgspec.Raw


_Metadata = msgspec.json.Decoder(_OnlyMetadata)


def partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def pretty(value: bytes) -> bytes:
    """Indent JSON, for `?pretty=true`."""
    return msgspec.json.format(value, indent=2) + b"\n"


def decode(raw: bytes) -> Json:
    return msgspec.json.decode(raw)
