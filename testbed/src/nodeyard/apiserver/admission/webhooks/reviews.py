"""AdmissionReview: request and response."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error

import msgspec

from nodeyard.apiserver.access_reviews import user_info
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.namespaces import namespace_of
from nodeyard.apiserver.admission.webhooks.errors import CallError
from nodeyard.apiserver.resources import GroupVersionKind
from nodeyard.apiserver.worker_thread import LARGE
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Json, Object

_GROUP = "admission.k8s.io"
KNOWN_VERSIONS = ("v1", "v1beta1")


class Answer(msgspec.Struct, frozen=True):
    """A valid AdmissionResponse."""

    is_allowed: bool
    status: Object | None = None
    patch: Json = None
    """JSON patch operations of a mutating webhook."""
    warnings: tuple[str, ...] = ()
    audit: dict[str, str] = {}
    is_large: bool = False
    """True if its patch is applied off the event loop."""


def review_version(accepted: tuple[str, ...]) -> str:
    for version in accepted:
        if version in KNOWN_VERSIONS:
            return version
    raise CallError(
        "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    )


def admission_request(attributes: Attributes, version: str) -> Object:
    """Return the AdmissionRequest of a write, without the objects."""
    resource, requested = attributes.resource, attributes.gvk
    kind = requested if attributes.kind else GroupVersionKind(resource.group, version, resource.kind)
    request: Object = {
        "kind": _kind(kind),
        "resource": _resource(attributes, version),
        "requestKind": _kind(requested),
        "requestResource": _resource(attributes, attributes.version),
        "operation": attributes.operation,
        "userInfo": user_info(attributes.user),
        "dryRun": attributes.dry_run,
        "options": attributes.options or None,
    }
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if namespace := namespace_of(attributes):
        request["namespace"] = namespace
    return request


def question(attributes: Attributes, version: str, uid: str, review: str) -> Object:
    request = {
        "uid": uid,
        **admission_request(attributes, version),
        "object": in_version(attributes, attributes.object, version),
        "oldObject": in_version(attributes, attributes.old, version),
    }
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{review}", "request": request}


def in_version(attributes: Attributes, obj: Object | None, version: str) -> Object | None:
    """Return the object in the version of a rule; versions of a kind differ in apiVersion alone."""
    if obj is None or attributes.kind is not None or version == attributes.version:
        return obj
    return {**obj, "apiVersion": attributes.resource.api_version(version)}


def _kind(kind: GroupVersionKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(attributes: Attributes, version: str) -> Object:
    resource = attributes.resource
    return {"group": resource.group, "version": version, "resource": resource.plural}


# response


def read_answer(body: bytes, uid: str, review: str, *, is_mutating: bool) -> Answer:
    response = _response(body, review)
    if review == "v1" and response.get("uid") != uid:
        got = quote(response.get("uid") or "")
        raise CallError(f"received invalid webhook response: expected response.uid={quote(uid)}, got {got}")
    return Answer(
        is_allowed=bool(response.get("allowed")),
        status=response.get("status"),
        patch=_patch(response, review, is_mutating=is_mutating),
        warnings=tuple(response.get("warnings") or ()),
        audit=dict(response.get("auditAnnotations") or {}),
        is_large=len(body) > LARGE,
    )


def _response(body: bytes, review: str) -> Object:
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError as fault:
        raise CallError(f"failed to call webhook: couldn't get version/kind; json parse error: {fault}") from fault
    if not isinstance(answer, dict):
        raise CallError("failed to call webhook: couldn't get version/kind; json parse error")
    kind, api_version = answer.get("kind"), answer.get("apiVersion")
    if kind and kind != "AdmissionReview":
        raise CallError(
            f'failed to call webhook: no kind "{kind}" is registered for version "{api_version}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    if api_version and api_version != f"{_GROUP}/{review}":
        other = str(api_version).rpartition("/")[2]
        raise CallError(
            f"failed to call webhook: converting ({other}.AdmissionReview) to ({review}.AdmissionReview): "
            "unknown conversion"
        )
    response = answer.get("response")
    if not isinstance(response, dict):
        raise CallError("received invalid webhook response: webhook response was absent")
    return response


def _patch(response: Object, review: str, *, is_mutating: bool) -> Json:
    text, kind = response.get("patch"), response.get("patchType")
    fault = ""
    if not is_mutating:
        if text:
            fault = "validating webhook may not return response.patch"
        elif kind is not None:
            fault = "validating webhook may not return response.patchType"
    elif review == "v1":
        if text and kind is None:
            fault = "webhook returned response.patch but not response.patchType"
        elif kind is not None and not text:
            fault = "webhook returned response.patchType but not response.patch"
    if fault:
        raise CallError(f"received invalid webhook response: {fault}")
    if not text:
        return None
    try:
        raw = b64decode(text, validate=True)
    except (Base64Error, ValueError) as error:
        raise CallError("failed to call webhook: illegal base64 data at input byte 0") from error
    try:
        operations = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise CallError(f"received undecodable patch in webhook response: {error}") from error
    if operations and review == "v1" and kind != "JSONPatch":
        raise CallError(f"unsupported patch type {quote(str(kind))}")
    return operations
