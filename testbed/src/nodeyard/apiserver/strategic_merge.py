"""Strategic merge patch: a merge patch that knows the type.

Lists whose field has the strategy `merge` are merged item by item, objects by their merge key, scalars as a set; every
other list is replaced. Directives in the patch say what a merge cannot: `$patch: replace|delete`, `$retainKeys`,
`$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. Only built-in kinds have it; custom resources answer
415 before they get here.

Original and patch are persistent values, and what the patch leaves alone is the same object in the result.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.kube.goformat import plain, type_name
from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.kube.patch import PatchError, malformed, rejected, unmarshal_fault, without_nulls
from nodeyard.schema.model import Schema

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"

_ABSENT: Final = object()
_identity = msgspec.json.Encoder().encode


def strategic_merge_patch(schema: Schema, target: Object, patch: Json) -> Object:
    """`target` merged with `patch` as the fields' strategies in `schema` say."""
    if patch is None:
        return target
    if not isinstance(patch, dict):
        raise malformed(unmarshal_fault(patch, "value of type map[string]interface {}"))
    return _merge_map(schema, target, patch)


def _failure(message: str) -> PatchError:
    """An error that the server does not attribute to the client: 500, without a reason."""
    return PatchError(500, "", message)


# maps


def _merge_map(schema: Schema, original: Object, patch: Object) -> Object:
    if DIRECTIVE in patch:
        return _directed(patch)
    result = _retained(original, patch)
    rest = {name: value for name, value in patch.items() if name != RETAIN_KEYS and not name.startswith(SET_ORDER)}
    for name, order in patch.items():
        if name.startswith(SET_ORDER):
            _merge_ordered(schema, result, rest, name, order)
    for name, value in rest.items():
        _merge_member(schema, result, name, value)
    unchanged = len(result) == len(original) and all(original.get(name) is value for name, value in result.items())
    return original if unchanged else result


def _directed(patch: Object) -> Object:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Json, patch: Object) -> PatchError:
    return _failure(f"unknown patch type: {plain(directive)} in map: {plain(patch)}")


def _retained(original: Object, patch: Object) -> Object:
    """A copy of the original without the members that `$retainKeys` does not list."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    fault = malformed("invalid patch format of retainKeys")
    retained = patch[RETAIN_KEYS]
    if not isinstance(retained, list):
        raise fault
    for name, value in patch.items():
        is_directive = name == RETAIN_KEYS or name.startswith((DELETE_FROM_LIST, SET_ORDER))
        if value is not None and not is_directive and name not in retained:
            raise fault
    return {name: value for name, value in original.items() if name in retained}


def _merge_member(schema: Schema, result: Object, name: str, value: Json) -> None:
    is_deletion = name.startswith(DELETE_FROM_LIST)
    if is_deletion:
        name = _field_of(name, DELETE_FROM_LIST, "invalid patch format of primitive list")
    if value is None:
        result.pop(name, None)
        return
    current = result.get(name)
    if isinstance(current, dict) and isinstance(value, dict):
        member = _struct_field(schema, name)
        merged = value if _strategy(member) == "replace" else _merge_map(member, current, value)
        _put(result, name, merged)
    elif isinstance(current, list) and isinstance(value, list):
        member = _list_field(schema, name)
        merges = is_deletion or _strategy(member) == "merge"
        _put(result, name, _merge_list(member, current, value, is_deletion) if merges else value)
    elif not is_deletion:
        _put(result, name, _without_directives(without_nulls(value)))


def _put(result: Object, name: str, value: Json) -> None:
    if value is _ABSENT:
        result.pop(name, None)
    elif name not in result or not json_equal(result[name], value):
        result[name] = value


def _without_directives(value: Json) -> Json:
    """A value of the patch that has no original; objects that only give an order are dropped."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _ABSENT
        members = {name: _without_directives(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member is not _ABSENT}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if item is not _ABSENT]
    return value


# the type


def _field_of(name: str, prefix: str, fault: str) -> str:
    """`$prefix/field` names a field."""
    head, slash, field = name.partition("/")
    if head != prefix or not slash:
        raise malformed(fault)
    return field


def _struct_field(schema: Schema, name: str) -> Schema:
    if schema.additional is not None:
        raise _failure("merging an object in json but data type is not struct, instead is: map")
    field = schema.properties.get(name)
    if field is None:
        raise _failure(f'unable to find api field in struct for the json field "{name}"')
    return field


def _list_field(schema: Schema, name: str) -> Schema:
    field = _struct_field(schema, name)
    if field.type != "array":
        raise _failure("expected slice or array type, but got: struct")
    return field


def _strategy(schema: Schema) -> str:
    """The field's strategy without `retainKeys`, which is for the client that makes the patch."""
    return ",".join(part for part in schema.patch_strategy.split(",") if part != "retainKeys")


# lists


