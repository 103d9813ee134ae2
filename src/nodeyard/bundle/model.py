"""The content of a bundle, and its manifest.

    manifest.json              versions, time, what could not be read, and every other member with its count
    cluster/NNN-nodes.jsonl    one object a line, as the API server answered it, with secrets hashed
    clusters/NNN/…             the same of a remote cluster
    documents/plans.json       what the cluster's objects do not say: plans, explanations, metrics, events

A member is named after what it contains for people only; the manifest says what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, overload

import msgspec

from nodeyard.client.discovery import Catalog, Known
from nodeyard.client.resources import untyped
from nodeyard.kube.json import Json, Object

FORMAT_VERSION: Final = 1
KIND: Final = "Bundle"
MANIFEST: Final = "manifest.json"
HOST: Final = ""
"""The name of the cluster that the operator runs on."""

_decode = msgspec.json.Decoder().decode


class BundleError(Exception):
    """A bundle that cannot be read or written; the text names the file and the reason, in one line."""


def remote_name(capability: str, cluster: str) -> str:
    """Return the name of a remote cluster in a bundle: clusters of two capabilities may have the same."""
    return f"{capability}/{cluster}"


class GVR(NamedTuple):
    """Group, version and plural of a resource."""

    group: str
    version: str
    resource: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.resource}.{self.version}.{self.group}".rstrip(".")


class ServedResource(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A resource as discovery describes it."""

    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @classmethod
    def of(cls, known: Known) -> ServedResource:
        resource = known.resource
        return cls(
            resource.group,
            resource.version,
            resource.plural,
            resource.kind,
            resource.namespaced,
            known.singular,
            known.short_names,
            known.categories,
            tuple(sorted(known.verbs)),
            tuple(sorted(known.subresources)),
        )

    @property
    def gvr(self) -> GVR:
        return GVR(self.group, self.version, self.resource)

    def known(self) -> Known:
        return Known(
            untyped(self.group, self.version, self.resource, self.kind, namespaced=self.namespaced),
            self.singular,
            self.short_names,
            self.categories,
            frozenset(self.verbs),
            frozenset(self.subresources),
        )


class Section(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A member with all objects of one resource."""

    file: str
    group: str
    version: str
    resource: str
    count: int

    @property
    def gvr(self) -> GVR:
        return GVR(self.group, self.version, self.resource)


class ClusterEntry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One cluster in the manifest."""

    name: str
    resources: str
    """The member with what the cluster serves."""
    version: Object = {}
    """The answer to GET /version."""
    error: str = ""
    """Why a remote cluster could not be read."""
    sections: tuple[Section, ...] = ()


class Omission(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Something that could not be read."""

    what: str
    reason: str
    cluster: str = HOST

    def __str__(self) -> str:
        return f"{f'cluster {self.cluster}: ' if self.cluster else ''}{self.what}: {self.reason}"


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    created_at: datetime
    """The moment for which the plans in the bundle were made."""
    nodeyard_version: str
    clusters: tuple[ClusterEntry, ...]
    """The first is the cluster that the operator runs on."""
    documents: Mapping[str, str] = {}
    """Members by the name of their document."""
    omitted: tuple[Omission, ...] = ()
    kind: str = KIND
    format_version: int = FORMAT_VERSION


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Identified(msgspec.Struct):
    metadata: _Meta


_identify = msgspec.json.Decoder(_Identified).decode


def identify(raw: bytes | msgspec.Raw) -> _Meta:
    """Return the name, namespace and labels of an object, without decoding the rest."""
    return _identify(raw).metadata


class Objects(Sequence[Object]):
    """Objects as raw JSON, decoded on access: 10,000 nodes as dicts would take a gigabyte."""

    def __init__(self, raw: Sequence[bytes] = ()) -> None:
        self.raw = raw

    def __len__(self) -> int:
        return len(self.raw)

    @overload
    def __getitem__(self, index: int) -> Object: ...

    @overload
    def __getitem__(self, index: slice) -> Objects: ...

    def __getitem__(self, index: Any) -> Any:
        return Objects(self.raw[index]) if isinstance(index, slice) else _decode(self.raw[index])

    def __iter__(self) -> Iterator[Object]:
        return map(_decode, self.raw)


class Documents(Mapping[str, Json]):
    """Documents as raw JSON, decoded on access: decoded they may take twenty times as much."""

    def __init__(self, raw: Mapping[str, bytes]) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> Json:
        return _decode(self._raw[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


@dataclass(frozen=True)
class ClusterState:
    """The contents of a bundle about one cluster."""

    name: str
    resources: Sequence[ServedResource] = ()
    """Everything that the cluster serves, preferred versions first."""
    objects: Mapping[GVR, Objects] = field(default_factory=dict)
    """The objects that were read; a resource without objects is there too, one that could not be read is not."""
    version: Object = field(default_factory=dict)
    error: str = ""

    def catalog(self) -> Catalog:
        return Catalog(each.known() for each in self.resources)


@dataclass(frozen=True)
class Bundle:
    manifest: Manifest
    cluster: ClusterState
    clusters: Mapping[str, ClusterState]
    """Remote clusters by name."""
    documents: Mapping[str, Json]
