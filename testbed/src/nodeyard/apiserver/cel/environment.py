"""Compilation: parse, check types and constants, build the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeyard.apiserver.cel.checker import Scope, check
from nodeyard.apiserver.cel.declarations import Functions
from nodeyard.apiserver.cel.errors import compile_error
from nodeyard.apiserver.cel.library import FUNCTIONS, TYPE_NAMES
from nodeyard.apiserver.cel.literals import check_constants, check_literals
from nodeyard.apiserver.cel.parser import parse
from nodeyard.apiserver.cel.program import Program
from nodeyard.apiserver.cel.types import Type


@dataclass(frozen=True)
class Compiled:
    program: Program
    result: Type
    variables: frozenset[str]
    """The variables that the expression uses."""


def compile_expression(source: str, variables: Mapping[str, Type], functions: Functions = FUNCTIONS) -> Compiled:
    """Compile an expression. Raises CompileError, or InstantiationError for an invalid constant."""
    root = parse(source)
    checked, issues = check(root, Scope(variables, functions, TYPE_NAMES))
    if not issues:
        issues = check_literals(checked)
    if issues:
        raise compile_error(source, issues)
    check_constants(checked)
    return Compiled(Program(checked), checked.result, frozenset(checked.variables))