def _merge_list(field: Schema, original: list[Json], patch: list[Json], is_deletion: bool) -> list[Json]:
    if not original and not patch:
        return original
    if _element_type(original, patch) is not dict:
        if is_deletion:
            return [item for item in original if item not in patch]
        return _arranged(list(dict.fromkeys([*original, *patch])), patch, original, "")
    key = field.patch_merge_key
    if not key:
        raise _failure("cannot merge lists without merge key for struct")
    original, patch = _obeyed(original, patch, key)
    merged = _merge_items(field.items or Schema(), original, patch, key)
    return _arranged(merged, patch, original, key)


def _element_type(*lists: list[Json]) -> type:
    types = {type(item) for items in lists for item in items}
    if not types:
        raise _failure("no elements in any of the given slices")
    if len(types) > 1:
        raise _failure(f"list element types are not identical: {plain(list(lists))}")
    if list in types:
        raise rejected("lists of lists are not supported")
    return types.pop()


def _obeyed(original: list[Json], patch: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    """Return original and patch after the directives among the patch's items."""
    plain_items, replaces = [], False
    for item in patch:
        directive = item.get(DIRECTIVE, _ABSENT)
        if directive is _ABSENT:
            plain_items.append(item)
        elif directive == "delete":
            doomed = _key_of(item, key)
            original = [kept for kept in original if _is_other(kept, key, doomed)]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise _failure("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    return (plain_items, []) if replaces else (original, plain_items)


def _is_other(item: Object, key: str, identity: bytes) -> bool:
    return key not in item or _identity(item[key]) != identity


def _merge_items(schema: Schema, original: list[Json], patch: list[Json], key: str) -> list[Json]:
    merged = list(original)
    places: dict[bytes, int] = {}
    for place, item in enumerate(original):
        if key in item:
            places.setdefault(_identity(item[key]), place)
    for item in patch:
        identity = _key_of(item, key)
        place = places.setdefault(identity, len(merged))
        if place == len(merged):
            merged.append(item)
        else:
            merged[place] = _merge_map(schema, merged[place], item)
    return merged


def _key_of(item: Json, key: str) -> bytes:
    """The identity of an item: its merge key, or the item itself if it is a scalar."""
    if not key:
        return _identity(item)
    if not isinstance(item, dict):
        raise _failure(f"expected a map[string]interface {{}}, but received a {type_name(item)}")
    if key not in item:
        raise _failure(f"map: {plain(item)} does not contain declared merge key: {key}")
    return _identity(item[key])


def _places(items: list[Json], key: str) -> dict[bytes, int]:
    places: dict[bytes, int] = {}
    for place, item in enumerate(items):
        places.setdefault(_key_of(item, key), place)
    return places


def _arranged(merged: list[Json], order: list[Json], live: list[Json], key: str) -> list[Json]:
    """Items named by `order` follow it; each other item keeps its place before those it preceded in `live`."""
    wanted, before = _places(order, key), _places(live, key)
    keyed = [(_key_of(item, key), item) for item in merged]
    ours = sorted((pair for pair in keyed if pair[0] in wanted), key=lambda pair: wanted[pair[0]])
    others = sorted((pair for pair in keyed if pair[0] not in wanted), key=lambda pair: before.get(pair[0], -1))
    arranged = []
    for identity, item in ours:
        while others and before.get(others[0][0], len(live)) < before.get(identity, -1):
            arranged.append(others.pop(0)[1])
        arranged.append(item)
    return arranged + [item for _, item in others]


# $setElementOrder


def _merge_ordered(schema: Schema, result: Object, patch: Object, directive: str, order: Json) -> None:
    """Merge one list in the order of the patch, and remove it from the patch."""
    if not isinstance(order, list):
        raise _failure(f"expected a []interface {{}}, but received a {type_name(order)}")
    name = _field_of(directive, SET_ORDER, "invalid patch format of setElementOrder list")
    for owner in (result, patch):
        if name in owner and not isinstance(owner[name], list):
            raise _failure(f"expected a []interface {{}}, but received a {type_name(owner[name])}")
    field = _list_field(schema, name)
    live, changes = result.get(name), patch.get(name)
    _check_order(changes or [], order, field.patch_merge_key)
    if live is None and changes is None:
        return
    if live is None:
        merged = _without_directives(changes)
    elif changes is None:
        merged = live
    elif _strategy(field) == "merge":
        merged = _merge_list(field, live, changes, is_deletion=False)
    else:
        merged = changes
    _element_type(live or [], changes or [])
    _put(result, name, _arranged(merged, order, live or [], field.patch_merge_key))
    patch.pop(name, None)


def _check_order(changes: list[Json], order: list[Json], key: str) -> None:
    """Check that the items of the patch are in the order, in the same sequence."""
    if not changes or not order:
        return
    remaining = iter(order)
    for item in changes:
        if isinstance(item, dict) and DIRECTIVE in item:
            continue
        identity = _key_of(item, key)
        if not any(_key_of(place, key) == identity for place in remaining):
            raise _failure(
                f"The order in patch list:\n{plain(changes)}\n doesn't match {SET_ORDER} list:\n{plain(order)}\n"
            )
