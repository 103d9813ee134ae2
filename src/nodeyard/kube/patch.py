"""Merge patch (RFC 7386) and JSON patch (RFC 6902), as the API server understands them.

Both take a persistent value and return one: untouched parts are identical in the result, and a patch that changes
nothing returns `target` itself, so that a later comparison can skip by identity.

Where kube-apiserver differs from the RFCs, we follow kube-apiserver: `replace` of a missing member adds it, `copy`
of one copies null, negative array indices count from the end, and null members inside the objects of a newly set list
are dropped.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nodeyard.kube.json import Json, Object, json_equal, read_float

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024

REJECTED = "the server rejected our request due to an error in our request"
"""The server's message for an operation that does not apply."""

_decode = msgspec.json.Decoder(float_hook=read_float).decode
_INDEX_DIGITS = 18
"""Python refuses to read very long numbers."""
_MEMBERS = ("op", "path", "from", "value")


class PatchError(Exception):
    """A refused patch: HTTP status and reason of the response, and the exact error."""

    def __init__(self, code: int, reason: str, message: str, why: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.why = why or message


def malformed(message: str) -> PatchError:
    return PatchError(400, "BadRequest", message)


def rejected(why: str) -> PatchError:
    return PatchError(422, "Invalid", REJECTED, why)


# merge patch


def merge_patch(target: Object, patch: Json) -> Object:
    """Return `target` with the members of `patch` set; null members are removed."""
    if patch is None:
        raise malformed("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise malformed(f"error decoding patch: {unmarshal_fault(patch, 'value of type map[string]interface {}')}")
    return _merge(target, patch)


def _merge(target: Object, patch: Object) -> Object:
    result = target
    for name, value in patch.items():
        if value is None:
            if name in result:
                result = dict(target) if result is target else result
                del result[name]
            continue
        current = target.get(name)
        if not isinstance(current, dict):
            value = without_nulls(value)
        elif isinstance(value, dict):
            value = _merge(current, value)
        if value is current or (current is not None and json_equal(current, value)):
            continue
        if result is target:
            result = dict(target)
        result[name] = value
    return result


def without_nulls(value: Json) -> Json:
    """Return the value without null members of objects, also of objects in lists; null items of lists stay."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def merge_diff(old: Json, new: Json) -> Json | None:
    """Return the merge patch from `old` to `new`; None if they are equal.

    A merge patch cannot set null: a null member of `new` counts as absent.
    """
    if old is new:
        return None
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None if json_equal(old, new) else new
    patch: Object = {name: None for name, value in old.items() if value is not None and new.get(name) is None}
    for name, value in new.items():
        if value is None:
            continue
        difference = merge_diff(old.get(name), value)
        if difference is not None:
            patch[name] = difference
    return patch or None


# JSON patch


def json_patch(target: Object, operations: Json) -> Json:
    """Return `target` after all operations, in order; raise PatchError if one of them does not apply."""
    if operations is None:
        return target
    _check(operations)
    draft = _Draft(target)
    for operation in operations:
        kind = operation.get("op") if operation else None
        apply = _OPERATIONS.get(kind or "unknown")
        if apply is None:
            raise rejected(f"unknown operation {kind!r}")
        apply(draft, operation)
    return target if json_equal(target, draft.root) else draft.root


def unknown_members(operations: Json) -> list[str]:
    """List the paths of unknown members of operations."""
    return [
        f"[{position}].{name}"
        for position, operation in enumerate(operations or ())
        if isinstance(operation, dict)
        for name in operation
        if name not in _MEMBERS
    ]


def has_copies(operations: Json) -> bool:
    """Return True if a JSON patch can expand the document (`copy`)."""
    return isinstance(operations, list) and any(
        isinstance(operation, dict) and operation.get("op") == "copy" for operation in operations
    )


def unmarshal_fault(value: Json, into: str) -> str:
    """Return Go's decoding error of a value of the wrong type; `into` is the type's name in Go."""
    return f"json: cannot unmarshal {_json_type(value)} into Go {into}"


def _json_type(value: Json) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "number"


def _check(operations: Json) -> None:
    if not isinstance(operations, list):
        raise malformed(f"error decoding patch: {unmarshal_fault(operations, 'value of type []handlers.jsonPatchOp')}")
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise malformed(f"error decoding patch: {unmarshal_fault(operation, 'value of type handlers.jsonPatchOp')}")
        for name in ("op", "path", "from"):
            text = operation.get(name)
            if text is not None and not isinstance(text, str):
                into = f"struct field jsonPatchOp.{name} of type string"
                raise malformed(f"error decoding patch: {unmarshal_fault(text, into)}")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}",
        )


class _Draft:
    """A document being patched. Containers created here are changed in place, all others are copied before a change."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.copied_bytes = 0
        # Held by reference, so that an id cannot be reused while it counts as ours.
        self._own: dict[int, Json] = {}

    def own(self, container: Json) -> Json:
        if id(container) in self._own:
            return container
        copy = container.copy()
        self._own[id(copy)] = copy
        return copy

    def find(self, pointer: str) -> tuple[Json, str]:
        """Return the container of the value that the pointer names, and the last token."""
        tokens = _tokens(pointer)
        container = self.root
        for token in tokens[:-1]:
            container = _member(container, token)
            if not isinstance(container, dict | list):
                raise rejected(f"nothing at {pointer}")
        return container, tokens[-1]

    def change(self, pointer: str, act: Callable[[Json, str], None]) -> None:
        """Let `act` change the container of the value that the pointer names."""
        self.find(pointer)
        tokens = _tokens(pointer)
        container = self.root = self.own(self.root)
        for token in tokens[:-1]:
            key = token if isinstance(container, dict) else _index(container, token)
            child = container[key] = self.own(container[key])
            container = child
        act(container, tokens[-1])


def _tokens(pointer: str) -> list[str]:
    parts = pointer.split("/")
    if len(parts) < 2:
        raise rejected(f"{pointer!r} names no member")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts[1:]]


def _pointer(operation: Object, name: str) -> str:
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        raise rejected(f"the operation has no {name}")
    return pointer


def _number(token: str) -> int:
    digits = token[1:] if token[:1] in ("+", "-") else token
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _INDEX_DIGITS):
        raise rejected(f"{token[:100]!r} is no index")
    return int(token)


