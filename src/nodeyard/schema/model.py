"""The schema model of built-in kinds and custom resources.

A `Schema` is compiled once, from a CRD's openAPIV3Schema or from the table of built-in types. Defaulting, pruning,
validation, server-side apply and strategic merge patch walk it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal


class Unset:
    """The default of a field without one; `null` is a value."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()

ListType = Literal["atomic", "set", "map"]
MapType = Literal["granular", "atomic"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of x-kubernetes-validations."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = "FieldValueInvalid"
    field_path: str = ""
    optional_old_self: bool = False


@dataclass(slots=True, eq=False)
class Schema:
    """One node of a type. `properties` and `items` may refer to a node above (recursive types).

    Immutable once compiled.
    """

    type: str = ""
    """object, array, string, integer, number, boolean; empty for int-or-string and any JSON."""

    # structure
    properties: dict[str, Schema] = field(default_factory=dict)
    additional: Schema | None = None
    closed: bool = False
    """additionalProperties: false; other keys than `properties` are refused instead of pruned."""
    items: Schema | None = None
    required: tuple[str, ...] = ()
    nullable: bool = False
    int_or_string: bool = False
    preserve_unknown: bool = False
    embedded: bool = False
    """x-kubernetes-embedded-resource: apiVersion, kind and metadata are kept and validated."""
    default: Any = UNSET

    # merging
    list_type: ListType | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: MapType | None = None
    patch_strategy: str = ""
    """Strategic merge patch of built-in kinds: merge, replace, retainKeys, joined by commas."""
    patch_merge_key: str = ""

    # values
    enum: tuple[Any, ...] | None = None
    format: str = ""
    pattern: str = ""
    minimum: float | int | None = None
    maximum: float | int | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    unique_items: bool = False
    all_of: tuple[Schema, ...] = ()
    any_of: tuple[Schema, ...] = ()
    one_of: tuple[Schema, ...] = ()
    not_: Schema | None = None

    rules: tuple[Rule, ...] = ()
    description: str = ""

    compiled: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """Cache of the checks and walks that are compiled from this node at first use."""
