"""Lists: consistent pages of one revision, in the requested form."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import msgspec

from nodeyard.apiserver import errors, json_syntax_errors
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.negotiation import Form, Shape
from nodeyard.apiserver.options import ListOptions, bad_revision, parse_revision
from nodeyard.apiserver.resources import Resource
from nodeyard.apiserver.responses import encode, metadata_bytes, object_bytes, unopened
from nodeyard.apiserver.selection import Selection
from nodeyard.apiserver.store import CompactedError, Key, Store, Stored
from nodeyard.apiserver.tables import include_object, table
from nodeyard.apiserver.transport import Chunk
from nodeyard.kube.json import Object

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its items, the revision of the list, and where the next page begins."""

    items: list[Stored]
    revision: int
    continue_token: str = ""
    remaining: int | None = None

    def metadata(self) -> Object:
        shown: Object = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            shown["continue"] = self.continue_token
        if self.remaining is not None:
            shown["remainingItemCount"] = self.remaining
        return shown


class _Token(msgspec.Struct, rename={"version": "v", "revision": "rv"}):
    version: str
    revision: int
    start: str


def page(store: Store, resource: Resource, selection: Selection, options: ListOptions) -> Page:
    revision, after = _position(store, options)
    try:
        objects = store.at(resource.key, revision, selection.namespace, after)
    except CompactedError:
        if after is None:
            raise errors.expired("The resourceVersion for the provided list is too old.") from None
        raise _continue_expired(store, after) from None
    chosen = _narrow(objects, selection)
    if options.limit <= 0 or options.resource_version == "0":
        return Page(list(chosen), revision)  # the whole list, as the watch cache serves it
    items = list(islice(chosen, options.limit))
    rest = sum(1 for _ in chosen)
    if not rest:
        return Page(items, revision)
    token = _token(revision, items[-1].key)
    return Page(items, revision, token, rest if selection.matches is None else None)


def _narrow(objects: Iterable[Stored], selection: Selection) -> Iterator[Stored]:
    return iter(objects) if selection.matches is None else filter(selection.matches, objects)


def _position(store: Store, options: ListOptions) -> tuple[int, Key | None]:
    """Return the revision of the list, and the key after which the page begins."""
    if options.continue_token:
        token = _read_token(options)
        if token.revision > store.revision:
            raise too_large(token.revision, store.revision)
        return token.revision if token.revision > 0 else store.revision, _key(token.start)
    requested = _revision(options.resource_version)
    if requested > store.revision:
        raise too_large(requested, store.revision)
    # A limit makes a revision exact, unless resourceVersionMatch is set.
    is_exact = options.match == "Exact" or bool(requested and options.limit > 0 and not options.match)
    return (requested if is_exact else store.revision), None


def _revision(text: str) -> int:
    try:
        return parse_revision(text)
    except ValueError:
        raise bad_revision(text) from None


def check_revision(store: Store, text: str) -> None:
    """Raise if the revision is not reached yet; an invalid number is an internal error here."""
    try:
        requested = parse_revision(text)
    except ValueError as fault:
        raise ApiError(500, "", str(fault)) from None
    if requested > store.revision:
        raise too_large(requested, store.revision)


def too_large(requested: int, current: int) -> ApiError:
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {requested}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        headers=[("Retry-After", "1")],
    )


def _token(revision: int, last: Key) -> str:
    start = f"{last.namespace}/{last.name}\0"
    raw = encode({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read_token(options: ListOptions) -> _Token:
    text, raw = options.continue_token, b""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        token = msgspec.json.decode(raw, type=_Token)
    except (ValueError, msgspec.DecodeError) as fault:
        why = (json_syntax_errors.fault(raw) if raw else None) or fault
        raise errors.bad_request(f"invalid continue token: continue key is not valid: {why}") from fault
    if options.resource_version not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    if token.version != "meta.k8s.io/v1":
        raise errors.bad_request(
            "invalid continue token: continue key is not valid: server does not recognize this encoded version "
            f'"{token.version}"'
        )
    return token


def _key(start: str) -> Key:
    namespace, _, name = start.removesuffix("\0").rpartition("/")
    return Key(namespace, name)


def _continue_expired(store: Store, after: Key) -> ApiError:
    """A 410 with a token that continues at the current revision, inconsistently."""
    error = errors.expired(_TOO_OLD)
    error.list_metadata = {"continue": _token(-1, after)}
    return error


def list_chunks(resource: Resource, version: str, form: Form, found: Page, now: datetime, include: str) -> list[Chunk]:
    """Return the body of a list, in pieces."""
    if form.shape is Shape.TABLE:
        objects = (stored.object() for stored in found.items)
        shown = table(resource, version, objects, now=now, include=include_object(include), metadata=found.metadata())
        return [encode(shown)]
    if form.shape in (Shape.METADATA, Shape.METADATA_LIST):
        kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        return joined(kind, api_version, found.metadata(), [metadata_bytes(stored) for stored in found.items])
    kind, api_version = resource.list_kind, resource.api_version(version)
    if resource.is_custom:
        items = [object_bytes(resource, stored, version) for stored in found.items]
        return joined(kind, api_version, found.metadata(), items)
    return joined(kind, api_version, found.metadata(), [unopened(stored) for stored in found.items], b"{")


def joined(kind: str, api_version: str, metadata: Object, items: Sequence[Chunk], opening: bytes = b"") -> list[Chunk]:
    """Return a list of encoded items, in pieces; `opening` is the beginning of every item."""
    head = b'{"kind":%s,"apiVersion":%s,"metadata":%s,"items":[' % (encode(kind), encode(api_version), encode(metadata))
    chunks: list[Chunk] = [head + opening if items else head]
    between = b"," + opening
    for item in items:
        chunks.append(item)
        chunks.append(between)
    if items:
        chunks.pop()
    chunks.append(b"]}")
    return chunks
