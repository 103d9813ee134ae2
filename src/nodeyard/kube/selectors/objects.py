"""Label selectors as objects: `matchLabels` and `matchExpressions` in a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodeyard.kube.fields import FieldError, child, forbidden, index, invalid, required
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_value_faults, qualified_name_faults
from nodeyard.kube.selectors.labels import (
    SETS,
    UNARY,
    Labels,
    LabelSelector,
    Operator,
    Requirement,
    SelectorError,
    join_errors,
    requirement_errors,
)

_OF_OBJECT: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_object(spec: Object | None) -> LabelSelector:
    """Convert a `metav1.LabelSelector`: a missing one selects nothing, an empty one everything."""
    if spec is None:
        return LabelSelector(is_nothing=True)
    labels: Mapping[str, str] = spec.get("matchLabels") or {}
    requirements = [Requirement(label, Operator.EQUALS, (value,)) for label, value in labels.items()]
    requirements.extend(_of_expression(expression) for expression in spec.get("matchExpressions") or ())
    for requirement in requirements:
        if errors := requirement_errors(requirement):
            raise SelectorError(join_errors(errors))
    return LabelSelector(requirements)


def from_labels(labels: Labels) -> LabelSelector:
    """Convert the plain map of a Service or ReplicationController; an empty one selects everything."""
    return LabelSelector(Requirement(label, Operator.EQUALS, (value,)) for label, value in labels.items())


def _of_expression(expression: Object) -> Requirement:
    word = expression.get("operator", "")
    operator = _OF_OBJECT.get(word)
    if operator is None:
        raise SelectorError(f'"{word}" is not a valid label selector operator')
    return Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ()))


def object_errors(spec: Object | None, path: str) -> list[FieldError]:
    """Return the validation errors of a `metav1.LabelSelector` in a spec."""
    errors: list[FieldError] = []
    if spec is None:
        return errors
    labels_path = child(path, "matchLabels")
    for label, value in sorted((spec.get("matchLabels") or {}).items()):
        errors.extend(invalid(labels_path, label, fault) for fault in qualified_name_faults(label))
        errors.extend(invalid(labels_path, value, fault) for fault in label_value_faults(value))
    for position, expression in enumerate(spec.get("matchExpressions") or ()):
        errors.extend(_expression_errors(expression, index(child(path, "matchExpressions"), position)))
    return errors


def _expression_errors(expression: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    word, label = expression.get("operator", ""), expression.get("key", "")
    values: Sequence[str] = expression.get("values") or ()
    operator = _OF_OBJECT.get(word)
    if operator is None:
        errors.append(invalid(child(path, "operator"), word, "not a valid selector operator"))
    elif operator in SETS and not values:
        errors.append(required(child(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in UNARY and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(forbidden(child(path, "values"), detail))
    errors.extend(invalid(child(path, "key"), label, fault) for fault in qualified_name_faults(label))
    for position, value in enumerate(values):
        where = index(child(path, "values"), position)
        errors.extend(invalid(where, value, fault) for fault in label_value_faults(value))
    return errors
