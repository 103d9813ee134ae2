"""Whether what branches at the root restrict is also declared outside of them."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.kube.fields import FieldError, child, index, key, required
from nodeyard.kube.json import Object


def completeness_faults(openapi: Object, path: str) -> Iterator[FieldError]:
    return _branches(openapi, openapi, path, path)


def _branches(restricting: Object, declaring: Object, declared_at: str, restricted_at: str) -> Iterator[FieldError]:
    if restricting.get("not") is not None:
        yield from _branch(restricting["not"], declaring, declared_at, child(restricted_at, "not"))
    for name in ("allOf", "anyOf", "oneOf"):
        for position, branch in enumerate(restricting.get(name) or ()):
            yield from _branch(branch, declaring, declared_at, index(child(restricted_at, name), position))


def _branch(branch: Object, declaring: Object | None, declared_at: str, restricted_at: str) -> Iterator[FieldError]:
    if declaring is None:
        yield required(declared_at, f"because it is defined in {restricted_at}")
        return
    yield from _branches(branch, declaring, declared_at, restricted_at)
    if branch.get("items") is not None:
        yield from _branch(
            branch["items"], declaring.get("items"), child(declared_at, "items"), child(restricted_at, "items")
        )
    properties = declaring.get("properties") or {}
    for name, below in (branch.get("properties") or {}).items():
        places = [key(child(path, "properties"), name) for path in (declared_at, restricted_at)]
        yield from _branch(below, properties.get(name), *places)
