"""Audit policy of test servers, and lookup of audit events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]}],
}
"""Log write requests without their bodies."""


def find_events(log: Path, text: str) -> list[dict[str, Any]]:
    """Return the events that contain this text, such as the name of an object."""
    with log.open() as lines:
        return [json.loads(line) for line in lines if text in line]
