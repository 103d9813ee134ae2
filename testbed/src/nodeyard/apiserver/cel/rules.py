"""x-kubernetes-validations: the compiled rules of a schema, and their evaluation.

`compile_rules` compiles every rule at its node of the schema. `CompiledRules.evaluate` walks an object and its old
version along the nodes that have rules. A schema without rules compiles to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from nodeyard.apiserver.cel.correlation import Correlation, OldItems
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.cel.rules_at_node import Outcome, Site, compile_site
from nodeyard.apiserver.cel.schemas import declare
from nodeyard.kube.fields import FieldError, FieldErrorType, child, index, key
from nodeyard.kube.json import Json, Object
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.model import Schema

ROOT = "spec.validation.openAPIV3Schema"
_SELF_TYPE = "selfType"
_UNTYPED = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: "
    "unable to convert structural schema to CEL declarations"
)


@dataclass(slots=True)
class _Node:
    """A node of the schema with rules at it or below it."""

    schema: Schema
    site: Site | None = None
    properties: dict[str, _Node] = field(default_factory=dict)
    additional: _Node | None = None
    items: _Node | None = None


class CompiledRules:
    """The rules of a schema; evaluation is free if there are none."""

    def __init__(self, schema: Schema, root: _Node | None) -> None:
        self.schema = schema
        self._root = root

    def __bool__(self) -> bool:
        return self._root is not None

    def __del__(self) -> None:
        """Break the cycles of the schema: the checks that are compiled at its nodes refer to these nodes."""
        nodes = [self.schema]
        while nodes:
            node = nodes.pop()
            node.compiled.clear()
            nodes += node.properties.values()
            nodes += [each for each in (node.additional, node.items, node.not_) if each is not None]
            nodes += (*node.all_of, *node.any_of, *node.one_of)

    def evaluate(
        self, obj: Object, old: Object | None, warnings: list[str] | None = None, budget: Budget | None = None
    ) -> list[FieldError]:
        """Return the errors in the order of the schema. `old` is None on create.

        Errors of unchanged values are added to `warnings` instead. Raises CostlyError if a trial budget is
        spent.
        """
        if self._root is None:
            return []
        outcome = Outcome(budget=budget or Budget())
        _visit(self._root, "", obj, old, Correlation(self._root.schema, obj, old), outcome)
        if warnings is not None:
            warnings += outcome.warnings
        return outcome.errors


def compile_rules(schema: Schema, path: str = ROOT) -> tuple[CompiledRules, list[FieldError]]:
    """Return the compiled rules, and the errors of the others. `path` is the path of the schema in the CRD.

    The schema must be valid otherwise, see `definition_faults`.
    """
    compiler = _Compiler()
    root = compiler.visit(_Place(schema, path, is_root=True))
    return CompiledRules(schema, root), compiler.errors


def rule_faults(root: str = ROOT) -> Callable[[Object, str, str | None], list[FieldError]]:
    """Return the check of a single node's rules for `definition_faults`; `root` is the path of the schema."""

    def faults(node: Object, path: str, unmatched: str | None) -> list[FieldError]:
        compiler = _Compiler()
        is_root = path == root or bool(node.get("x-kubernetes-embedded-resource"))
        compiler.site(_Place(compile_schema(node), path, is_root, unmatched or ""))
        return compiler.errors

    return faults


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of the compiler."""

    schema: Schema
    path: str
    is_root: bool = False
    """True if this is the root of a resource, perhaps of an embedded one."""
    uncorrelatable: str = ""
    """The path of an enclosing list whose items have no keys, so that there is no oldSelf."""


class _Compiler:
    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def visit(self, place: _Place) -> _Node | None:
        """Visit children before the node itself, in the order of the API server's errors."""
        node = _Node(place.schema)
        schema = place.schema
        if schema.additional is not None:
            node.additional = self._part(place, schema.additional, "additionalProperties")
        for name, below in schema.properties.items():
            part = self._part(place, below, f"properties[{name}]")
            if part is not None:
                node.properties[name] = part
        if schema.items is not None:
            uncorrelatable = place.uncorrelatable or ("" if schema.list_type == "map" else place.path)
            node.items = self._part(replace(place, uncorrelatable=uncorrelatable), schema.items, "items")
        if schema.rules:
            node.site = self.site(place)
        return node if node.site or node.properties or node.additional or node.items else None

    def _part(self, place: _Place, schema: Schema, step: str) -> _Node | None:
        return self.visit(_Place(schema, child(place.path, step), schema.embedded, place.uncorrelatable))

    def site(self, place: _Place) -> Site | None:
        declared = declare(place.schema, _SELF_TYPE, is_root=place.is_root)
        if declared is None:
            at = f"{place.path}.x-kubernetes-validations"
            self.errors.append(FieldError(FieldErrorType.INTERNAL, at, detail=_UNTYPED))
            return None
        site, errors = compile_site(
            place.schema, declared, place.path, is_root=place.is_root, uncorrelatable=place.uncorrelatable
        )
        self.errors += errors
        return site


def _visit(node: _Node, path: str, new: Json, old: Json, correlation: Correlation, outcome: Outcome) -> None:
    if new is None or outcome.budget.is_closed:
        return
    if node.site is not None:
        node.site.evaluate(path, new, old, correlation, outcome)
    for below, step, value, before in _parts(node, path, new, old):
        _visit(below, step, value, before, Correlation(below.schema, value, before, correlation), outcome)


def _parts(node: _Node, path: str, new: Json, old: Json) -> Iterator[tuple[_Node, str, Json, Json]]:
    """Yield the children of a value that have rules, each with its path and old value."""
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        if node.additional is not None:
            for name, value in new.items():
                yield node.additional, key(path, name), value, before.get(name)
        for name, below in node.properties.items():
            if name in new:
                yield below, child(path, name), new[name], before.get(name)
    elif isinstance(new, list) and node.items is not None:
        items = OldItems(node.schema, old)
        for position, item in enumerate(new):
            yield node.items, index(path, position), item, items.find(item)
