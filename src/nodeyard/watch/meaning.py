"""Whether two functions that were made at different moments mean the same.

Who names watches anew with every look makes its small functions anew too. Two of them that were made in the same place
of the code with equal values around them do the same, and what was built with the one need not be built again with the
other. In doubt they differ, which costs time and nothing else.
"""

from __future__ import annotations

from functools import partial
from types import CellType, FunctionType
from typing import Any, Final

# A function may enclose itself; nobody nests meaningfully as deep as this.
DEEPEST: Final = 4


def is_same(one: Any, other: Any, deep: int = 0) -> bool:
    """Equal; or functions of one piece of code over values that are the same."""
    if one is other:
        return True
    if deep < DEEPEST and isinstance(one, partial) and isinstance(other, partial):
        return is_same(_parts(one), _parts(other), deep + 1)
    if deep < DEEPEST and isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return one.__code__ is other.__code__ and is_same(_surroundings(one), _surroundings(other), deep + 1)
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(is_same(mine, theirs, deep) for mine, theirs in zip(one, other, strict=True))
    return bool(one == other)


def _parts(call: partial[Any]) -> tuple[Any, ...]:
    return (call.func, *call.args, *sorted(call.keywords.items()))


def _surroundings(function: FunctionType) -> tuple[Any, ...]:
    defaults = (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items()))
    return (*defaults, *map(_content, function.__closure__ or ()))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # Not filled yet, and so equal to no other.
        return object()
