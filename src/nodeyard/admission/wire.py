"""AdmissionReview, `admission.k8s.io/v1`: a question read from bytes, a verdict written as the answer to it. Pure."""

from __future__ import annotations

from binascii import b2a_base64
from typing import Final

import msgspec

from nodeyard.admission.differences import difference
from nodeyard.kube import nesting
from nodeyard.kube.json import Object
from nodeyard.runtime.webhooks import Review, Verdict

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
# The API server cuts warnings off where they add up to more; the first are kept whole.
MAX_MESSAGE: Final = 8192


class NotAReview(ValueError):
    """The text says what came instead."""


class TooDeep(ValueError):
    """What shall be stored cannot be read as a whole: the review without what is too deep in it."""

    def __init__(self, review: Review) -> None:
        super().__init__(nesting.TOO_DEEP)
        self.review = review


class _Question(msgspec.Struct, rename="camel"):
    request: Review | None = None
    api_version: str = ""
    kind: str = ""


_decode = msgspec.json.Decoder(_Question).decode


def read(body: bytes) -> Review:
    """Raises TooDeep only for what is about to be stored: what is stored already has to be seen to go, or to change."""
    try:
        return _read(body)
    except RecursionError:
        review = _read(nesting.shallow(body))
    if nesting.is_cut(msgspec.json.encode(review.object)):
        raise TooDeep(review)
    return review


def _read(body: bytes) -> Review:
    try:
        question = _decode(body)
    except msgspec.MsgspecError as error:
        raise NotAReview(f"this is no {KIND}: {error}") from None
    if (question.api_version, question.kind) != (API_VERSION, KIND) or question.request is None:
        raise NotAReview(f'expected an {API_VERSION} {KIND} with a request, got "{question.api_version}" '
                         f'"{question.kind}"')  # fmt: skip
    return _named(question.request)


def _named(review: Review) -> Review:
    """Of a request that deletes many at once, which names none of them, each is asked about apart."""
    if review.name or review.operation != "DELETE":
        return review
    metadata = (review.old_object or {}).get("metadata") or {}
    return msgspec.structs.replace(review, name=metadata.get("name", ""))


def answer(review: Review, verdict: Verdict) -> bytes:
    response: Object = {"uid": review.uid, "allowed": verdict.is_allowed}
    if not verdict.is_allowed:
        response["status"] = {
            "status": "Failure",
            "message": verdict.message[:MAX_MESSAGE],
            "code": verdict.code,
            "reason": verdict.reason,
        }
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    if verdict.audit:
        response["auditAnnotations"] = dict(verdict.audit)
    if verdict.is_allowed and (patch := operations(review, verdict)):
        response["patchType"] = "JSONPatch"
        response["patch"] = b2a_base64(msgspec.json.encode(patch), newline=False).decode()
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def operations(review: Review, verdict: Verdict) -> list[Object]:
    """What the verdict changes on the object, as JSON patch."""
    return [] if verdict.object is None else list(difference(review.object, verdict.object))
