"""API errors as the Status that kube-apiserver answers with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object

CAUSES_MAX = 1000
CAUSES_SIZE = 1024 * 1024
_LARGE = 64 * 1024


class ApiError(Exception):
    """An error answer; `status()` is its body."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Object | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = list(headers)
        self.plain = False
        """True if the body is plain text instead of a Status: for paths outside every API."""
        self.list_metadata: Object = {}
        """The metadata of the Status; only an expired continue token sets it."""

    @property
    def is_large(self) -> bool:
        """True if the Status is so large that it is encoded off the event loop."""
        return len(self.message) > _LARGE

    def status(self) -> Object:
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`, and plain `pods` for the core group."""
    return f"{resource}.{group}" if group else resource


def _details(group: str, kind: str, name: str = "", **more: Any) -> Object:
    details: Object = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details.update({key: value for key, value in more.items() if value})
    return details


def not_found(group: str, resource: str, name: str) -> ApiError:
    return ApiError(
        404, "NotFound", f'{qualified(resource, group)} "{name}" not found', details=_details(group, resource, name)
    )


def unknown_path() -> ApiError:
    """The 404 of a path in a served group; kubectl looks for this text."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def no_page() -> ApiError:
    """The 404 of a path outside every API group."""
    error = ApiError(404, "NotFound", "404 page not found\n")
    error.plain = True
    return error


def already_exists(group: str, resource: str, name: str) -> ApiError:
    return ApiError(
        409,
        "AlreadyExists",
        f'{qualified(resource, group)} "{name}" already exists',
        details=_details(group, resource, name),
    )


def conflict(group: str, resource: str, name: str, why: str) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}',
        details=_details(group, resource, name),
    )


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def modified(group: str, resource: str, name: str) -> ApiError:
    return conflict(group, resource, name, MODIFIED)


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """A 422 that names the first errors: at most `CAUSES_MAX`, and no more once their texts have `CAUSES_SIZE`.

    Megabytes of them would delay other requests.
    """
    causes: list[Object] = []
    texts: list[str] = []
    size = 0
    for error in errors[:CAUSES_MAX]:
        message = error.message
        causes.append({"reason": error.type.reason, "message": message, "field": error.field})
        texts.append(f"{error.field}: {message}")
        size += len(message)
        if size > CAUSES_SIZE:
            break
    if len(errors) > len(texts):
        texts.append(f"and {len(errors) - len(texts)} more")
    return ApiError(
        422,
        "Invalid",
        f'{qualified(kind, group)} "{name}" is invalid: {aggregate(texts)}',
        details=_details(group, kind, name, causes=causes),
    )


def aggregate(texts: Iterable[str]) -> str:
    """Join the distinct errors into one text, as utilerrors.NewAggregate does."""
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(group: str, resource: str, name: str, why: str) -> ApiError:
    if not resource:
        what = "forbidden"
    elif not name:
        what = f"{qualified(resource, group)} is forbidden"
    else:
        what = f'{qualified(resource, group)} "{name}" is forbidden'
    return ApiError(403, "Forbidden", f"{what}: {why}", details=_details(group, resource, name))


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={}
    )


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted),
    )


def too_large() -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_many_requests(message: str, *, causes: list[Object] | None = None, retry_after: int = 0) -> ApiError:
    details: Object = {}
    if causes:
        details["causes"] = causes
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    headers = [("Retry-After", str(retry_after))] if retry_after else []
    return ApiError(429, "TooManyRequests", message, details=details, headers=headers)


def internal(message: str) -> ApiError:
    return ApiError(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        details={"causes": [{"message": message}]},
    )


def unavailable(message: str) -> ApiError:
    details = {"retryAfterSeconds": 1}
    return ApiError(503, "ServiceUnavailable", message, details=details, headers=[("Retry-After", "1")])


def timeout(message: str) -> ApiError:
    return ApiError(504, "Timeout", f"Timeout: {message}", details={})
