"""Errors of webhook calls."""

from __future__ import annotations

from nodeyard.apiserver.errors import ApiError, internal
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Object


class CallError(Exception):
    """The webhook gave no valid answer; its failurePolicy decides."""

    def answer(self, webhook: str) -> ApiError:
        return internal(f"failed calling webhook {quote(webhook)}: {self}")


def denial(webhook: str, status: Object | None) -> ApiError:
    """The webhook's denial: its status, with a code of at least 400."""
    given = status or {}
    message = given.get("message") or given.get("reason")
    message = f"admission webhook {quote(webhook)} denied the request" + (
        f": {message}" if message else " without explanation"
    )
    code = max(int(given.get("code") or 0), 400)
    return ApiError(code, given.get("reason") or "", message, details=given.get("details"))


def no_dry_run(webhook: str) -> ApiError:
    return ApiError(400, "BadRequest", f"admission webhook {quote(webhook)} does not support dry run")
