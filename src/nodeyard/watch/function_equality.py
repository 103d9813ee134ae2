"""Equality of functions: same code and equal closures.

A capability that declares watches at run time creates their key and index functions anew each time. An index stays
valid if its function is equivalent to the previous one. In doubt the functions count as different; the index is then
rebuilt, which only costs time.
"""

from __future__ import annotations

from functools import partial
from types import CellType, FunctionType
from typing import Any, Final

# Bounds the recursion: a closure may contain its own function.
DEEPEST: Final = 4


def are_equivalent(one: Any, other: Any, deep: int = 0) -> bool:
    """Return True for equal values, and for functions with the same code and equivalent closures."""
    if one is other:
        return True
    if deep < DEEPEST and isinstance(one, partial) and isinstance(other, partial):
        return are_equivalent(_parts(one), _parts(other), deep + 1)
    if deep < DEEPEST and isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return one.__code__ is other.__code__ and are_equivalent(_closure(one), _closure(other), deep + 1)
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(are_equivalent(mine, theirs, deep) for mine, theirs in zip(one, other, strict=True))
    return bool(one == other)


def _parts(call: partial[Any]) -> tuple[Any, ...]:
    return (call.func, *call.args, *sorted(call.keywords.items()))


def _closure(function: FunctionType) -> tuple[Any, ...]:
    defaults = (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items()))
    return (*defaults, *map(_cell_value, function.__closure__ or ()))


def _cell_value(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # An empty cell equals no other.
        return object()
