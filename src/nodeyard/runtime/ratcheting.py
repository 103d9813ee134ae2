"""Ratcheting validation: a review denies faults that a change introduces, and only warns about existing ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from nodeyard.kube.json import Object
from nodeyard.runtime.webhooks import AdmissionResponse, allowed, denied

StructT = TypeVar("StructT", bound=msgspec.Struct)

_INVALID_CODE: Final = 422


def decode(obj: Object | None, kind: type[StructT]) -> StructT | None:
    """Decode an object; None if it does not decode. The plan then reports it as blocked, with the error."""
    try:
        return None if obj is None else msgspec.convert(obj, kind)
    except msgspec.ValidationError:
        return None


def invalid(faults: Iterable[str]) -> AdmissionResponse:
    return denied("; ".join(faults), code=_INVALID_CODE, reason="Invalid")


def warn_existing(fault: str) -> str:
    """Return the warning about an existing fault, which must not block other changes of the object."""
    return f"{fault}; allowed because it was already so before this change"


def ratchet(fresh: Sequence[str], standing: Iterable[str], warnings: Iterable[str] = ()) -> AdmissionResponse:
    """Deny if the change introduces faults (`fresh`); else allow, with a warning per existing fault (`standing`)."""
    return invalid(fresh) if fresh else allowed(*map(warn_existing, standing), *warnings)
