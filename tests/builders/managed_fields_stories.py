"""Sequences of writes by several managers, with the recorded responses of a real API server.

A story is written by hand in `NAME.yaml`; its responses are recorded in `NAME.json` beside it, without uids and
versions and with one fixed time, since these differ from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from nodeyard.kube.patch import merge_patch
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.testing.session import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC

from .managed_fields import ConfigMaps, Deployments, Nodes, Samples, Widgets

FOLDER = Path(__file__).parent.parent / "unit" / "apiserver" / "managed_fields_transcripts"
NAME = "walk"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
KINDS: dict[str, type[Samples]] = {each.kind: each for each in (Widgets, ConfigMaps, Nodes, Deployments)}
CONTENT_TYPES = {
    "create": JSON,
    "update": JSON,
    "merge": MERGE,
    "json": JSON_PATCH,
    "strategic": STRATEGIC,
    "apply": APPLY,
}
IDENTITIES = ("uid", "resourceVersion", "creationTimestamp", "generation", "namespace")


@dataclass(frozen=True)
class Move:
    """One write. The body of an update has the fields that the client changes in the object it read."""

    verb: str
    manager: str
    body: Any
    subresource: str = ""
    force: bool = False

    def sent(self, kind: type[Samples], live: dict[str, Any] | None) -> Any:
        if self.verb == "update":
            return merge_patch(live or {}, self.body)
        if self.verb not in ("create", "apply"):
            return self.body
        metadata = {"name": NAME, **self.body.get("metadata", {})}
        return {"apiVersion": kind.api_version, "kind": kind.kind, **self.body, "metadata": metadata}


@dataclass(frozen=True)
class Story:
    name: str
    kind: type[Samples]
    moves: list[Move]
    answers: list[dict[str, Any]] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[Move, dict[str, Any]]]:
        return zip(self.moves, self.answers, strict=True)

    def record(self, answers: list[dict[str, Any]]) -> None:
        lines = ",\n".join(json.dumps(answer, separators=(",", ":")) for answer in answers)
        (FOLDER / f"{self.name}.json").write_text(f"[\n{lines}\n]\n")


def stories() -> list[Story]:
    return [_load(path) for path in sorted(FOLDER.glob("*.yaml"))]


def _load(path: Path) -> Story:
    told = yaml.safe_load(path.read_text())
    answers = path.with_suffix(".json")
    return Story(
        path.stem,
        KINDS[told["kind"]],
        [Move(**step) for step in told["steps"]],
        json.loads(answers.read_text()) if answers.exists() else [],
    )


def stripped(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object without the fields that differ from run to run."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in IDENTITIES}
    if "managedFields" in metadata:
        entries = [
            {**entry, "time": format_rfc3339(MOMENT)} if "time" in entry else entry
            for entry in metadata["managedFields"]
        ]
        metadata["managedFields"] = sorted(entries, key=_place)
    return {**obj, "metadata": metadata}


def _place(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(name, "") for name in ("operation", "time", "manager", "apiVersion", "subresource"))
