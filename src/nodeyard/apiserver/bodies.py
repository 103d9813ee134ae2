"""From the bytes of a request to an object: of the right kind, nothing unknown unless that is allowed.

Built-in kinds may also come as protocol buffers, as Go's typed clients send them.
"""

from __future__ import annotations

import msgspec

from nodeyard.apiserver import errors, requests, typing
from nodeyard.apiserver.calls import Call
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.http import Request
from nodeyard.apiserver.kinds import protobuf
from nodeyard.apiserver.options import FieldValidation
from nodeyard.kube import manifests
from nodeyard.kube.json import Json, Object
from nodeyard.schema.duplicates import duplicate_fields

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_ACCEPTED = (JSON, YAML, PROTOBUF)

# The one kind that is not told to be unrecognized: its parser's words stand alone.
_OPTIONS = "DeleteOptions"
# As much of a body as a complaint shows.
_SHOWN = 30

_decode = msgspec.json.Decoder().decode


def media_type(request: Request) -> str:
    return request.headers.get("content-type", JSON).split(";", 1)[0].strip().lower() or JSON


def parse_json(raw: bytes) -> Json:
    """Raises ValueError with the parser's words."""
    try:
        return _decode(raw)
    except msgspec.DecodeError as fault:
        if raw.strip() in (b"", b"{", b"["):
            raise ValueError("unexpected end of JSON input") from fault
        raise ValueError(str(fault)) from fault
    except RecursionError as fault:
        raise ValueError("exceeded max depth") from fault


def parse(request: Request, kind: str) -> Json:
    """The body as a value; 415 for a format that is not served, 400 for one that does not parse."""
    found = media_type(request)
    if found == JSON:
        try:
            return parse_json(request.body)
        except ValueError as fault:
            raise _unrecognized(request, kind, f"couldn't get version/kind; json parse error: {fault}") from fault
    if found == YAML:
        try:
            return manifests.load(request.body)
        except manifests.ManifestError as fault:
            raise _unrecognized(request, kind, f"couldn't get version/kind; json parse error: {fault}") from fault
    if found == PROTOBUF:
        return _parse_protobuf(request, kind)
    raise errors.unsupported_media_type(_ACCEPTED)


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
    value = parse(call.request, call.resource.kind)
    if not isinstance(value, dict):
        kind = {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")
        raise _unrecognized(
            call.request,
            call.resource.kind,
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
        )
    obj = of_kind(call, value)
    duplicated = []
    if validation != "Ignore" and media_type(call.request) == JSON:
        duplicated = duplicate_fields(call.request.body)
    return settle(call, obj, validation, duplicated)


def of_kind(call: Call, obj: Object) -> Object:
    """With kind and apiVersion of the endpoint; 400 where the object says otherwise."""
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if kind == call.resource.kind and api_version == call.api_version:
        return obj
    if call.resource.is_custom:
        raise _wrong_custom(call, obj)
    if kind is None and api_version is None:
        return {"kind": call.resource.kind, "apiVersion": call.api_version, **obj}
    if kind is not None and api_version is not None and not isinstance(kind, str):
        raise _unrecognized(call.request, call.resource.kind, "couldn't get version/kind; json parse error")
    if kind == call.resource.kind or not kind:
        if not api_version:
            return {**obj, "kind": call.resource.kind, "apiVersion": call.api_version}
        raise errors.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({call.api_version})"
        )
    version = str(api_version or call.version).rpartition("/")[2]
    raise errors.bad_request(
        f'{kind} in version "{version}" cannot be handled as a {call.resource.kind}: no kind "{kind}" is registered '
        f'for version "{api_version}"'
    )


def _wrong_custom(call: Call, obj: Object) -> ApiError:
    if not obj.get("kind"):
        text = call.request.body.decode(errors="replace")
        return _unrecognized(call.request, call.resource.kind, f"Object 'Kind' is missing in '{text}'")
    if obj.get("apiVersion") != call.api_version:
        return errors.bad_request(
            f"the API version in the data ({obj.get('apiVersion', '')}) does not match the expected API version "
            f"({call.api_version})"
        )
    return errors.bad_request(
        f"the object provided is unrecognized (must be of type {call.resource.kind}): it is a {obj['kind']}"
    )


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


def _unrecognized(request: Request, kind: str, why: str) -> ApiError:
    if kind == _OPTIONS:
        return errors.bad_request(why)
    shown = request.body[:_SHOWN]
    text = shown.decode(errors="replace") if shown.startswith(b"{") else shown.hex() or "<empty>"
    more = " ..." if len(request.body) > _SHOWN else ""
    return errors.bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({text}{more})")
