"""The four kinds of patch, each as a transform of the current object.

JSON patch and merge patch work on plain values, strategic merge patch on the merge keys of built-in types, server-side
apply on field ownership. The result is then decoded like the body of an update: typed, pruned and defaulted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nodeyard.apiserver import errors, kind_check, managed_fields
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.options import FieldValidation, WriteOptions, write_options
from nodeyard.apiserver.request_body import (
    APPLY_PATCH,
    Document,
    StrictError,
    decode_object,
    decode_unstored,
    document,
    json_type,
    media_type,
    mistyped,
    yaml_refusal,
)
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.resources import GroupVersionKind
from nodeyard.apiserver.responses import encode
from nodeyard.apiserver.strategic_merge import strategic_merge_patch
from nodeyard.apiserver.writes import Transform, Writer, Written
from nodeyard.kube import fields
from nodeyard.kube.goformat import plain
from nodeyard.kube.json import Json, Object
from nodeyard.kube.patch import PatchError, has_copies, json_patch, merge_patch, unknown_members

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_ALL = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class Patch(NamedTuple):
    kind: str
    body: Json
    options: WriteOptions
    complaints: Sequence[str] = ()
    has_floats: bool = True

    @property
    def is_apply(self) -> bool:
        return self.kind == APPLY_PATCH


def read_patch(context: RequestContext) -> Patch:
    kind = media_type(context.request)
    if kind not in _ALL:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    if kind == STRATEGIC_PATCH and context.resource.is_custom:
        raise errors.unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    options = write_options(context.request, "PatchOptions", is_apply=kind == APPLY_PATCH)
    if kind == APPLY_PATCH:
        return Patch(kind, _apply_body(context, options.field_validation), options)
    read = _read(context, kind)
    context.is_growing = kind == JSON_PATCH and has_copies(read.value)
    return Patch(kind, read.value, options, _complaints(kind, read, options.field_validation), read.has_floats)


def _complaints(kind: str, read: Document, validation: FieldValidation) -> list[str]:
    """The field validation errors of the patch itself."""
    if kind != JSON_PATCH or validation == "Ignore":
        return read.complaints(validation)
    faults = [("duplicate", path) for path in read.repeated]
    faults += [("unknown", path) for path in unknown_members(read.value)]
    faults.sort(key=lambda fault: int(fault[1][1:].partition("]")[0]))
    return [f'json patch {fault} field "{path}"' for fault, path in faults]


def _read(context: RequestContext, kind: str) -> Document:
    try:
        read = document(context.request)
    except ValueError as fault:
        raise errors.bad_request(f"error decoding patch: {fault}") from fault
    body = read.value
    if kind != JSON_PATCH and not isinstance(body, dict):
        step = "error decoding patch: " if kind == MERGE_PATCH else ""
        raise errors.bad_request(
            f"{step}json: cannot unmarshal {json_type(body)} into Go value of type map[string]interface {{}}"
        )
    if kind == JSON_PATCH and not isinstance(body, list):
        raise errors.bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    return read


def _apply_body(context: RequestContext, validation: FieldValidation) -> Object:
    try:
        read = document(context.request)
    except ValueError as fault:
        raise errors.bad_request(f"error decoding YAML: error converting YAML to JSON: {fault}") from fault
    if read.repeated and validation == "Strict":
        why = yaml_refusal(read.repeated)
        raise errors.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {why}")
    if validation == "Warn":
        context.warnings.extend(read.repeated)
    body = read.value
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise errors.bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_type(body)} into Go value of type map[string]interface {{}}"
        )
    return body


async def patch(writer: Writer, context: RequestContext, given: Patch, subresource: str = "") -> Written:
    if not given.is_apply:
        return await writer.change(context, _transform(context, given), given.options, subresource=subresource)
    return await _apply(writer, context, given, subresource)


def _transform(context: RequestContext, given: Patch) -> Transform:
    def transform(old: Object) -> Object:
        new = patched(context, given, old)
        if new is old and not given.complaints:
            return old
        return _decode(context, new, given)

    return transform


def patched(context: RequestContext, given: Patch, old: Object) -> Object:
    """Apply a JSON, merge or strategic patch to a value."""
    try:
        if given.kind == MERGE_PATCH:
            new = merge_patch(old, given.body)
        elif given.kind == JSON_PATCH:
            new = json_patch(old, given.body)
        else:
            new = strategic_merge_patch(context.typed.schema, old, given.body)
    except PatchError as fault:
        raise ApiError(fault.code, fault.reason, fault.message, details={} if fault.code == 422 else None) from fault
    if not isinstance(new, dict):
        text = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", text, details={})
    return new


def _decode(context: RequestContext, new: Object, given: Patch) -> Object:
    """Decode the patched object; errors are those of a bad patch, not of a bad object."""
    if context.resource.is_custom:
        kind_check.check_custom(new, context.resource.gvk(context.version))
    elif why := mistyped(new):
        raise _bad_patch(new, why)
    try:
        if not context.resource.is_custom:
            new = kind_check.check_built_in(new, context.resource.gvk(context.version))
        return decode_object(
            context, new, given.options.field_validation, given.complaints, has_floats=given.has_floats
        )
    except StrictError as fault:
        shown = plain(given.body) if given.kind == STRATEGIC_PATCH else None
        raise _bad_patch(new, fault.text, shown) from fault
    except ApiError as fault:
        if fault.code != 400 or context.resource.is_custom:
            raise
        raise _bad_patch(new, _reason(fault)) from fault


def patch_unstored(context: RequestContext, given: Patch, old: Object, wanted: GroupVersionKind) -> Object:
    """Apply a patch to an object that is not stored, a Scale."""
    new = patched(context, given, old)
    if why := mistyped(new):
        raise _bad_patch(new, why)
    try:
        return decode_unstored(kind_check.check_built_in(new, wanted), wanted)
    except ApiError as fault:
        raise _bad_patch(new, _reason(fault)) from fault


def _reason(fault: ApiError) -> str:
    """The reason in a message, without the name of the object."""
    return fault.message.partition(": ")[2]


def _bad_patch(new: Object, why: str, shown: str | None = None) -> ApiError:
    return errors.invalid("", "", "", [fields.invalid("patch", encode(new).decode() if shown is None else shown, why)])


async def _apply(writer: Writer, context: RequestContext, given: Patch, subresource: str) -> Written:
    config = _configuration(context, given.body)
    options = given.options

    def merged(live: Object | None) -> Object:
        try:
            result = managed_fields.apply(
                context.typed.schema,
                live,
                config,
                manager=options.field_manager,
                force=bool(options.force),
                api_version=context.api_version,
                subresource=subresource,
                now=context.clock.now(),
                reset=context.resource.strategy.reset_fields(subresource),
            )
        except managed_fields.ApplyConflict as conflict:
            raise ApiError(409, "Conflict", str(conflict), details={"causes": conflict.causes()}) from conflict
        except managed_fields.ApplyError as fault:
            raise ApiError(fault.code, fault.reason, str(fault)) from fault
        return result if result is live else decode_object(context, result, "Ignore")

    try:
        return await writer.change(context, merged, options, subresource=subresource, is_owned=True)
    except ApiError as fault:
        if fault.code != 404 or subresource:
            raise
    if not config["metadata"].get("name"):
        raise errors.bad_request(
            f"the name of the object ({context.name} based on URL) was undeterminable: name must be provided"
        )
    if uid := config["metadata"].get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise errors.conflict(context.resource.group, context.resource.plural, context.name, why)
    made = await context.work.run(context.is_large, lambda: merged(None))
    return await writer.create(context, made, options, is_owned=True)


def _configuration(context: RequestContext, body: Object) -> Object:
    kind, api_version = body.get("kind", ""), body.get("apiVersion", "")
    if (kind, api_version) != (context.resource.kind, context.api_version):
        group, _, version = str(api_version).rpartition("/")
        raise errors.bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    given = body.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise _untyped(context, f".metadata: expected map, got &{{{plain(given)}}}")
    given = given or {}
    if not isinstance(given.get("name", ""), str):
        shown = f"&value.valueUnstructured{{Value:{plain(given['name'])}}}"
        raise _untyped(context, f".metadata.name: expected string, got {shown}")
    if given.get("name", context.name) != context.name:
        raise errors.bad_request(
            f"the name of the object ({given['name']}) does not match the name on the URL ({context.name})"
        )
    return {**body, "metadata": given}


def _untyped(context: RequestContext, why: str) -> ApiError:
    kind = f"{context.resource.group}/{context.version}, Kind={context.resource.kind}"
    return ApiError(500, "", f"failed to create typed patch object (/; {kind}): {why}")
