"""matchConditions: expressions that must all hold before a webhook is called or a policy speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.kube.json import Object

Bindings = Mapping[str, Any]


class Program(Protocol):
    """A compiled expression; evaluation raises EvaluationError."""

    def evaluate(self, variables: Bindings) -> Any: ...


Compile = Callable[[str], Program]


class ConditionError(Exception):
    """Whether the conditions hold cannot be said."""


class Conditions:
    def __init__(self, conditions: Iterable[Object], compile_: Compile) -> None:
        self._programs = [(each["expression"], compile_(each["expression"])) for each in conditions]

    def __bool__(self) -> bool:
        return bool(self._programs)

    def hold(self, bindings: Bindings) -> bool:
        """One that is false decides, whatever the others do; otherwise one that fails does."""
        faults = []
        for source, program in self._programs:
            try:
                if program.evaluate(bindings) is not True:
                    return False
            except EvaluationError as fault:
                faults.append(f"expression '{source}' resulted in error: {fault}")
        if faults:
            raise ConditionError(aggregate(faults))
        return True


def aggregate(faults: list[str]) -> str:
    """Several errors as one text, each once."""
    unique = list(dict.fromkeys(faults))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
