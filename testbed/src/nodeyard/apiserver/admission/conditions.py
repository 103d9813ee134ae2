"""matchConditions: expressions that must all be true before a webhook is called or a policy evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from nodeyard.apiserver.cel.cost import PER_MATCH, Budget
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.errors import aggregate
from nodeyard.kube.json import Object

Bindings = Mapping[str, Any]


class Program(Protocol):
    """A compiled expression; evaluation raises EvaluationError, or CostlyError if a trial budget is spent."""

    def evaluate(self, variables: Bindings, budget: Budget | None = None) -> Any: ...


OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

Compile = Callable[[str], Program]


class ConditionError(Exception):
    """The conditions could not be evaluated."""


class Conditions:
    """The matchConditions of a webhook or policy, compiled at their first evaluation, perhaps off the loop."""

    def __init__(self, conditions: Iterable[Object], compile_: Compile) -> None:
        self._sources: list[str] = [each["expression"] for each in conditions]
        self._compile = compile_
        self._programs: list[Program] | None = None

    def __bool__(self) -> bool:
        return bool(self._sources)

    def hold(self, bindings: Bindings, trial: Budget | None) -> bool:
        """Return True if all are true. A false one decides; else raise ConditionError if one fails.

        They are paid from the trial budget, or from one of their own.
        """
        faults = []
        budget = trial or Budget(PER_MATCH)
        if self._programs is None:
            budget.spend_on_compiling(self._sources)
            self._programs = [self._compile(source) for source in self._sources]
        for source, program in zip(self._sources, self._programs, strict=True):
            try:
                if program.evaluate(bindings, budget) is not True:
                    return False
            except EvaluationError as fault:
                if budget.is_spent:
                    raise ConditionError(OUT_OF_BUDGET) from fault
                faults.append(f"expression '{source}' resulted in error: {fault}")
        if faults:
            raise ConditionError(aggregate(faults))
        return True
