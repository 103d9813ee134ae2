"""Compiles a schema into checks: for each node and each JSON type, only the checks that can still fail.

Checks that depend only on the type of the value are resolved at compile time: a plain string in a string field costs
one dict lookup and no call. A node's `Table` is built at first use and stored with the node.
"""

from __future__ import annotations

from nodeyard.kube.fields import FieldErrorType, too_many
from nodeyard.kube.json import Json, json_equal
from nodeyard.schema.any_one_all_of import Table, branch_check
from nodeyard.schema.compile import OPEN
from nodeyard.schema.faults import Fault, MapKey, add_step, body_fault, plain_fault, required_fault
from nodeyard.schema.model import Schema
from nodeyard.schema.scalars import JSON_TYPES, Check, enum_check, number_check, string_checks, type_check

_LONGEST = 2**63


def table_of(schema: Schema) -> Table:
    known: Table | None = schema.compiled.get("checks")
    if known is None:
        # Stored before it is filled, so that a recursive type terminates.
        known = schema.compiled["checks"] = {}
        known.update({json_type: tuple(_checks(schema, json_type)) for json_type in JSON_TYPES})
        known[int] = _wide_integers(known)
    return known


def _checks(schema: Schema, json_type: type) -> list[Check]:
    """Return the checks in the server's order. A null is checked only for its type and enum."""
    checks: list[Check | None] = [type_check(schema, json_type)]
    if json_type is not type(None):
        checks.append(branch_check(schema, table_of))
    if json_type is str:
        checks += string_checks(schema)
    elif json_type in (int, float):
        checks.append(number_check(schema, json_type))
    elif json_type is list:
        checks.append(_list_check(schema))
    checks.append(enum_check(schema))
    if json_type is dict:
        checks.append(_object_check(schema))
    return [check for check in checks if check is not None]


def _wide_integers(table: Table) -> tuple[Check, ...]:
    """Check integers beyond 64 bits as floats, as the server decodes them."""
    narrow, wide = table[int], table[float]
    if not narrow and not wide:
        return ()

    def check(value: int) -> list[Fault] | None:
        if -_LONGEST <= value < _LONGEST:
            return [fault for each in narrow for fault in each(value) or ()] if narrow else None
        return [fault for each in wide for fault in each(float(value)) or ()]

    return (check,)


# lists


def _list_check(schema: Schema) -> Check | None:
    items = table_of(schema.items) if schema.items is not None else None
    least, most, is_unique = schema.min_items or 0, schema.max_items, schema.unique_items
    if items is None and not least and most is None and not is_unique:
        return None

    def check(value: list[Json]) -> list[Fault] | None:
        faults: list[Fault] = []
        if items is not None:
            for position, item in enumerate(value):
                for each in items[item.__class__]:
                    found = each(item)
                    if found:
                        faults += add_step(position, found)
        size = len(value)
        if size < least:
            faults.append(body_fault(FieldErrorType.INVALID, size, f"should have at least {least} items"))
        if most is not None and size > most:
            faults.append(plain_fault(FieldErrorType.TOO_MANY, None, too_many("", size, most).detail))
        if is_unique and _has_duplicates(value):
            faults.append(body_fault(FieldErrorType.INVALID, "", "shouldn't contain duplicates"))
        return faults

    return check


def _has_duplicates(items: list[Json]) -> bool:
    return any(json_equal(item, other) for position, item in enumerate(items) for other in items[:position])


# objects


def _object_check(schema: Schema) -> Check | None:
    sizes = _size_check(schema)
    fields = _field_check(schema)
    required = schema.required
    if sizes is None and fields is None and not required:
        return None

    def check(value: dict[str, Json]) -> list[Fault] | None:
        faults: list[Fault] = []
        if sizes is not None:
            faults += sizes(value) or ()
        if fields is not None:
            found = fields(value)
            if found:
                faults += found
        for name in required:
            if name not in value:
                faults.append(required_fault(name))
        return faults

    return check


def _size_check(schema: Schema) -> Check | None:
    least, most = schema.min_properties or 0, schema.max_properties
    if not least and most is None:
        return None

    def check(value: dict[str, Json]) -> list[Fault] | None:
        faults: list[Fault] = []
        size = len(value)
        if size < least:
            faults.append(body_fault(FieldErrorType.INVALID, size, f"should have at least {least} properties"))
        if most is not None and size > most:
            faults.append(plain_fault(FieldErrorType.TOO_MANY, None, too_many("", size, most).detail))
        return faults

    return check


def _field_check(schema: Schema) -> Check | None:
    properties = {name: table_of(child) for name, child in schema.properties.items()}
    is_closed = schema.closed
    additional = table_of(schema.additional) if schema.additional not in (None, OPEN) else None
    if not properties and additional is None and not is_closed:
        return None

    def check(value: dict[str, Json]) -> list[Fault] | None:
        faults: list[Fault] | None = None
        for name, item in value.items():
            table = properties.get(name)
            if table is None:
                if is_closed:
                    faults = [*(faults or ()), _forbidden(name)]
                if additional is None:
                    continue
                table = additional
            for each in table[item.__class__]:
                found = each(item)
                if found:
                    faults = faults or []
                    faults += add_step(MapKey(name) if table is additional else name, found)
        return faults

    return check


def _forbidden(name: str) -> Fault:
    return Fault(FieldErrorType.INVALID, name, lambda path: f"{path}.{name} in body is a forbidden property")
