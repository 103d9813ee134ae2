"""The four kinds of patch, each as a transform of the object as it is.

JSON patch and merge patch work on plain values, strategic merge patch on the merge keys of built-in types, server-side
apply on field ownership. What they give is then read like the body of an update: typed, pruned and defaulted.
"""

from __future__ import annotations

from typing import NamedTuple

from nodeyard.apiserver import declared, errors, ownership, yamltext
from nodeyard.apiserver.bodies import (
    StrictError,
    json_type,
    media_type,
    mistyped,
    parse_json,
    settle,
    settle_posted,
)
from nodeyard.apiserver.calls import Call
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.gotext import plain
from nodeyard.apiserver.options import WriteOptions, write_options
from nodeyard.apiserver.rendering import encode
from nodeyard.apiserver.resources import GroupVersionKind
from nodeyard.apiserver.strategic import strategic_merge_patch
from nodeyard.apiserver.writing import Transform, Writer, Written
from nodeyard.kube import fields
from nodeyard.kube.json import Json, Object
from nodeyard.kube.patch import PatchError, json_patch, merge_patch

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_ALL = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class Patch(NamedTuple):
    kind: str
    body: Json
    options: WriteOptions

    @property
    def is_apply(self) -> bool:
        return self.kind == APPLY_PATCH


def read_patch(call: Call) -> Patch:
    kind = media_type(call.request)
    if kind not in _ALL:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    if kind == STRATEGIC_PATCH and call.resource.is_custom:
        raise errors.unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    options = write_options(call.request, "PatchOptions", is_apply=kind == APPLY_PATCH)
    return Patch(kind, _body(call, kind), options)


def _body(call: Call, kind: str) -> Json:
    if kind == APPLY_PATCH:
        return _apply_body(call)
    try:
        body = parse_json(call.request.body)
    except ValueError as fault:
        raise errors.bad_request(f"error decoding patch: {fault}") from fault
    if kind != JSON_PATCH and not isinstance(body, dict):
        step = "error decoding patch: " if kind == MERGE_PATCH else ""
        raise errors.bad_request(
            f"{step}json: cannot unmarshal {json_type(body)} into Go value of type map[string]interface {{}}"
        )
    if kind == JSON_PATCH and not isinstance(body, list):
        raise errors.bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    return body


def _apply_body(call: Call) -> Object:
    try:
        body = yamltext.load(call.request.body)
    except ValueError as fault:
        raise errors.bad_request(f"error decoding YAML: error converting YAML to JSON: {fault}") from fault
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise errors.bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_type(body)} into Go value of type map[string]interface {{}}"
        )
    return body


async def patch(writer: Writer, call: Call, given: Patch, subresource: str = "") -> Written:
    if not given.is_apply:
        return await writer.change(call, _transform(call, given), given.options, subresource=subresource)
    return await _apply(writer, call, given, subresource)


def _transform(call: Call, given: Patch) -> Transform:
    def transform(old: Object) -> Object:
        new = patched(call, given, old)
        if new is old:
            return old
        return _settled(call, new, given.options)

    return transform


def patched(call: Call, given: Patch, old: Object) -> Object:
    """The value that a JSON, merge or strategic patch makes of another."""
    try:
        if given.kind == MERGE_PATCH:
            new = merge_patch(old, given.body)
        elif given.kind == JSON_PATCH:
            new = json_patch(old, given.body)
        else:
            new = strategic_merge_patch(call.typed.schema, old, given.body)
    except PatchError as fault:
        raise _refused(fault) from fault
    if not isinstance(new, dict):
        raise _unprocessable()
    return new


def _refused(fault: PatchError) -> ApiError:
    return ApiError(fault.code, fault.reason, fault.message, details={} if fault.code == 422 else None)


def _unprocessable() -> ApiError:
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", details={})


def _settled(call: Call, new: Object, options: WriteOptions) -> Object:
    """Read like a body; but what a patch makes is refused as a bad patch, not as a bad object."""
    if call.resource.is_custom:
        declared.check_custom(new, call.resource.gvk(call.version))
    elif why := mistyped(new):
        raise _bad_patch(new, why)
    try:
        if not call.resource.is_custom:
            new = declared.built_in(new, call.resource.gvk(call.version))
        return settle(call, new, options.field_validation)
    except ApiError as fault:
        if fault.code != 400 or (call.resource.is_custom and not isinstance(fault, StrictError)):
            raise
        raise _bad_patch(new, fault.text if isinstance(fault, StrictError) else _reason(fault)) from fault


def patched_posted(call: Call, given: Patch, old: Object, wanted: GroupVersionKind) -> Object:
    """The same of an object that is shown but not stored, a Scale."""
    new = patched(call, given, old)
    if why := mistyped(new):
        raise _bad_patch(new, why)
    try:
        return settle_posted(declared.built_in(new, wanted), wanted)
    except ApiError as fault:
        raise _bad_patch(new, _reason(fault)) from fault


def _reason(fault: ApiError) -> str:
    """What is wrong with an object, without the word on which object."""
    return fault.message.partition(": ")[2]


def _bad_patch(new: Object, why: str) -> ApiError:
    return errors.invalid("", "", "", [fields.invalid("patch", encode(new).decode(), why)])


async def _apply(writer: Writer, call: Call, given: Patch, subresource: str) -> Written:
    config = _configuration(call, given.body)
    options = given.options

    def merged(live: Object | None) -> Object:
        try:
            result = ownership.apply(
                call.typed.schema,
                live,
                config,
                manager=options.field_manager,
                force=bool(options.force),
                api_version=call.api_version,
                subresource=subresource,
                now=call.clock.now(),
                reset=call.resource.strategy.reset_fields(subresource),
            )
        except ownership.ApplyConflict as conflict:
            raise _conflict(conflict) from conflict
        except ownership.ApplyError as fault:
            raise ApiError(fault.code, fault.reason, str(fault)) from fault
        return result if result is live else settle(call, result, "Ignore")

    try:
        return await writer.change(call, merged, options, subresource=subresource, is_owned=True)
    except ApiError as fault:
        if fault.code != 404 or subresource:
            raise
    if not config["metadata"].get("name"):
        raise errors.bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        )
    if uid := config["metadata"].get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise errors.conflict(call.resource.group, call.resource.plural, call.name, why)
    return await writer.create(call, merged(None), options, is_owned=True)


def _configuration(call: Call, body: Object) -> Object:
    kind, api_version = body.get("kind", ""), body.get("apiVersion", "")
    if (kind, api_version) != (call.resource.kind, call.api_version):
        group, _, version = str(api_version).rpartition("/")
        raise errors.bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    given = body.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise _untyped(call, f".metadata: expected map, got &{{{plain(given)}}}")
    given = given or {}
    if not isinstance(given.get("name", ""), str):
        shown = f"&value.valueUnstructured{{Value:{plain(given['name'])}}}"
        raise _untyped(call, f".metadata.name: expected string, got {shown}")
    if given.get("name", call.name) != call.name:
        raise errors.bad_request(
            f"the name of the object ({given['name']}) does not match the name on the URL ({call.name})"
        )
    return {**body, "metadata": given}


def _untyped(call: Call, why: str) -> ApiError:
    kind = f"{call.resource.group}/{call.version}, Kind={call.resource.kind}"
    return ApiError(500, "", f"failed to create typed patch object (/; {kind}): {why}")


def _conflict(conflict: ownership.ApplyConflict) -> ApiError:
    return ApiError(409, "Conflict", str(conflict), details={"causes": conflict.causes()})
