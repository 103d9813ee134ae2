"""Request bodies: from bytes to an object of the right kind, with field validation.

Built-in kinds may also come as protocol buffers, as Go's typed clients send them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from nodeyard.apiserver import codec, errors, json_syntax_errors, kind_check, request_info, yaml_decoder
from nodeyard.apiserver.duplicate_keys import duplicate_fields
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.kinds import protobuf
from nodeyard.apiserver.options import FieldValidation
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.resources import GroupVersionKind
from nodeyard.apiserver.transport import Request
from nodeyard.apiserver.worker_thread import BATCH
from nodeyard.apiserver.writes import MAX_LEVELS
from nodeyard.kube.json import Json, Object, read_float

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
APPLY_PATCH = "application/apply-patch+yaml"
_ACCEPTED = (JSON, YAML, PROTOBUF)

# The one kind whose parse errors come without "the object provided is unrecognized".
_OPTIONS = "DeleteOptions"
_DELETE_OPTIONS = GroupVersionKind("", "v1", _OPTIONS)
# The number of bytes of a body that an error shows.
_SHOWN = 30

# A body with more bytes for each comma is deep rather than long.
_SPARSE = 64
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode

_NO_KIND = "couldn't get version/kind; json parse error"
_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def media_type(request: Request) -> str:
    return request.headers.get("content-type", JSON).split(";", 1)[0].strip().lower() or JSON


def _parse_json(raw: bytes) -> tuple[Json, bool]:
    """Return the value, and whether it contains floats; raise ValueError with the parser's message."""
    try:
        return _decode(raw)
    except UnicodeDecodeError:
        return _parse_json(_readable(raw))
    except msgspec.DecodeError as fault:
        raise ValueError(json_syntax_errors.fault(raw) or str(fault)) from fault
    except RecursionError as fault:
        raise ValueError(json_syntax_errors.fault(raw) or "exceeded max depth") from fault


def _decode(raw: bytes) -> tuple[Json, bool]:
    floats: list[str] = []

    def note(text: str) -> float:
        floats.append(text)
        return read_float(text)

    decode = msgspec.json.Decoder(float_hook=note).decode
    is_nested = len(raw) > BATCH and raw.count(b",") * _SPARSE < len(raw)
    value = _decode_in_pieces(raw.strip(), decode, MAX_LEVELS) if is_nested else decode(raw)
    return value, bool(floats)


def _decode_in_pieces(raw: bytes | msgspec.Raw, decode: Callable[[bytes | msgspec.Raw], Json], levels: int) -> Json:
    """Decode a large body of few but deep values in many steps.

    A single step would hold the interpreter for 150 ms, and the event loop with it, whichever thread does it.
    """
    view = memoryview(raw)
    if len(view) <= BATCH or not levels or view[0] not in b"{[":
        return decode(raw)
    if view[0] == ord("{"):
        return {name: _decode_in_pieces(each, decode, levels - 1) for name, each in _decode_members(raw).items()}
    return [_decode_in_pieces(each, decode, levels - 1) for each in _decode_items(raw)]


def _readable(raw: bytes) -> bytes:
    """Replace invalid UTF-8 with the replacement character."""
    return raw.decode(errors="replace").encode()


class Document:
    """A decoded body in JSON or YAML. ValueError, with the parser's message, if it cannot be decoded."""

    def __init__(self, raw: bytes, *, is_yaml: bool) -> None:
        self.is_yaml = is_yaml
        self._raw = raw
        self._repeated: list[str] | None = None
        self.value: Json
        self.has_floats = True
        if is_yaml:
            self.value, self._repeated = _read_yaml(raw)
        else:
            self.value, self.has_floats = _parse_json(raw)

    @property
    def repeated(self) -> list[str]:
        """Duplicate fields: their paths in JSON, the parser's messages in YAML."""
        if self._repeated is None:
            try:
                self._repeated = duplicate_fields(self._raw, self.value)
            except UnicodeDecodeError:
                self._repeated = duplicate_fields(_readable(self._raw))
        return self._repeated

    def complaints(self, validation: FieldValidation) -> list[str]:
        """The field validation errors of duplicate fields: in YAML one error that lists them, or a warning each."""
        if validation == "Ignore" or not self.repeated:
            return []
        if not self.is_yaml:
            return [f'duplicate field "{path}"' for path in self.repeated]
        return [yaml_refusal(self.repeated)] if validation == "Strict" else self.repeated


