"""The context of one request for a resource, and the encoding of its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.apiserver.negotiation import Form, Shape
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.resources import Resource, Version
from nodeyard.apiserver.responses import decode, encode, object_bytes, partial, pretty
from nodeyard.apiserver.store import Stored
from nodeyard.apiserver.tables import include_object, table
from nodeyard.apiserver.transport import Request, Response, User
from nodeyard.apiserver.worker_thread import LARGE, Work, is_large_body
from nodeyard.kube import manifests
from nodeyard.kube.json import Json, Object
from nodeyard.process.clock import Clock

_WARNINGS_MAX = 4 * 1024
_WARNING_MAX = 256


@dataclass(slots=True)
class RequestContext:
    """A request for a resource: authenticated, authorized and routed."""

    request: Request
    info: RequestInfo
    user: User
    resource: Resource
    version: str
    form: Form
    clock: Clock
    work: Work
    """The request's work in the worker thread."""
    warnings: list[str] = field(default_factory=list)
    audit: dict[str, str] = field(default_factory=dict)
    """Audit annotations of admission."""
    is_growing: bool = False
    """Set for a patch whose result may be far larger than the patch."""
    has_floats: bool = False
    """True if the body may contain floats; those without a fraction are stored as integers."""

    @property
    def is_large(self) -> bool:
        """True if the body is so large that it is handled in the worker thread."""
        return self.is_growing or is_large_body(self.request)

    def makes_large(self, stored: Stored) -> bool:
        """True if a change of this object is handled in the worker thread."""
        return self.is_large or len(stored.raw) > LARGE

    @property
    def is_plain(self) -> bool:
        """True if the stored bytes are the answer: the object as plain JSON."""
        return self.form.shape is Shape.OBJECT and not self.form.is_yaml and not self.request.param("pretty")

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
        """Return a stored object in the version of this request."""
        obj = stored.object()
        obj["apiVersion"] = self.api_version
        return obj

    def answer_stored(self, stored: Stored, status: int = 200) -> Response:
        if self.form.shape is Shape.OBJECT and not self.form.is_yaml:
            return self.answer_bytes(object_bytes(self.resource, stored, self.version), status)
        return self.answer(self.read(stored), status)

    def answer(self, obj: Object, status: int = 200) -> Response:
        """Answer an object that is not stored: of a dry run, a Scale, a Status."""
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
        return [("Warning", warning_header(text)) for text in _within_limit(list(dict.fromkeys(self.warnings)))]


def json_response(request: Request, body: bytes, status: int = 200, *, is_yaml: bool = False) -> Response:
    if is_yaml:
        text = manifests.dump(decode(body))
        return Response(status, text.encode(), content_type="application/yaml")
    if request.query and request.param("pretty") in ("true", "1"):
        body = pretty(body)
    return Response(status, body)


def value_response(request: Request, value: Json, status: int = 200) -> Response:
    return json_response(request, encode(value), status)


def _within_limit(warnings: list[str]) -> list[str]:
    """Truncate and drop warnings beyond the limit, as the real server does.

    See https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go
    """
    used = 0
    is_cut = False
    for position, text in enumerate(warnings):
        if is_cut and used >= _WARNINGS_MAX:
            return [each[:_WARNING_MAX] for each in warnings[:position]]
        size = min(len(text), _WARNING_MAX) if is_cut else len(text)
        if not is_cut and used + size > _WARNINGS_MAX:
            is_cut = True
            used = sum(min(len(each), _WARNING_MAX) for each in warnings[: position + 1])
            continue
        used += size
    return [each[:_WARNING_MAX] for each in warnings] if is_cut else warnings


def warning_header(text: str) -> str:
    """Format a warning of RFC 7234 with code 299 and without agent, as the real server does."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
