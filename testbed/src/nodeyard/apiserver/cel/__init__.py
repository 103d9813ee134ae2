"""The Common Expression Language (CEL) with Kubernetes' types, functions and cost budget.

Rules of custom resources: `compile_rules(schema)` returns `CompiledRules`, whose `evaluate(obj, old)` returns the
errors. Expressions of admission policies and match conditions: `Expression.compile(source, variables, results)` returns
an `Expression` to `evaluate(bindings)`, and a `Composition` holds the `variables` of a policy.

`parser` turns the source into the tree of `syntax`. `checker` gives every node a type, from the `declarations` of
functions in `library` and, for `self`, from a schema through `schemas`. `program` turns the tree into closures that run
on JSON values and on those of `values`.
"""

from __future__ import annotations

from nodeyard.apiserver.cel.composition import Composition
from nodeyard.apiserver.cel.errors import CompileError, EvaluationError
from nodeyard.apiserver.cel.expressions import Expression
from nodeyard.apiserver.cel.rules import CompiledRules, compile_rules, rule_faults

__all__ = [
    "CompileError",
    "CompiledRules",
    "Composition",
    "EvaluationError",
    "Expression",
    "compile_rules",
    "rule_faults",
]
