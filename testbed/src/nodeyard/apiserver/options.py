"""Options in the query string, validated as on the real server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from nodeyard.apiserver import errors
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.transport import Request
from nodeyard.kube import fields
from nodeyard.kube.fields import FieldError, FieldErrorType
from nodeyard.kube.json import Object

FieldValidation = Literal["Ignore", "Warn", "Strict"]

_MANAGER_MAX = 128


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """CreateOptions, UpdateOptions and PatchOptions, which differ in kind and `force`."""

    kind: str
    dry_run: bool
    field_manager: str
    field_validation: FieldValidation
    force: bool | None = None
    asked_validation: str = ""
    """The requested fieldValidation; the default is Warn."""

    def as_object(self) -> Object:
        """The options as admission webhooks receive them."""
        shown: Object = {"kind": self.kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            shown["dryRun"] = ["All"]
        if self.field_manager:
            shown["fieldManager"] = self.field_manager
        if self.asked_validation:
            shown["fieldValidation"] = self.asked_validation
        if self.force is not None:
            shown["force"] = self.force
        return shown


def write_options(request: Request, kind: str, *, is_apply: bool = False) -> WriteOptions:
    faults: list[FieldError] = []
    dry_run, manager = request.query.get("dryRun", ()), request.param("fieldManager")
    force = request.flag("force") if "force" in request.query else None
    if kind == "PatchOptions":
        if is_apply and not manager:
            faults.append(fields.required("fieldManager", "is required for apply patch"))
        if not is_apply and force is not None:
            faults.append(fields.forbidden("force", "may not be specified for non-apply patch"))
    faults += manager_faults(manager)
    if dry_run:
        faults += dry_run_faults(list(dry_run))
    validation = request.param("fieldValidation")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        faults.append(fields.not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
    if faults:
        raise errors.invalid("meta.k8s.io", kind, "", faults)
    return WriteOptions(kind, bool(dry_run), manager, validation or "Warn", force, validation)  # type: ignore[arg-type]


def dry_run_faults(values: list[str]) -> list[FieldError]:
    if set(values) <= {"All"}:
        return []
    return [FieldError(FieldErrorType.NOT_SUPPORTED, "dryRun", values, 'supported values: "All"')]


def manager_faults(manager: str) -> list[FieldError]:
    if len(manager) > _MANAGER_MAX:
        return [fields.too_long("fieldManager", _MANAGER_MAX)]
    for position, character in enumerate(manager):
        if not character.isprintable():
            return [
                fields.invalid(
                    "fieldManager", manager, f"invalid character U+{ord(character):04X} (at position {position})"
                )
            ]
    return []


def manager_name(options: WriteOptions, request: Request) -> str:
    """The field manager of a write: the requested one, else the first part of the user agent."""
    return options.field_manager or request.headers.get("user-agent", "unknown").split("/", 1)[0][:_MANAGER_MAX]


@dataclass(frozen=True, slots=True)
class ListOptions:
    label_selector: str
    field_selector: str
    resource_version: str
    match: str
    limit: int
    continue_token: str
    timeout: float
    bookmarks: bool
    send_initial_events: bool | None


def list_options(request: Request, *, is_watch: bool) -> ListOptions:
    send = request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
    options = ListOptions(
        label_selector=request.param("labelSelector"),
        field_selector=request.param("fieldSelector"),
        resource_version=request.param("resourceVersion"),
        match=request.param("resourceVersionMatch"),
        limit=_integer(request, "limit"),
        continue_token=request.param("continue"),
        timeout=float(_integer(request, "timeoutSeconds")),
        bookmarks=request.flag("allowWatchBookmarks"),
        send_initial_events=send,
    )
    faults = _watch_faults(options) if is_watch else _list_faults(options)
    if faults:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", faults)
    return options


def _integer(request: Request, name: str) -> int:
    text = request.param(name)
    return _parse_integer(text) if text else 0


def _parse_integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    value = _number(text)
    if value is None or not -(2**63) <= value < 2**63:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def _number(text: str) -> int | None:
    """Parse a number; None if it has too many digits."""
    sign, digits = text.rstrip("0123456789"), text.lstrip("+-").lstrip("0")
    return int(f"{sign}{digits or 0}") if len(digits) <= _DIGITS_MAX else None


_INTEGER = re.compile("[+-]?[0-9]+")
_DIGITS_MAX = len(str(2**64))
_MATCH = "resourceVersionMatch"


def _watch_faults(options: ListOptions) -> list[FieldError]:
    match, is_asked = options.match, options.send_initial_events is not None
    faults = []
    if is_asked and match != "NotOlderThan":
        faults.append(
            fields.forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        )
    if match and not is_asked:
        faults.append(
            fields.forbidden(_MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        )
    if match not in ("", "NotOlderThan"):
        faults.append(_unsupported(match, '"NotOlderThan"'))
    return faults


def _list_faults(options: ListOptions) -> list[FieldError]:
    if options.send_initial_events is not None:
        return [fields.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")]
    match, version = options.match, options.resource_version
    if not match:
        return []
    faults = []
    if not version:
        faults.append(fields.forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if options.continue_token:
        faults.append(fields.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("Exact", "NotOlderThan"):
        faults.append(_unsupported(match, '"Exact", "NotOlderThan", ""'))
    if match == "Exact" and version == "0":
        faults.append(fields.forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return faults


def _unsupported(value: str, supported: str) -> FieldError:
    return FieldError(FieldErrorType.NOT_SUPPORTED, _MATCH, value, f"supported values: {supported}")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    dry_run: bool = False
    grace_period: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    asked_to_cascade: bool = False
    """True if `orphanDependents: false` was given, for which a pending deletion answers 202."""

    def as_object(self) -> Object:
        shown: Object = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.grace_period is not None:
            shown["gracePeriodSeconds"] = self.grace_period
        if self.propagation:
            shown["propagationPolicy"] = self.propagation
        if self.dry_run:
            shown["dryRun"] = ["All"]
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        if any(preconditions.values()):
            shown["preconditions"] = {name: value for name, value in preconditions.items() if value}
        return shown


_POLICIES = ("Foreground", "Background", "Orphan")


def delete_options(request: Request, body: Object | None) -> DeleteOptions:
    """Read DeleteOptions from the body, or from the query if there is no body."""
    given = body if body is not None else _delete_query(request)
    faults: list[FieldError] = []
    dry_run = given.get("dryRun") or []
    faults += dry_run_faults(dry_run)
    policy = given.get("propagationPolicy")
    orphan = given.get("orphanDependents")
    if policy is not None and orphan is not None:
        faults.append(
            fields.invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    if policy is not None and policy not in _POLICIES:
        supported = ", ".join(f'"{choice}"' for choice in (*_POLICIES, "nil"))
        faults.append(
            FieldError(FieldErrorType.NOT_SUPPORTED, "propagationPolicy", policy, f"supported values: {supported}")
        )
    if faults:
        raise errors.invalid("meta.k8s.io", "DeleteOptions", "", faults)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        dry_run=bool(dry_run),
        grace_period=given.get("gracePeriodSeconds"),
        propagation=policy or "",
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        asked_to_cascade=orphan is False,
    )


def _delete_query(request: Request) -> Object:
    given: Object = {}
    if "dryRun" in request.query:
        given["dryRun"] = list(request.query["dryRun"])
    if "gracePeriodSeconds" in request.query:
        given["gracePeriodSeconds"] = _parse_integer(request.param("gracePeriodSeconds"))
    if "propagationPolicy" in request.query:
        given["propagationPolicy"] = request.param("propagationPolicy")
    if "orphanDependents" in request.query:
        given["orphanDependents"] = request.flag("orphanDependents")
    return given


def parse_revision(text: str) -> int:
    """Parse a resourceVersion; empty is 0."""
    if not text:
        return 0
    is_number = text.isascii() and text.isdigit()
    value = _number(text) if is_number else None
    if value is not None and value < 2**64:
        return value
    why = "value out of range" if is_number else "invalid syntax"
    raise ValueError(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}')


def bad_revision(text: str) -> ApiError:
    try:
        parse_revision(text)
    except ValueError as fault:
        return errors.bad_request(f"invalid resource version: {fault}")
    raise AssertionError(f"{text} is a good revision")
