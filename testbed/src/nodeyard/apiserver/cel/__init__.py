"""Expressions in CEL, the Common Expression Language, as the Kubernetes API server knows it.

Two things are asked of it. Rules of custom resources: `compile_rules(schema)` gives `CompiledRules`, whose
`evaluate(obj, old)` says what they object to. Expressions of admission policies and match conditions:
`Expression.compile(source, variables, results)` gives an `Expression` to `evaluate(bindings)`, and a `Composition` the
`variables` of a policy.

Inside: `parsing` reads the source with the CEL engine's grammar into the tree of `syntax`; `checking` gives every node
a type, from `declarations` of functions in `library` and, for `self`, from a schema through `schemas`; `program` makes
closures of it that run on the `values` JSON already is.
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
