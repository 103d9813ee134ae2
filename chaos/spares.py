"""Spares under chaos: templates grow, nodes come and go, and foreign keys are set, while two operators run.

At every resourceVersion: a node never goes from one template to another, no template has more nodes than it asked for,
and no foreign label, annotation or taint is lost. At the end every template has what it asks for, and nothing writes.
"""

from __future__ import annotations

import contextlib
import http.client
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Final

from chaos.recording import Observed
from nodeyard.capabilities.spares import names
from nodeyard.kube.names import ZONE
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.wait import until

NODES: Final = "/api/v1/nodes"
TEMPLATES: Final = f"/apis/{names.API_VERSION}/{names.PLURAL}"
PATHS: Final = (NODES, TEMPLATES)
CAPABILITY: Final = "spares"
_FOREIGN: Final = "chaos.example/"
_SPARE: Final = {"key": names.SPARE_TAINT, "value": "true", "effect": "NoSchedule"}
_MERGE: Final = "application/merge-patch+json"
_FEWEST_NODES: Final = 8
_MOST_ASKED: Final = 10
_WEIGHTS: Final = (2, 1, 2, 4, 2)


class Spares:
    """The load, and its invariants. The API server may be away at any moment: a call that fails did nothing or all."""

    def __init__(self, rest: Rest, random: Random) -> None:
        self._rest = rest
        self._random = random
        self._asked: dict[str, int] = {}
        self._count = 0

    def begin(self) -> None:
        for name in ("db", "web"):
            self._asked[name] = 1
            self._rest.create(_template(name, 1))
        for _ in range(8):
            self._add_node()

    def stir(self) -> None:
        """Make one random change."""
        change = self._random.choices((self._add_node, self._grow, self._lose_node, self._mark, self._drift), _WEIGHTS)
        with contextlib.suppress(OSError, http.client.HTTPException, RestError, TimeoutError):
            change[0]()

    def settle(self) -> None:
        """Wait until every template has what it asks for, and nobody writes any more."""
        for name, asked in self._asked.items():
            self._rest.call("PATCH", f"{TEMPLATES}/{name}", {"spec": {"nodes": asked}}, content_type=_MERGE)
        for _ in range(sum(self._asked.values()) + 2):
            self._add_node()
        until(lambda: self._owned() == self._asked, f"the templates have {self._asked}", 120)
        until(self._is_quiet, "nothing is written any more", 60)

    def _is_quiet(self) -> bool:
        """True if nothing is written for the time of some reads."""
        before = self._versions()
        return all(self._versions() == before for _ in range(20))

    def violations(self, observed: Iterable[Observed]) -> Iterator[str]:
        """Yield what must never have been, with the resourceVersion at which it was."""
        owners: dict[str, str] = {}
        nodes: dict[str, Any] = {}
        asked: dict[str, int] = {}
        for event in observed:
            at = f"at {event.revision}: "
            if event.path == TEMPLATES:
                asked[event.name] = event.object["spec"]["nodes"] if event.object else 0
                continue
            before, now = nodes.get(event.name), event.object
            nodes[event.name] = now
            if now is None:
                owners.pop(event.name, None)
                continue
            was, owner = owners.get(event.name, ""), now["metadata"]["labels"].get(names.TEMPLATE_LABEL, "")
            owners[event.name] = owner
            if was and owner and owner != was:
                yield f"{at}node {event.name} went from {was} to {owner}"
            if owner and not was and (has := Counter(owners.values())[owner]) > asked.get(owner, 0):
                yield f"{at}{owner} asked for {asked.get(owner, 0)} nodes and got {has}"
            for lost in sorted(_foreign(before) - _foreign(now)):
                yield f"{at}node {event.name} lost {lost}"

    def _owned(self) -> dict[str, int]:
        found = [node["metadata"]["labels"].get(names.TEMPLATE_LABEL) for node in self._nodes()]
        return {name: found.count(name) for name in self._asked}

    def _versions(self) -> dict[str, str]:
        listed = [*self._nodes(), *self._rest.get(TEMPLATES)["items"]]
        return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in listed}

    def _nodes(self) -> list[Any]:
        found: list[Any] = self._rest.get(NODES)["items"]
        return found

    def _add_node(self) -> None:
        self._count += 1
        self._rest.create(_node(f"n{self._count}", self._random.choice("abc")))

    def _grow(self) -> None:
        name = self._random.choice(sorted(self._asked))
        if self._asked[name] < _MOST_ASKED:
            self._asked[name] += 1  # Also if the answer is lost: `settle` asks again.
            body = {"spec": {"nodes": self._asked[name]}}
            self._rest.call("PATCH", f"{TEMPLATES}/{name}", body, content_type=_MERGE)

    def _pick(self) -> str:
        name: str = self._random.choice(self._nodes())["metadata"]["name"]
        return name

    def _lose_node(self) -> None:
        if len(self._nodes()) > _FEWEST_NODES:
            self._rest.call("DELETE", f"{NODES}/{self._pick()}")

    def _mark(self) -> None:
        """Set a foreign label and annotation, which must stay."""
        key = f"{_FOREIGN}{self._random.randrange(1000)}"
        metadata = {"labels": {key: "label"}, "annotations": {key: "annotation"}}
        self._rest.call("PATCH", f"{NODES}/{self._pick()}", {"metadata": metadata}, content_type=_MERGE)

    def _drift(self) -> None:
        """Break what a template has set on a node."""
        metadata = {"labels": {"team": "drifted"}}
        self._rest.call("PATCH", f"{NODES}/{self._pick()}", {"metadata": metadata}, content_type=_MERGE)


def _foreign(node: Any) -> set[str]:
    if node is None:
        return set()
    labels = {f"label {key}" for key in node["metadata"].get("labels") or () if key.startswith(_FOREIGN)}
    notes = {f"annotation {key}" for key in node["metadata"].get("annotations") or () if key.startswith(_FOREIGN)}
    taints = {f"taint {each['key']}" for each in node["spec"].get("taints") or () if each["key"].startswith(_FOREIGN)}
    return labels | notes | taints


def _template(name: str, nodes: int) -> dict[str, Any]:
    metadata = {"labels": {"team": name}}
    taints = [{"key": "team", "value": name, "effect": "NoSchedule"}]
    template = {"metadata": metadata, "spec": {"taints": taints}}
    spec = {"selector": {"matchLabels": {"chaos": "spare"}}, "nodes": nodes, "template": template}
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {"name": name}, "spec": spec}


def _node(name: str, zone: str) -> dict[str, Any]:
    labels = {"chaos": "spare", ZONE: zone, f"{_FOREIGN}always": "label"}
    taint = {"key": f"{_FOREIGN}always", "effect": "PreferNoSchedule"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [_SPARE, taint]},
        "status": {"conditions": [ready], "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
