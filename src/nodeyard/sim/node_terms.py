"""Node selector terms, as required node affinity has them: any term, all of its expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nodeyard.kube.json import Object


def matches_terms(terms: Sequence[Object], node: Object) -> bool:
    """A term without expressions and fields matches nothing."""
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(_matches(term, labels, fields) for term in terms)


def _matches(term: Object, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    expressions, named = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not named:
        return False
    return all(_holds(one, labels) for one in expressions) and all(_holds(one, fields) for one in named)


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    return _OPERATORS[expression["operator"]](value, expression.get("values") or ())


def _ordered(value: str | None, values: Sequence[str], is_right: Callable[[int, int], bool]) -> bool:
    try:
        return value is not None and is_right(int(value), int(values[0]))
    except ValueError:
        return False


_OPERATORS: dict[str, Callable[[str | None, Sequence[str]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, values: value is not None,
    "DoesNotExist": lambda value, values: value is None,
    "Gt": lambda value, values: _ordered(value, values, int.__gt__),
    "Lt": lambda value, values: _ordered(value, values, int.__lt__),
}
