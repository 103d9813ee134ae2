"""Unification of types and type parameters.

A `Substitution` maps type parameters to types. A successful question may extend it; a failed one leaves it unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.apiserver.cel.types import DYN, Kind, Type, is_dyn, is_dyn_or_error

# Kinds and scalars that null is assignable to.
_NULLABLE_KINDS = {Kind.OPAQUE, Kind.OBJECT, Kind.NULL}
_NULLABLE_SCALARS = {"duration", "timestamp"}


class Substitution:
    def __init__(self) -> None:
        self._types: dict[str, Type] = {}

    def assignable(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """True if each type is assignable to the wanted one; binds parameters only if all are."""
        before = dict(self._types)
        if self._all_fit(given, wanted):
            return True
        self._types = before
        return False

    def apply(self, t: Type, *, unbound_is_dyn: bool = False) -> Type:
        """The type with every known parameter replaced."""
        if t.kind is Kind.PARAMETER:
            found = self._types.get(t.name)
            if found is not None:
                return self.apply(found, unbound_is_dyn=unbound_is_dyn)
            return DYN if unbound_is_dyn else t
        if not t.parameters:
            return t
        replaced = tuple(self.apply(p, unbound_is_dyn=unbound_is_dyn) for p in t.parameters)
        return Type(t.kind, t.name, replaced, t.fields)

    def _all_fit(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        return len(given) == len(wanted) and all(map(self._fits, given, wanted))

    def _fits(self, given: Type, wanted: Type) -> bool:
        if wanted.kind is Kind.PARAMETER:
            bound, known = self._bind(wanted, given)
            if bound or known:
                return bound
        if given.kind is Kind.PARAMETER:
            return self._bind(given, wanted)[0]
        if is_dyn_or_error(given) or is_dyn_or_error(wanted):
            return True
        if given.kind is Kind.NULL:
            return _is_nullable(wanted)
        if wanted.kind is Kind.NULL:
            return _is_nullable(given)
        if given.kind is Kind.TYPE:
            return wanted.kind is Kind.TYPE
        if given.kind is not wanted.kind or given.name != wanted.name:
            return False
        return self._all_fit(given.parameters, wanted.parameters)

    def _bind(self, parameter: Type, t: Type) -> tuple[bool, bool]:
        """Bind the parameter to the type. Return whether that works, and whether it was bound before."""
        if parameter == t:
            return True, True
        known = self._types.get(parameter.name)
        if known is None:
            if self._occurs(parameter, t):
                return False, False
            self._types[parameter.name] = t
            return True, False
        if known == t:
            return True, True
        if not self._fits(t, known):
            return False, True
        general = more_general(t, known)
        if not self._occurs(parameter, general):
            self._types[parameter.name] = general
        return True, True

    def _occurs(self, parameter: Type, within: Type) -> bool:
        if parameter == within:
            return True
        if within.kind is Kind.PARAMETER:
            found = self._types.get(within.name)
            return found is not None and self._occurs(parameter, found)
        return any(self._occurs(parameter, p) for p in within.parameters)


def more_general(left: Type, right: Type) -> Type:
    """Return the more general of two types that are assignable to each other."""
    return left if _is_as_general(left, right) else right


def _is_as_general(left: Type, right: Type) -> bool:
    if is_dyn(left) or left.kind is Kind.PARAMETER:
        return True
    if is_dyn(right) or right.kind is Kind.PARAMETER or left.kind is not right.kind:
        return False
    if left.kind is Kind.TYPE:
        return True
    if left.name != right.name or len(left.parameters) != len(right.parameters):
        return False
    return all(map(_is_as_general, left.parameters, right.parameters))


def _is_nullable(t: Type) -> bool:
    return t.kind in _NULLABLE_KINDS or t.name in _NULLABLE_SCALARS
