"""Decodes requests and encodes responses of AdmissionReview, `admission.k8s.io/v1`. Pure."""

from __future__ import annotations

from binascii import b2a_base64
from typing import Final

import msgspec

from nodeyard.admission.json_patch import difference
from nodeyard.kube import json_depth
from nodeyard.kube.json import Object, read_float
from nodeyard.process import garbage_collection
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
# The API server cuts warnings off where they add up to more; the first are kept whole.
MAX_MESSAGE: Final = 8192
# Decoding blocks the event loop, for about 0.2 s per million lists and 0.5 s per million floats. Objects that fit into
# etcd have far fewer.
LARGE: Final = 64 << 10
MAX_CONTAINERS: Final = 250_000
MAX_FLOATS: Final = 100_000


class NotAReview(ValueError):
    """The body is no AdmissionReview; the text says what it is."""


class TooLarge(NotAReview):
    """Decoding the body would block the event loop for too long."""


class TooDeep(ValueError):
    """The object to store is nested too deeply to decode; `review` lacks the deep parts."""

    def __init__(self, review: AdmissionRequest) -> None:
        super().__init__(json_depth.TOO_DEEP)
        self.review = review


class _Envelope(msgspec.Struct, rename="camel"):
    request: AdmissionRequest | None = None
    api_version: str = ""
    kind: str = ""


_decode = msgspec.json.Decoder(_Envelope, float_hook=read_float).decode


def read(body: bytes) -> AdmissionRequest:
    """Decode a request. Raises RecursionError for a deeply nested body, which the slower `read_deep` decodes."""
    if len(body) > LARGE and body.count(b"[") + body.count(b"{") > MAX_CONTAINERS:
        raise TooLarge(f"the review has more than {MAX_CONTAINERS} lists and objects")
    return _read(body)


def read_deep(body: bytes) -> AdmissionRequest:
    """Decode a deeply nested request. Raises TooDeep only for `object`: a stored one must stay deletable."""
    review = _read(json_depth.shallow(body))
    if json_depth.is_cut(msgspec.json.encode(review.object)):
        raise TooDeep(review)
    return review


def _read(body: bytes) -> AdmissionRequest:
    try:
        envelope = _decode(body) if len(body) <= LARGE else _decode_large(body)
    except msgspec.MsgspecError as error:
        if isinstance(error.__cause__, TooLarge):
            raise error.__cause__ from None
        raise NotAReview(f"not an {KIND}: {error}") from None
    if (envelope.api_version, envelope.kind) != (API_VERSION, KIND) or envelope.request is None:
        raise NotAReview(f'expected an {API_VERSION} {KIND} with a request, got "{envelope.api_version}" '
                         f'"{envelope.kind}"')  # fmt: skip
    return _add_name(envelope.request)


def _decode_large(body: bytes) -> _Envelope:
    left = MAX_FLOATS

    def read_bounded(text: str) -> float:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooLarge(f"the review has more than {MAX_FLOATS} floats")
        return read_float(text)

    with garbage_collection.paused():
        return msgspec.json.Decoder(_Envelope, float_hook=read_bounded).decode(body)


def _add_name(review: AdmissionRequest) -> AdmissionRequest:
    """Set the name from oldObject: a deletecollection is reviewed once per object, without the object's name."""
    if review.name or review.operation != "DELETE":
        return review
    metadata = (review.old_object or {}).get("metadata") or {}
    return msgspec.structs.replace(review, name=metadata.get("name", ""))


def encode(review: AdmissionRequest, response: AdmissionResponse) -> bytes:
    body: Object = {"uid": review.uid, "allowed": response.is_allowed}
    if not response.is_allowed:
        body["status"] = {
            "status": "Failure",
            "message": response.message[:MAX_MESSAGE],
            "code": response.code,
            "reason": response.reason,
        }
    if response.warnings:
        body["warnings"] = list(response.warnings)
    if response.audit:
        body["auditAnnotations"] = dict(response.audit)
    if response.is_allowed and (patch := operations(review, response)):
        body["patchType"] = "JSONPatch"
        body["patch"] = b2a_base64(msgspec.json.encode(patch), newline=False).decode()
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": body})


def operations(review: AdmissionRequest, response: AdmissionResponse) -> list[Object]:
    """Return the JSON patch from the requested object to the response's object."""
    return [] if response.object is None else list(difference(review.object, response.object))