def _index(items: list[Json], token: str, size: int | None = None) -> int:
    """Return the position that a token names; `size` is one more than the length if an item may be added at the end."""
    limit = len(items) if size is None else size
    position = _number(token)
    if not -limit <= position < limit:
        raise rejected(f"index {token} is out of bounds")
    return position % limit


def _member(container: Json, token: str) -> Json:
    """Return the value of a token; a missing member of an object is null."""
    if isinstance(container, list):
        return container[_index(container, token)]
    return container.get(token)


def _insert(value: Json) -> Callable[[Json, str], None]:
    def insert(container: Json, token: str) -> None:
        if isinstance(container, dict):
            container[token] = value
        elif token == "-":
            container.append(value)
        else:
            container.insert(_index(container, token, len(container) + 1), value)

    return insert


def _delete(container: Json, token: str) -> None:
    if isinstance(container, list):
        del container[_index(container, token)]
    elif token in container:
        del container[token]
    else:
        raise rejected(f"there is no member {token!r} to remove")


def _add(draft: _Draft, operation: Object) -> None:
    draft.change(_pointer(operation, "path"), _insert(operation.get("value")))


def _remove(draft: _Draft, operation: Object) -> None:
    draft.change(_pointer(operation, "path"), _delete)


def _replace(draft: _Draft, operation: Object) -> None:
    pointer, value = _pointer(operation, "path"), operation.get("value")
    if pointer == "":
        if not isinstance(value, dict | list):
            raise rejected("a document is an object or an array")
        draft.root = value
        return

    def put(container: Json, token: str) -> None:
        container[token if isinstance(container, dict) else _index(container, token)] = value

    draft.change(pointer, put)


def _move(draft: _Draft, operation: Object) -> None:
    source = _pointer(operation, "from")
    value = _member(*draft.find(source))
    draft.change(source, _delete)
    draft.change(_pointer(operation, "path"), _insert(value))


def _copy(draft: _Draft, operation: Object) -> None:
    raw = msgspec.json.encode(_member(*draft.find(_pointer(operation, "from"))))
    draft.copied_bytes += len(raw)
    if draft.copied_bytes > MAX_COPIED_BYTES:
        raise rejected(f"copies add up to {draft.copied_bytes} bytes, more than {MAX_COPIED_BYTES}")
    # Copied, so that a change in one place does not affect the other.
    draft.change(_pointer(operation, "path"), _insert(_decode(raw)))


def _test(draft: _Draft, operation: Object) -> None:
    pointer, wanted = _pointer(operation, "path"), operation.get("value")
    actual = draft.root if pointer == "" else _member(*draft.find(pointer))
    if not json_equal(actual, wanted):
        raise rejected(f"the value at {pointer} is another")


_OPERATIONS: dict[str, Callable[[_Draft, Object], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
