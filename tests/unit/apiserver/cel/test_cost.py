"""Cost budgets of expressions, and the cost of calls."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.cel.cost import TRIAL, Budget, CostlyError
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.expressions import Expression

LETTERS = [f"k{number}" for number in range(400)]
NESTED: dict[str, Any] = {"a": {"b": [{"c": letter} for letter in LETTERS]}}
VARIABLES: dict[str, Any] = {
    "items": LETTERS,
    "many": LETTERS * 20,
    "left": NESTED,
    "right": {"a": {"b": [*NESTED["a"]["b"][:-1], {"c": "other"}]}},
    "text": "a" * 60_000,
}
COSTLY = [
    "items.all(a, items.all(b, a.size() + b.size() > 0))",
    "items.all(a, left != right)",
    "many.distinct().size() == 400",
    "sets.equivalent(many, many)",
    "items.all(a, many.exists(b, b == 'none') || true)",
    "items.all(a, many.indexOf('none') == -1)",
    "items.all(a, !('none' in many))",
    "items.all(a, text.matches('b+') || text.lowerAscii() != '')",
    "text.replace('a', text).size() > 0",
    "many.map(m, text).join().size() > 0",
    "'%s %s'.format([many, many]).size() > 0 && items.all(a, '%s'.format([many]) != '')",
    "lists.range(900000).size() > 0",
]


def spent(source: str) -> int:
    budget = Budget()
    before = budget.remaining
    Expression.compile(source, list(VARIABLES)).evaluate(VARIABLES, budget)
    return before - budget.remaining


@pytest.mark.parametrize("source", COSTLY)
def test_slow_expressions_exceed_the_trial_budget(source: str) -> None:
    expression = Expression.compile(source, list(VARIABLES))

    with pytest.raises(CostlyError):
        expression.evaluate(VARIABLES, Budget.trial())


@pytest.mark.parametrize("source", ["items.size() == 400", "'k7' in items", "left == left", "text.startsWith('a')"])
def test_fast_expressions_are_evaluated_on_trial(source: str) -> None:
    assert Expression.compile(source, list(VARIABLES)).evaluate(VARIABLES, Budget.trial()) is True
    assert spent(source) < TRIAL // 10


def test_equality_costs_what_the_values_contain() -> None:
    assert spent("left == right") > 2 * len(LETTERS)
    assert spent("left == left") < len(LETTERS)


def test_expressions_share_a_trial_budget() -> None:
    expression = Expression.compile("items.all(a, a.size() > 0)", list(VARIABLES))
    budget = Budget.trial()

    def evaluate_often() -> None:
        for _ in range(TRIAL):
            expression.evaluate(VARIABLES, budget)

    with pytest.raises(CostlyError):
        evaluate_often()


def test_an_expression_that_would_fill_the_memory_is_cancelled() -> None:
    expression = Expression.compile("items.map(i, text.replace('a', text)).size() > 0", list(VARIABLES))

    with pytest.raises(EvaluationError, match="actual cost limit exceeded"):
        expression.evaluate(VARIABLES, Budget())


def test_compiling_spends_only_a_trial_budget() -> None:
    budget, trial = Budget(), Budget.trial()
    budget.spend_on_compiling(["x" * TRIAL])

    with pytest.raises(CostlyError):
        trial.spend_on_compiling(["x" * TRIAL])
    assert budget.remaining == Budget().remaining