def yaml_refusal(repeated: list[str]) -> str:
    """The error of Go's strict YAML parser for duplicate keys."""
    return "yaml: unmarshal errors:\n  " + "\n  ".join(repeated)


def _read_yaml(raw: bytes) -> tuple[Json, list[str]]:
    """Decode YAML. Most clients apply JSON, which is also YAML and decodes a hundred times as fast."""
    if raw.lstrip()[:1] == b"{":
        try:
            value, _ = _decode(raw)
            if not duplicate_fields(raw, value):
                return value, []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return yaml_decoder.load(raw)


def document(request: Request) -> Document:
    """Return the decoded body, decoding it unless `read_ahead` has."""
    ahead = request.document
    if isinstance(ahead, ValueError):
        raise ahead
    if ahead is not None:
        found: Document = ahead
        return found
    return Document(request.body, is_yaml=media_type(request) in (YAML, APPLY_PATCH))


def read_ahead(request: Request) -> Request:
    """Return the request with its decoded body; pure, so that it can run off the loop."""
    if media_type(request) == PROTOBUF:
        return request
    outcome: Document | ValueError
    try:
        outcome = document(request)
        outcome.repeated  # noqa: B018
    except ValueError as fault:
        outcome = fault
    return replace(request, document=outcome)


def _parse(request: Request, kind: str) -> Document:
    """Return the decoded body; raise a 415 for another format, a 400 if it does not parse."""
    found = media_type(request)
    if found not in (JSON, YAML):
        raise errors.unsupported_media_type(_ACCEPTED)
    try:
        return document(request)
    except ValueError as fault:
        raise (_unparsable if found == JSON else _unrecognized)(request, kind, str(fault)) from fault


def parse_object(request: Request, kind: str) -> Object:
    """Return the body as an object; null is an empty object."""
    if media_type(request) == PROTOBUF:
        return _decode_protobuf(request, kind)
    return _object(request, _parse(request, kind).value, kind)


def _object(request: Request, value: Json, kind: str) -> Object:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _unparsable(request, kind, f"json: cannot unmarshal {json_type(value)} into Go value of type {_META}")
    return value


def _decode_protobuf(request: Request, kind: str) -> Object:
    info = request_info.parse(request)
    try:
        return protobuf.decode(request.body, protobuf.Kind(info.group, info.version, kind))
    except protobuf.EnvelopeError as fault:
        raise _unrecognized(request, kind, str(fault)) from fault
    except protobuf.ContentError as fault:
        found = fault.kind
        where = f'{found.kind} in version "{found.version}" cannot be handled as a {kind}: '
        raise errors.bad_request(f"{'' if kind == _OPTIONS else where}{fault}") from fault


def read_object(context: RequestContext, validation: FieldValidation) -> Object:
    """Return the object of a create or update: of the right kind, pruned and defaulted."""
    request, kind = context.request, context.resource.kind
    if media_type(request) == PROTOBUF:
        return decode_object(context, check_kind(context, _decode_protobuf(request, kind)), validation)
    read = _parse(request, kind)
    obj = check_kind(context, _object(request, read.value, kind))
    complaints = read.complaints(validation)
    if read.is_yaml or context.resource.is_custom:
        return decode_object(context, obj, validation, complaints, has_floats=read.has_floats)
    return decode_object(context, obj, validation, (), complaints)


def read_delete_options(request: Request) -> Object:
    """Return the DeleteOptions of a delete; any apiVersion is accepted."""
    body = parse_object(request, _OPTIONS)
    kind, api_version = body.get("kind") or _OPTIONS, body.get("apiVersion") or "meta.k8s.io/v1"
    if kind != _OPTIONS:
        raise errors.bad_request(kind_check.unknown_kind(str(kind), str(api_version)))
    try:
        return codec.read_unstored(_DELETE_OPTIONS, body)
    except codec.UnreadableError as fault:
        raise errors.bad_request(str(fault)) from fault


