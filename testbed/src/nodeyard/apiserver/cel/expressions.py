"""The compiled expression of a policy or match condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.cel.declarations import Functions
from nodeyard.apiserver.cel.environment import Compiled, compile_expression
from nodeyard.apiserver.cel.errors import CompileError, InstantiationError
from nodeyard.apiserver.cel.library import FUNCTIONS
from nodeyard.apiserver.cel.types import DYN, Type


class Expression:
    """A compiled expression; `result` is its type."""

    def __init__(self, source: str, compiled: Compiled) -> None:
        self.source = source
        self.result = compiled.result
        self.variables = compiled.variables
        self._program = compiled.program

    @classmethod
    def compile(
        cls,
        source: str,
        variables: Mapping[str, Type] | Iterable[str],
        results: Iterable[Type] = (),
        functions: Functions = FUNCTIONS,
    ) -> Expression:
        """Compile an expression. Raises CompileError with the API server's text. Variables without a type are dynamic.

        The result must be of one of `results`, if any are given.
        """
        declared = variables if isinstance(variables, Mapping) else dict.fromkeys(variables, DYN)
        try:
            compiled = compile_expression(source, declared, functions)
        except CompileError as error:
            raise CompileError(f"compilation failed: {error}") from None
        except InstantiationError as error:
            raise CompileError(f"program instantiation failed: {error}") from None
        _check_result(compiled.result, tuple(results))
        return cls(source, compiled)

    def evaluate(self, bindings: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Evaluate with these JSON values. Raises EvaluationError and CostlyError."""
        return self._program.evaluate(bindings, budget)


def _check_result(result: Type, wanted: tuple[Type, ...]) -> None:
    if not wanted or result in wanted:
        return
    names = [runtime_name(t) for t in wanted]
    choice = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
    raise CompileError(f"must evaluate to {choice} but got {runtime_name(result)}")


def runtime_name(t: Type) -> str:
    """The run-time name of a type."""
    names = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp", "null": "null_type"}
    name = names.get(t.name, t.name)
    if not t.parameters:
        return name
    return f"{name}({', '.join(map(runtime_name, t.parameters))})"
