"""Fake view of all kinds that affinity watches, with the indexes that its watches declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nodeyard.admission.client_config import ByUrl
from nodeyard.admission.configurations import VALIDATING, configuration
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.kube.json import Object
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Watch
from nodeyard.watch.view import Memos


def registration(bundle: bytes = b"ca") -> Object:
    """Build the configuration that registers all validating webhooks of affinity."""
    return configuration(VALIDATING, AFFINITY, ByUrl("https://127.0.0.1:9443"), bundle)


class AffinityView:
    """View of the given bodies. It watches the application kinds that definitions among them declare."""

    def __init__(
        self,
        *bodies: Object,
        recent_kinds: Iterable[tuple[str, str]] = (),
        served: Iterable[tuple[str, str]] = (),
        troubles: Mapping[str, str] | None = None,
    ) -> None:
        self.recent_kinds = tuple(recent_kinds)
        self.memo = Memos().get
        self._served = set(served)
        self._troubles = troubles or {}
        self._watches: dict[str, Watch] = {}
        self._kept: dict[str, dict[tuple[str, str], Any]] = {}
        self._watch(AFFINITY.watches)
        rest = [body for body in bodies if not self._keep(body)]
        self._watch(AFFINITY.dynamic.watches(self))
        strangers = [body["kind"] for body in rest if not self._keep(body)]
        assert not strangers, f"nobody watches {strangers}"

    def _watch(self, watches: Iterable[Watch]) -> None:
        for watch in watches:
            name = f"{watch.resource.kind}.{watch.resource.group or 'core'}"
            self._watches[name] = watch
            self._kept[name] = {}

    def _keep(self, body: Object) -> bool:
        group = body["apiVersion"].rpartition("/")[0]
        name = f"{body['kind']}.{group or 'core'}"
        if name not in self._watches:
            return False
        view = self._watches[name].resource.view
        metadata = body["metadata"]
        found = body if view is dict else msgspec.convert(body, view)
        self._kept[name][metadata.get("namespace", ""), metadata["name"]] = found
        return True

    def refs(self) -> list[ObjectRef]:
        """Return the references of all objects."""
        return [
            ObjectRef(api_version=watch.resource.api_version, kind=watch.resource.kind, namespace=namespace, name=own)
            for name, watch in self._watches.items()
            for namespace, own in sorted(self._kept[name])
        ]

    def kept(self, kind: str) -> dict[tuple[str, str], Any]:
        """Return the objects of a kind by namespace and name, to change them."""
        return self._kept[self._named(kind)]

    def _named(self, kind: str) -> str:
        if kind in self._kept:
            return kind
        found = [name for name in self._kept if name.partition(".")[0] == kind]
        if len(found) != 1:
            raise KeyError(kind)
        return found[0]

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        return self._kept[self._named(kind)].get((namespace, name))

    def all(self, kind: str) -> Sequence[Any]:
        return [each for _key, each in sorted(self._kept[self._named(kind)].items())]

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]:
        of = self._watches[self._named(kind)].indexes[index]
        return [each for each in self.all(kind) if value in of(each)]

    def counted(self, kind: str, index: str, value: str) -> int:
        return len(self.indexed(kind, index, value))

    def aggregate(self, name: str, group: str) -> Any:
        (kind, fold) = next(
            (kind, each) for kind, watch in self._watches.items() for each in watch.aggregates if each.name == name
        )
        value = fold.empty()
        for each in self.all(kind):
            if group in fold.group(each):
                value = fold.add(value, each)
        return value

    def is_synced(self, kind: str) -> bool:
        return self._named(kind) not in self._troubles

    def watch_error(self, kind: str) -> str:
        return self._troubles.get(self._named(kind), "")

    def versions(self, group: str, kind: str) -> Sequence[str]:
        is_there = (group, kind) in self._served or bool(self._kept.get(f"{kind}.{group or 'core'}"))
        return ("v2",) if is_there and kind == "HelmRelease" else ("v1alpha1",) if is_there else ()
