"""One request on its way through the server, and how its answer is put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.apiserver.http import Request, Response, User
from nodeyard.apiserver.negotiation import Form, Shape
from nodeyard.apiserver.rendering import decode, encode, object_bytes, partial, pretty
from nodeyard.apiserver.requests import RequestInfo
from nodeyard.apiserver.resources import Resource, Version
from nodeyard.apiserver.store import Stored
from nodeyard.apiserver.tables import include_object, table
from nodeyard.kube import manifests
from nodeyard.kube.json import Json, Object
from nodeyard.process.clock import Clock


@dataclass(slots=True)
class Call:
    """A request for a resource: authenticated, authorized and routed."""

    request: Request
    info: RequestInfo
    user: User
    resource: Resource
    version: str
    form: Form
    clock: Clock
    warnings: list[str] = field(default_factory=list)
    audit: dict[str, str] = field(default_factory=dict)
    """What admission wants the audit log to say."""

    @property
    def namespace(self) -> str:
        return self.info.namespace if self.resource.namespaced else ""

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def typed(self) -> Version:
        return self.resource.versions[self.version]

    @property
    def api_version(self) -> str:
        return self.resource.api_version(self.version)

    def read(self, stored: Stored) -> Object:
        """A stored object in the version of this request."""
        obj = stored.object()
        obj["apiVersion"] = self.api_version
        return obj

    def answer_stored(self, stored: Stored, status: int = 200) -> Response:
        if self.form.shape is Shape.OBJECT and not self.form.is_yaml:
            return self.answer_bytes(object_bytes(self.resource, stored, self.version), status)
        return self.answer(self.read(stored), status)

    def answer(self, obj: Object, status: int = 200) -> Response:
        """An object that is not, or not yet, stored: a dry run's, a Scale, a Status."""
        shape = self.form.shape
        if shape is Shape.TABLE and obj.get("kind") == self.resource.kind:
            obj = table(
                self.resource,
                self.version,
                [obj],
                now=self.clock.now(),
                include=include_object(self.request.param("includeObject")),
                metadata={"resourceVersion": obj["metadata"].get("resourceVersion", "")},
            )
        elif shape is Shape.METADATA and obj.get("kind") == self.resource.kind:
            obj = partial(obj)
        return self.answer_bytes(encode(obj), status)

    def answer_bytes(self, body: bytes, status: int = 200) -> Response:
        return self.finish(json_response(self.request, body, status, is_yaml=self.form.is_yaml))

    def finish(self, response: Response) -> Response:
        response.headers.extend(self.warning_headers())
        return response

    def warning_headers(self) -> list[tuple[str, str]]:
        return [("Warning", warning_header(text)) for text in dict.fromkeys(self.warnings)]


def json_response(request: Request, body: bytes, status: int = 200, *, is_yaml: bool = False) -> Response:
    if is_yaml:
        text = manifests.dump(decode(body))
        return Response(status, text.encode(), content_type="application/yaml")
    if request.query and request.param("pretty") in ("true", "1"):
        body = pretty(body)
    return Response(status, body)


def value_response(request: Request, value: Json, status: int = 200) -> Response:
    return json_response(request, encode(value), status)


def warning_header(text: str) -> str:
    """RFC 7234's 299, the agent left out as the real server does."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
