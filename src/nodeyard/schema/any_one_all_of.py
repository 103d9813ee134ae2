"""Checks of anyOf, oneOf, allOf and not.

If no branch of anyOf or oneOf is valid, kube-apiserver reports the faults of the branch with the highest match count
(`MatchCount` of kube-openapi's validation result). The count decides which faults a user reads, so it is computed the
same way here.
"""

from __future__ import annotations

from collections.abc import Callable

from nodeyard.kube.json import Json
from nodeyard.schema.faults import Fault, branch_fault
from nodeyard.schema.model import Schema
from nodeyard.schema.scalars import Check, format_of, type_check, types_of

Table = dict[type, tuple[Check, ...]]
"""The checks of one schema node, by the Python type of the value."""
TableOf = Callable[[Schema], Table]


def run_checks(table: Table, value: Json) -> list[Fault]:
    """Run the checks of a node on a value."""
    faults: list[Fault] = []
    for check in table[value.__class__]:
        found = check(value)
        if found:
            faults += found
    return faults


def branch_check(schema: Schema, table_of: TableOf) -> Check | None:
    checks: list[Check] = []
    if schema.any_of:
        checks.append(_any_check(schema.any_of, table_of))
    if schema.one_of:
        checks.append(_one_check(schema.one_of, table_of))
    if schema.all_of:
        checks.append(_all_check(schema.all_of, table_of))
    if schema.not_ is not None:
        checks.append(_not_check(schema.not_, table_of))
    if not checks:
        return None

    def check(value: Json) -> list[Fault] | None:
        return [fault for each in checks for fault in each(value) or ()]

    return check


def _attribute_to_value(faults: list[Fault]) -> list[Fault]:
    """Attribute the faults of a branch to the value itself, for ratcheting."""
    for fault in faults:
        fault.own_steps = len(fault.steps)
    return faults


def _any_check(branches: tuple[Schema, ...], table_of: TableOf) -> Check:
    tables = [table_of(branch) for branch in branches]
    best_branch = _BestBranch(branches, table_of)

    def check(value: Json) -> list[Fault] | None:
        results = []
        for table in tables:
            faults = run_checks(table, value)
            if not faults:
                return None
            results.append(faults)
        return [branch_fault("must validate at least one schema (anyOf)"), *best_branch(results, value)]

    return check


def _one_check(branches: tuple[Schema, ...], table_of: TableOf) -> Check:
    tables = [table_of(branch) for branch in branches]
    best_branch = _BestBranch(branches, table_of)

    def check(value: Json) -> list[Fault] | None:
        results = [run_checks(table, value) for table in tables]
        valid = sum(1 for faults in results if not faults)
        if valid == 1:
            return None
        message = "must validate one and only one schema (oneOf)."
        if valid:
            return [branch_fault(f"{message} Found {valid} valid alternatives")]
        return [branch_fault(f"{message} Found none valid"), *best_branch(results, value)]

    return check


def _all_check(branches: tuple[Schema, ...], table_of: TableOf) -> Check:
    tables = [table_of(branch) for branch in branches]

    def check(value: Json) -> list[Fault] | None:
        results = [run_checks(table, value) for table in tables]
        if not any(results):
            return None
        ending = ". None validated" if all(results) else ""
        faults = [fault for found in results for fault in _attribute_to_value(found)]
        return [*faults, branch_fault(f"must validate all the schemas (allOf){ending}")]

    return check


def _not_check(branch: Schema, table_of: TableOf) -> Check:
    table = table_of(branch)

    def check(value: Json) -> list[Fault] | None:
        return None if run_checks(table, value) else [branch_fault("must not validate the schema (not)")]

    return check


class _BestBranch:
    """Selects the faults of the branch with the highest match count, the first of several."""

    def __init__(self, branches: tuple[Schema, ...], table_of: TableOf) -> None:
        self._branches = branches
        self._table_of = table_of

    def __call__(self, results: list[list[Fault]], value: Json) -> list[Fault]:
        counts = [self._match_count(branch, value) for branch in self._branches]
        return _attribute_to_value(results[counts.index(max(counts))])

    def _match_count(self, schema: Schema, value: Json) -> int:
        """Return the match count: one for each kind of check that applies, whatever its result, and some extra."""
        refuse = type_check(schema, value.__class__)
        fits = refuse is None or not refuse(value)
        if value is None:
            return int(fits)
        is_typed = bool(types_of(schema) or format_of(schema))
        count = 4 + (1 + fits if is_typed else 0) + self._branch_match_count(schema, value)
        if isinstance(value, str):
            return count + 1 + bool(format_of(schema))
        if isinstance(value, list):
            items = schema.items
            return count + 2 + (sum(self._match_count(items, item) for item in value) if items is not None else 0)
        if isinstance(value, dict):
            known = [(schema.properties[name], item) for name, item in value.items() if name in schema.properties]
            return count + 1 + sum(self._match_count(child, item) for child, item in known)
        return count + 2 * (not isinstance(value, bool))

    def _branch_match_count(self, schema: Schema, value: Json) -> int:
        total = sum(self._match_count(branch, value) for branch in schema.all_of)
        if schema.any_of:
            valid = self._valid(schema.any_of, value)
            total += max(self._match_count(branch, value) for branch in valid[:1] or schema.any_of)
        if schema.one_of:
            valid = self._valid(schema.one_of, value)
            if len(valid) <= 1:
                total += max(self._match_count(branch, value) for branch in valid or schema.one_of)
        return total

    def _valid(self, branches: tuple[Schema, ...], value: Json) -> list[Schema]:
        return [branch for branch in branches if not run_checks(self._table_of(branch), value)]
