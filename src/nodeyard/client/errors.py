"""What can go wrong when one speaks to a cluster: the whole tree.

    ClientError
    ├── ConfigError              a kubeconfig or credential that cannot be used
    │   └── NoCluster            there is none at all
    ├── Withheld                 not sent: who asked for it must not send it any more
    ├── TransportError           no answer; `may_have_run` says whether the server may have carried the request out
    │   └── TransportTimeout
    └── ApiError                 the server answered with a Status: code, reason, message, details, causes
        ├── BadRequest · Unauthorized · Forbidden · NotFound · Invalid
        ├── Conflict             the object was changed meanwhile, or a field belongs to someone else
        │   └── AlreadyExists
        ├── Expired              410: the resourceVersion or continue token is too old
        ├── TooManyRequests      429: flow control, or a disruption budget (`is_budget`)
        ├── ServerError          5xx
        └── AdmissionDenied      a webhook or policy refused; `denied_by` is its name

A denial by admission may carry any code; it is told by its message, which is part of the server's interface, and comes
before the code: who asks again unchanged is refused again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec


class ClientError(Exception):
    """The root: everything this package raises on purpose."""


class ConfigError(ClientError):
    """A configuration that cannot be used. The text names the file, the entry and what to do."""


class NoCluster(ConfigError):
    """Nothing says which cluster to speak to, as opposed to something that says it wrongly."""


class Withheld(ClientError):
    """Nothing was sent, and nothing is wrong with the way there. The text is what the request's `hold` said."""


class TransportError(ClientError):
    """No answer came.

    `may_have_run` is False only where the request certainly did not reach the server (no connection was made). A write
    that may have run is settled by reading the object, not by sending it again.
    """

    def __init__(self, message: str, *, may_have_run: bool) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run


class TransportTimeout(TransportError):
    """The answer did not come in time, or a stream fell silent."""


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
    """The part of a `v1` Status that decides what happened."""

    kind: str = ""
    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class ApiError(ClientError):
    """An answer other than success."""

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
    """400: the request makes no sense to the server; with strict field validation, also an unknown field."""


class Unauthorized(ApiError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """403: RBAC or a built-in admission plugin says no."""


class NotFound(ApiError):
    """404: no such object, or no such resource."""


class Conflict(ApiError):
    """409."""


class AlreadyExists(Conflict):
    """409 on create."""


class Expired(ApiError):
    """410: list again."""


class Invalid(ApiError):
    """422: `causes` names the fields."""


class TooManyRequests(ApiError):
    """429."""

    @property
    def is_budget(self) -> bool:
        """An eviction that a PodDisruptionBudget does not allow now, as opposed to flow control."""
        return self.has_cause("DisruptionBudget")


class ServerError(ApiError):
    """5xx: the server's own trouble, also a webhook that could not be called."""


class AdmissionDenied(ApiError):
    """A webhook or an admission policy refused."""

    def __init__(self, status: Status, *, denied_by: str, retry_after: float | None = None) -> None:
        super().__init__(status, retry_after=retry_after)
        self.denied_by = denied_by


_DENIAL = re.compile(
    r'admission webhook "(?P<webhook>[^"]+)" denied the request'
    r"|(?P<kind>ValidatingAdmissionPolicy|MutatingAdmissionPolicy) '(?P<policy>[^']+)'.*? denied request"
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

_decode_status = msgspec.json.Decoder(Status).decode


def error_from_status(status: Status, *, retry_after: float | None = None) -> ApiError:
    """The exception for a Status, from an answer or from an ERROR event of a watch."""
    if denial := _DENIAL.search(status.message):
        by = denial["webhook"] or denial["policy"]
        return AdmissionDenied(status, denied_by=by, retry_after=retry_after)
    if status.reason == "AlreadyExists":
        return AlreadyExists(status, retry_after=retry_after)
    kind = _BY_CODE.get(status.code, ServerError if status.code >= 500 else ApiError)
    return kind(status, retry_after=retry_after)


def error_from_answer(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The exception for an answer of 400 and above; a body that is no Status is quoted."""
    status = _status_in(code, body)
    return error_from_status(status, retry_after=retry_after_seconds(headers))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The Retry-After header where it is a number of seconds; the API server never sends a date."""
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
    return Status(kind="Status", status="Failure", code=code, message=text or f"the server answered {code}")