def read_unstored(request: Request, wanted: GroupVersionKind, *others: str) -> Object:
    """Return an object of a kind that is never stored; `others` are further accepted apiVersions."""
    body = parse_object(request, wanted.kind)
    if why := mistyped(body):
        raise _unrecognized(request, wanted.kind, why)
    if body.get("kind") != wanted.kind or body.get("apiVersion") not in others:
        body = kind_check.check_built_in(body, wanted)
    return decode_unstored(body, wanted)


def decode_unstored(body: Object, wanted: GroupVersionKind) -> Object:
    try:
        return codec.read_unstored(wanted, body)
    except codec.UnreadableError as fault:
        shown = f'{wanted.kind} in version "{body["apiVersion"].rpartition("/")[2]}"'
        raise errors.bad_request(f"{shown} cannot be handled as a {wanted.kind}: {fault}") from fault


def mistyped(obj: Object) -> str:
    """Return the error of a kind or apiVersion that is no string, else an empty string."""
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name), str | None):
            found = json_type(obj[name])
            return f"{_NO_KIND}: json: cannot unmarshal {found} into Go struct field .{name} of type string"
    return ""


def check_kind(context: RequestContext, obj: Object) -> Object:
    """Return the object with kind and apiVersion of the endpoint; raise a 400 if it has others."""
    if why := mistyped(obj):
        raise _unrecognized(context.request, context.resource.kind, why)
    wanted = context.resource.gvk(context.version)
    if not context.resource.is_custom:
        return kind_check.check_built_in(obj, wanted)
    if not obj.get("kind"):
        text = context.request.body.decode(errors="replace")
        raise _unrecognized(context.request, context.resource.kind, f"Object 'Kind' is missing in '{text}'")
    kind_check.check_custom(obj, wanted)
    return obj


def json_type(value: Json) -> str:
    """The name of the value's type in Go's JSON errors."""
    return {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")


def decode_object(
    context: RequestContext,
    obj: Object,
    validation: FieldValidation,
    first: Sequence[str] = (),
    last: Sequence[str] = (),
    *,
    has_floats: bool = True,
) -> Object:
    """Prune and default an object, and apply field validation.

    `first` and `last` are errors that come before and after those of unknown fields.
    """
    context.has_floats |= has_floats
    try:
        obj, unknown = codec.read(context.resource, context.version, obj)
    except codec.UnreadableError as fault:
        kind = context.resource.kind
        raise errors.bad_request(
            f'{kind} in version "{context.version}" cannot be handled as a {kind}: {fault}'
        ) from fault
    complaints = [*first, *(f'unknown field "{path}"' for path in unknown), *last]
    if complaints and validation == "Strict":
        raise StrictError(context, complaints)
    if complaints and validation == "Warn":
        context.warnings.extend(complaints)
    return obj


class StrictError(ApiError):
    """Unknown or duplicate fields under fieldValidation=Strict."""

    def __init__(self, context: RequestContext, complaints: list[str]) -> None:
        self.text = f"strict decoding error: {', '.join(complaints)}"
        super().__init__(
            400,
            "BadRequest",
            f'{context.resource.kind} in version "{context.version}" cannot be handled as a {context.resource.kind}: '
            f"{self.text}",
        )


def _unparsable(request: Request, kind: str, why: object) -> ApiError:
    return _unrecognized(request, kind, f"{_NO_KIND}: {why}")


def _unrecognized(request: Request, kind: str, why: str) -> ApiError:
    if kind == _OPTIONS:
        return errors.bad_request(why)
    shown = request.body[:_SHOWN]
    text = shown.decode(errors="replace") if shown.startswith(b"{") else shown.hex() or "<empty>"
    more = " ..." if len(request.body) > _SHOWN else ""
    return errors.bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({text}{more})")
