"""Audit logs of test servers: what is written into them, and how a test finds what concerns it."""

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
"""Writes, without their bodies."""


def events_about(log: Path, text: str) -> list[dict[str, Any]]:
    """The events in which this text stands: the name of a namespace or of an object, say."""
    with log.open() as lines:
        return [json.loads(line) for line in lines if text in line]
