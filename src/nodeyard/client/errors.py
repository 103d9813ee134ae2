"""Exceptions of the client.

    ClientError
    ├── ConfigError              a kubeconfig or credential is invalid
    │   └── NoCluster            no cluster is configured
    ├── Withheld                 not sent: the request's `hold` forbade it, for example after a lost lease
    ├── TransportError           no response; `may_have_run` says whether the server may have carried out the request
    │   └── TransportTimeout
    └── ApiError                 the server returned a Status: code, reason, message, details, causes
        ├── BadRequest · Unauthorized · NotFound · Invalid
        ├── Forbidden            403: denied by RBAC or a built-in admission plugin
        │   └── NamespaceTerminating
        ├── Conflict             the object has changed, or another field manager owns a field
        │   └── AlreadyExists
        ├── Expired              410: the resourceVersion or continue token is too old
        ├── TooManyRequests      429: flow control, or a disruption budget (`is_budget`)
        ├── ServerError          5xx
        └── AdmissionDenied      a webhook or policy denied the request; `denied_by` is its name

An admission denial may carry any code. It is recognised by the start of its message, which is part of the server's
interface, and takes precedence over the code: an unchanged retry would be denied again.
"""

from __future__ import annotations

import http
import re
from collections.abc import Mapping

import msgspec


class ClientError(Exception):
    """Base class of all exceptions of the client."""

    is_transient = False
    """True if the server or the network failed, not the request itself. A PDB's 429 is not transient."""
    retry_after: float | None = None
    """The Retry-After of the response, in seconds."""


class ConfigError(ClientError):
    """An invalid configuration. The text names the file, the entry and the remedy."""


class NoCluster(ConfigError):
    """No cluster is configured at all, as opposed to an invalid configuration."""


class Withheld(ClientError):
    """The request was not sent because its `hold` returned a reason, which is the text."""


class TransportError(ClientError):
    """No response was received.

    `may_have_run` is False only if the request did not reach the server because no connection was made. A write that
    may have run is confirmed by reading the object, not by sending it again.
    """

    is_transient = True

    def __init__(self, message: str, *, may_have_run: bool) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run


class TransportTimeout(TransportError):
    """The response did not arrive in time, or a stream exceeded its idle timeout."""


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of `details.causes`."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a `v1` Status that the client uses."""

    kind: str = ""
    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class ApiError(ClientError):
    """A response with an error status."""

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        super().__init__(status.message)
        self.status = status
        self.code = status.code
        self.reason = status.reason
        self.message = status.message
        self.details = status.details or Details()
        self.causes = self.details.causes
        self.retry_after = retry_after if retry_after is not None else (self.details.retry_after_seconds or None)

    def has_cause(self, reason: str) -> bool:
        return any(cause.reason == reason for cause in self.causes)


class BadRequest(ApiError):
    """400: a malformed request; with strict field validation, also an unknown field."""


class Unauthorized(ApiError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """403: denied by RBAC or a built-in admission plugin."""


class NamespaceTerminating(Forbidden):
    """403: nothing can be created in a namespace that is being deleted. No permission is missing.

    https://github.com/kubernetes/apiserver/blob/master/pkg/admission/plugin/namespace/lifecycle/admission.go
    """


class NotFound(ApiError):
    """404: no such object, or no such resource."""


class Conflict(ApiError):
    """409."""


class AlreadyExists(Conflict):
    """409 on create."""


class Expired(ApiError):
    """410: the resourceVersion is too old; relist."""


class Invalid(ApiError):
    """422: `causes` names the fields."""


class TooManyRequests(ApiError):
    """429."""

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        super().__init__(status, retry_after=retry_after)
        self.is_budget = self.has_cause("DisruptionBudget")
        """True if a PodDisruptionBudget denied an eviction; False for flow control."""
        self.is_transient = not self.is_budget


class ServerError(ApiError):
    """5xx: a server error, or a webhook that could not be called."""

    is_transient = True


class AdmissionDenied(ApiError):
    """A webhook or an admission policy denied the request."""

    def __init__(self, status: Status, *, denied_by: str, retry_after: float | None = None) -> None:
        super().__init__(status, retry_after=retry_after)
        self.denied_by = denied_by


# Only the start of a message is the server's own. The rest may quote the request, even a denial in a condition.
# https://github.com/kubernetes/apiserver/blob/master/pkg/admission/plugin/webhook/errors/statuserror.go and
# pkg/admission/plugin/policy/validating/dispatcher.go
_DENIAL = re.compile(
    r'admission webhook "(?P<webhook>[^"]+)" denied the request'
    r'|(?:[^\s"]+ (?:"[^"]*" )?is )?forbidden: '
    r"(?:Validating|Mutating)AdmissionPolicy '(?P<policy>[^']+)'(?: with binding '[^']*')? denied request"
)

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}

_TERMINATING = "NamespaceTerminating"
_KNOWN_CODES = frozenset(map(int, http.HTTPStatus))

_decode_status = msgspec.json.Decoder(Status).decode


def error_from_status(status: Status, *, retry_after: float | None = None) -> ApiError:
    """Return the exception for a Status, from a response or from an ERROR event of a watch."""
    if denial := _DENIAL.match(status.message):
        by = denial["webhook"] or denial["policy"]
        return AdmissionDenied(status, denied_by=by, retry_after=retry_after)
    if status.reason == "AlreadyExists":
        return AlreadyExists(status, retry_after=retry_after)
    kind = _BY_CODE.get(status.code, ServerError if status.code >= 500 else ApiError)
    error = kind(status, retry_after=retry_after)
    if kind is Forbidden and error.has_cause(_TERMINATING):
        return NamespaceTerminating(status, retry_after=retry_after)
    return error


def error_from_answer(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Return the exception for a response with status 300 or above; a body that is not a Status is quoted."""
    status = _status_in(code, body)
    return error_from_status(status, retry_after=retry_after_seconds(headers))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the Retry-After header in seconds; None for a date, which the API server never sends."""
    value = headers.get("retry-after", "")
    return float(value) if value.isascii() and value.isdigit() else None


def _status_in(code: int, body: bytes) -> Status:
    try:
        status = _decode_status(body)
    except (msgspec.MsgspecError, RecursionError):
        status = Status()
    if status.kind == "Status":
        return msgspec.structs.replace(status, code=status.code or code)
    text = body[:512].decode("utf-8", "replace").strip()
    phrase = http.HTTPStatus(code).phrase if code in _KNOWN_CODES else "unknown status"
    message = text or f"the server answered {code} {phrase}"
    return Status(kind="Status", status="Failure", code=code, message=message)
