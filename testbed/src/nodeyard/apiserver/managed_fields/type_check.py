"""Type check of applied configurations, in the words of kube-apiserver.

A configuration is partial and untyped, so it is checked before it is merged. Objects of update and patch are not: they
were decoded as their type.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.apiserver.managed_fields import paths
from nodeyard.apiserver.managed_fields.type_shape import Kind, Shape, ShapeError
from nodeyard.kube.goformat import literal, plain, type_name
from nodeyard.kube.json import Json


def type_faults(shape: Shape, value: Json) -> list[str]:
    """Return what does not fit the type, each fault with its path."""
    return [f"{path}: {text}" if path else text for path, text in _faults(shape, value, "")]


def format_faults(faults: list[str]) -> str:
    if len(faults) == 1:
        return faults[0]
    return "\n".join(["errors:", *(f"  {fault}" for fault in faults)])


def _faults(shape: Shape, value: Json, path: str) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    match shape.kind(value):
        case Kind.MAP:
            yield from _map_faults(shape, value, path)
        case Kind.LIST:
            yield from _list_faults(shape, value, path)
        case _:
            fault = _scalar_fault(shape.scalar, value)
            if fault:
                yield path, fault


def _map_faults(shape: Shape, value: Json, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield path, f"expected map, got &{{{plain(value)}}}"
        return
    for name in sorted(value):
        member = shape.fields.get(name) or shape.element
        if member is None:
            yield f"{path}.{name}", "field not declared in schema"
            return
        yield from _faults(member, value[name], f"{path}.{name}")


def _list_faults(shape: Shape, value: Json, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list):
        yield path, f"expected list, got &{{{plain(value)}}}"
        return
    seen = set()
    for position, item in enumerate(value):
        step = f"[{position}]"
        if shape.list_type != "atomic":
            try:
                element = shape.item_element(item)
            except ShapeError as fault:
                yield path, f"element {position}: {fault}"
                return
            step = paths.render([element])
            if element in seen:
                yield path, f"duplicate entries for key {step}"
            seen.add(element)
        yield from _faults(shape.item, item, path + step)


def _scalar_fault(scalar: str, value: Json) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric" and not is_number:
        return f"expected numeric (int or float), got {type_name(value)}"
    if scalar == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{literal(value)}}}"
    if scalar == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{plain(value)}}}"
    if scalar == "untyped" and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{plain(value)}}}"
    return ""
