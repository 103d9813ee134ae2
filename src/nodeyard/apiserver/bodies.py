"""From the bytes of a request to an object: of the right kind, nothing unknown unless that is allowed.

Built-in kinds may also come as protocol buffers, as Go's typed clients send them.
"""

from __future__ import annotations

import msgspec

from nodeyard.apiserver import declared, errors, jsontext, requests, typing, yamltext
from nodeyard.apiserver.calls import Call
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.http import Request
from nodeyard.apiserver.kinds import protobuf
from nodeyard.apiserver.options import FieldValidation
from nodeyard.apiserver.resources import GroupVersionKind
from nodeyard.kube.json import Json, Object
from nodeyard.schema.duplicates import duplicate_fields

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_ACCEPTED = (JSON, YAML, PROTOBUF)

# The one kind that is not told to be unrecognized: its parser's words stand alone.
_OPTIONS = "DeleteOptions"
_DELETE_OPTIONS = GroupVersionKind("", "v1", _OPTIONS)
# As much of a body as a complaint shows.
_SHOWN = 30

_NO_KIND = "couldn't get version/kind; json parse error"
_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'

_decode = msgspec.json.Decoder().decode


def media_type(request: Request) -> str:
    return request.headers.get("content-type", JSON).split(";", 1)[0].strip().lower() or JSON


def parse_json(raw: bytes) -> Json:
    """Raises ValueError with the parser's words."""
    try:
        return _decode(raw)
    except UnicodeDecodeError:
        return parse_json(_readable(raw))
    except msgspec.DecodeError as fault:
        raise ValueError(jsontext.fault(raw) or str(fault)) from fault
    except RecursionError as fault:
        raise ValueError(jsontext.fault(raw) or "exceeded max depth") from fault


def _readable(raw: bytes) -> bytes:
    """With a replacement character for what is no UTF-8."""
    return raw.decode(errors="replace").encode()


def _duplicates(raw: bytes) -> list[str]:
    try:
        return duplicate_fields(raw)
    except UnicodeDecodeError:
        return duplicate_fields(_readable(raw))


def parse(request: Request, kind: str) -> Json:
    """The body as a value; 415 for a format that is not served, 400 for one that does not parse."""
    found = media_type(request)
    if found == JSON:
        try:
            return parse_json(request.body)
        except ValueError as fault:
            raise _unparsable(request, kind, fault) from fault
    if found == YAML:
        try:
            return yamltext.load(request.body)
        except ValueError as fault:
            raise _unrecognized(request, kind, str(fault)) from fault
    if found == PROTOBUF:
        return _parse_protobuf(request, kind)
    raise errors.unsupported_media_type(_ACCEPTED)


def parse_object(request: Request, kind: str) -> Object:
    """The body as an object; null is one without fields."""
    value = parse(request, kind)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _unparsable(request, kind, f"json: cannot unmarshal {json_type(value)} into Go value of type {_META}")
    return value


def _parse_protobuf(request: Request, kind: str) -> Object:
    info = requests.parse(request)
    try:
        return protobuf.decode(request.body, protobuf.Kind(info.group, info.version, kind))
    except protobuf.EnvelopeError as fault:
        raise _unrecognized(request, kind, str(fault)) from fault
    except protobuf.ContentError as fault:
        found = fault.kind
        where = f'{found.kind} in version "{found.version}" cannot be handled as a {kind}: '
        raise errors.bad_request(f"{'' if kind == _OPTIONS else where}{fault}") from fault


def read_object(call: Call, validation: FieldValidation) -> Object:
    """The object in the body of a create or update: of the right kind, pruned and defaulted."""
    obj = of_kind(call, parse_object(call.request, call.resource.kind))
    duplicated = []
    if validation != "Ignore" and media_type(call.request) == JSON:
        duplicated = _duplicates(call.request.body)
    return settle(call, obj, validation, duplicated)


def read_delete_options(request: Request) -> Object:
    """The DeleteOptions in the body of a delete; any apiVersion will do."""
    body = parse_object(request, _OPTIONS)
    kind, api_version = body.get("kind") or _OPTIONS, body.get("apiVersion") or "meta.k8s.io/v1"
    if kind != _OPTIONS:
        raise errors.bad_request(declared.unknown_kind(str(kind), str(api_version)))
    try:
        return typing.read_unstored(_DELETE_OPTIONS, body)
    except typing.UnreadableError as fault:
        raise errors.bad_request(str(fault)) from fault


def read_posted(request: Request, wanted: GroupVersionKind, *others: str) -> Object:
    """An object of a kind that is never stored, as its type has it; `others` are apiVersions that will do as well."""
    body = parse_object(request, wanted.kind)
    if why := mistyped(body):
        raise _unrecognized(request, wanted.kind, why)
    if body.get("kind") != wanted.kind or body.get("apiVersion") not in others:
        body = declared.built_in(body, wanted)
    return settle_posted(body, wanted)


def settle_posted(body: Object, wanted: GroupVersionKind) -> Object:
    try:
        return typing.read_unstored(wanted, body)
    except typing.UnreadableError as fault:
        told = f'{wanted.kind} in version "{body["apiVersion"].rpartition("/")[2]}"'
        raise errors.bad_request(f"{told} cannot be handled as a {wanted.kind}: {fault}") from fault


def mistyped(obj: Object) -> str:
    """What is wrong with a kind or an apiVersion that is no text; empty where nothing is."""
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name) or "", str):
            found = json_type(obj[name])
            return f"{_NO_KIND}: json: cannot unmarshal {found} into Go struct field .{name} of type string"
    return ""


def of_kind(call: Call, obj: Object) -> Object:
    """With kind and apiVersion of the endpoint; 400 where the object says otherwise."""
    if why := mistyped(obj):
        raise _unrecognized(call.request, call.resource.kind, why)
    wanted = call.resource.gvk(call.version)
    if not call.resource.is_custom:
        return declared.built_in(obj, wanted)
    if not obj.get("kind"):
        text = call.request.body.decode(errors="replace")
        raise _unrecognized(call.request, call.resource.kind, f"Object 'Kind' is missing in '{text}'")
    declared.check_custom(obj, wanted)
    return obj


def json_type(value: Json) -> str:
    """The type of a value as Go's JSON names it."""
    return {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")


def settle(call: Call, obj: Object, validation: FieldValidation, duplicated: list[str] | None = None) -> Object:
    """What decoding does to any object on its way in: fields that do not exist go, defaults come."""
    try:
        obj, unknown = typing.read(call.resource, call.version, obj)
    except typing.UnreadableError as fault:
        raise errors.bad_request(
            f'{call.resource.kind} in version "{call.version}" cannot be handled as a {call.resource.kind}: {fault}'
        ) from fault
    complaints = [f'unknown field "{path}"' for path in unknown]
    repeated = [f'duplicate field "{path}"' for path in duplicated or ()]
    complaints = repeated + complaints if call.resource.is_custom else complaints + repeated
    if complaints and validation == "Strict":
        raise StrictError(call, complaints)
    if complaints and validation == "Warn":
        call.warnings.extend(complaints)
    return obj


class StrictError(ApiError):
    """Unknown or duplicate fields where fieldValidation=Strict allows none."""

    def __init__(self, call: Call, complaints: list[str]) -> None:
        self.text = f"strict decoding error: {', '.join(complaints)}"
        super().__init__(
            400,
            "BadRequest",
            f'{call.resource.kind} in version "{call.version}" cannot be handled as a {call.resource.kind}: '
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
