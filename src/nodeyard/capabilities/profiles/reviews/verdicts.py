"""How a review ends: what a change brings is denied, what was there before it is let through with a warning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from nodeyard.capabilities.profiles.messages import listed
from nodeyard.kube.json import Object
from nodeyard.runtime.webhooks import Verdict, allowed, denied

StructT = TypeVar("StructT", bound=msgspec.Struct)

_INVALID_CODE: Final = 422
_NAMED: Final = 10


def decoded(obj: Object | None, kind: type[StructT]) -> StructT | None:
    """None also where it does not decode: the plan blocks it, with the error."""
    try:
        return None if obj is None else msgspec.convert(obj, kind)
    except msgspec.ValidationError:
        return None


def invalid(faults: Iterable[str]) -> Verdict:
    return denied("; ".join(faults), code=_INVALID_CODE, reason="Invalid")


def judged(fresh: Sequence[str], standing: Iterable[str], warnings: Iterable[str] = ()) -> Verdict:
    """By what a change brings; what is wrong already must not keep anybody from changing something else."""
    if fresh:
        return invalid(fresh)
    return allowed(*(f"{fault}; it was so before and is let through" for fault in standing), *warnings)


def counted(nodes: Sequence[Any]) -> str:
    """How many nodes, and the first of them by name."""
    return f"{len(nodes)} node{'' if len(nodes) == 1 else 's'} ({listed(nodes, _NAMED)})"
