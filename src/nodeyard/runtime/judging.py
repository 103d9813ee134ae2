"""How a review ends: what a change brings is denied, what was there before it is let through with a warning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from nodeyard.kube.json import Object
from nodeyard.runtime.webhooks import Verdict, allowed, denied

StructT = TypeVar("StructT", bound=msgspec.Struct)

_INVALID_CODE: Final = 422


def decoded(obj: Object | None, kind: type[StructT]) -> StructT | None:
    """None also where it does not decode: the plan blocks it, with the error."""
    try:
        return None if obj is None else msgspec.convert(obj, kind)
    except msgspec.ValidationError:
        return None


def invalid(faults: Iterable[str]) -> Verdict:
    return denied("; ".join(faults), code=_INVALID_CODE, reason="Invalid")


def let_through(fault: str) -> str:
    """The warning about what is wrong already and must not keep anybody from changing something else."""
    return f"{fault}; it was so before and is let through"


def judged(fresh: Sequence[str], standing: Iterable[str], warnings: Iterable[str] = ()) -> Verdict:
    """By what a change brings."""
    return invalid(fresh) if fresh else allowed(*map(let_through, standing), *warnings)
