"""The audit log: one event for each answered request, in the form of audit.k8s.io/v1.

The level is Metadata and the stage ResponseComplete, so bodies are left out. Webhooks and policies add annotations.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from nodeyard.apiserver.access_reviews import user_info
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.transport import Request, Response, User
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339_micro

AuditSink = Callable[[Object], None]


def to_file(path: Path) -> AuditSink:
    """Appends each event to a file as a line of JSON."""

    def append(event: Object) -> None:
        with path.open("ab") as log:
            log.write(msgspec.json.encode(event) + b"\n")

    return append


class _Metadata(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Kind(msgspec.Struct):
    kind: str = ""


_decode_named = msgspec.json.Decoder(_Named).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode


@dataclass(slots=True)
class Trail:
    """A request in progress: `info` is None if it did not parse, `user` if it was not authenticated."""

    received: datetime
    info: RequestInfo | None = None
    user: User | None = None
    annotations: dict[str, str] = field(default_factory=dict)


def audit_event(trail: Trail, request: Request, response: Response, now: datetime) -> Object:
    query = urlencode([(name, value) for name, values in request.query.items() for value in values])
    event: Object = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": str(uuid.uuid4()),
        "stage": "ResponseComplete",
        "requestURI": f"{request.path}?{query}" if query else request.path,
        "verb": trail.info.verb if trail.info else request.method.lower(),
        "user": user_info(trail.user) if trail.user else {},
        "responseStatus": _status(response),
        "requestReceivedTimestamp": format_rfc3339_micro(trail.received),
        "stageTimestamp": format_rfc3339_micro(now),
    }
    if agent := request.headers.get("user-agent"):
        event["userAgent"] = agent
    if trail.info and trail.info.is_resource:
        event["objectRef"] = _reference(trail.info, request)
    if trail.annotations:
        event["annotations"] = dict(trail.annotations)
    return event


def _reference(info: RequestInfo, request: Request) -> Object:
    reference = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name or (_posted_name(request) if info.verb == "create" else ""),
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {key: value for key, value in reference.items() if value}


def _posted_name(request: Request) -> str:
    """Decode the name alone, which is quick for a large body too."""
    try:
        return _decode_named(request.body).metadata.name
    except (msgspec.DecodeError, RecursionError):
        return ""


def _status(response: Response) -> Object:
    """The answered Status, or the code alone if the answer is no Status."""
    status: Object = {"metadata": {}}
    if response.stream is None and response.chunks is None and _kind(response.body) == "Status":
        status_body = msgspec.json.decode(response.body)
        status |= {key: status_body[key] for key in ("status", "message", "reason", "details") if key in status_body}
    return {**status, "code": response.status}


def _kind(body: bytes) -> str:
    try:
        return _decode_kind(body).kind
    except (msgspec.DecodeError, RecursionError):
        return ""
