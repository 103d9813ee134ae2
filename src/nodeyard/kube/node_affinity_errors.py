"""Validation of node selectors, with the messages of the API server.

`node_selector_errors` returns the errors with which the API server rejects a pod. It does not check that `Gt` and `Lt`
compare with a number; the scheduler does, and such a term matches no node. `comparison_errors` returns those errors,
for validation when the selector is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nodeyard.kube.fields import FieldError, child, forbidden, index, invalid, required
from nodeyard.kube.names import label_value_faults, qualified_name_faults, subdomain_faults
from nodeyard.kube.node_affinity import (
    NODE_NAME_FIELD,
    OPERATORS,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from nodeyard.kube.selectors.labels import ORDERED, int64


def node_selector_errors(selector: NodeSelector, path: str) -> list[FieldError]:
    terms_path = child(path, "nodeSelectorTerms")
    if not selector.node_selector_terms:
        return [required(terms_path, "must have at least one node selector term")]
    return [
        error
        for place, term in enumerate(selector.node_selector_terms)
        for error in node_selector_term_errors(term, index(terms_path, place))
    ]


def node_selector_term_errors(term: NodeSelectorTerm, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, expression in enumerate(term.match_expressions):
        errors += _expression_errors(expression, index(child(path, "matchExpressions"), place))
    for place, expression in enumerate(term.match_fields):
        errors += _field_errors(expression, index(child(path, "matchFields"), place))
    return errors


def comparison_errors(selector: NodeSelector, path: str) -> list[FieldError]:
    """Return an error for each bound that is not an integer, which makes its term match nothing."""
    return [
        invalid(f"{where}.values[0]", expression.values[0], "for 'Gt', 'Lt' operators, the value must be an integer")
        for where, expression in _expressions(selector, path)
        if OPERATORS.get(expression.operator) in ORDERED
        and len(expression.values) == 1
        and int64(expression.values[0]) is None
    ]


def _expressions(selector: NodeSelector, path: str) -> Iterator[tuple[str, NodeSelectorRequirement]]:
    for place, term in enumerate(selector.node_selector_terms):
        where = index(child(path, "nodeSelectorTerms"), place)
        for position, expression in enumerate(term.match_expressions):
            yield index(child(where, "matchExpressions"), position), expression


def _expression_errors(expression: NodeSelectorRequirement, path: str) -> list[FieldError]:
    errors = _values_errors(expression, path)
    errors += _faults_at(child(path, "key"), expression.key, qualified_name_faults)
    for place, value in enumerate(expression.values):
        errors += _faults_at(index(child(path, "values"), place), value, label_value_faults)
    return errors


def _values_errors(expression: NodeSelectorRequirement, path: str) -> list[FieldError]:
    """Check the number of values of each operator."""
    operator, number, values_path = expression.operator, len(expression.values), child(path, "values")
    if operator not in OPERATORS:
        return [invalid(child(path, "operator"), operator, "not a valid selector operator")]
    if operator in ("In", "NotIn") and not number:
        return [required(values_path, "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist") and number:
        return [forbidden(values_path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    if operator in ("Gt", "Lt") and number != 1:
        return [required(values_path, "must be specified single value when `operator` is 'Lt' or 'Gt'")]
    return []


def _field_errors(expression: NodeSelectorRequirement, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if expression.operator not in ("In", "NotIn"):
        errors.append(invalid(child(path, "operator"), expression.operator, "not a valid selector operator"))
    elif len(expression.values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(child(path, "values"), detail))
    if expression.key != NODE_NAME_FIELD:
        return [*errors, invalid(child(path, "key"), expression.key, "not a valid field selector key")]
    for place, value in enumerate(expression.values):
        errors += _faults_at(index(child(path, "values"), place), value, subdomain_faults)
    return errors


def _faults_at(path: str, value: str, faults_of: Callable[[str], list[str]]) -> list[FieldError]:
    return [invalid(path, value, fault) for fault in faults_of(value)]
