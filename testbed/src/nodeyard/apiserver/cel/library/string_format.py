"""The format function of strings: `'%s has %d nodes'.format([name, count])`.

One scan serves to format values, and to check a constant template against the types of its arguments at compile time.
Numbers are in American English: `%f` groups thousands, `%e` writes the power of ten out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.library.conversions import string_to_double, to_string
from nodeyard.apiserver.cel.values import Duration, Timestamp, UInt, find, is_map, type_name
from nodeyard.kube.goformat import quote

_DEFAULT_PRECISION = 6
_SUPERSCRIPT = str.maketrans("0123456789-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b")
_NOT_NUMBERS = {"NaN", "Infinity", "-Infinity"}
_COMPLAINTS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps, was given ",
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One `%` of a template: the letter, the precision if given, and the index of its argument."""

    verb: str
    precision: int | None
    argument: int


def scan(template: str, argument_count: int) -> Iterator[str | Clause]:
    """Yield the template's text and clauses. An error is raised when it is reached."""
    position = argument = 0
    while position < len(template):
        if template[position] != "%":
            end = template.find("%", position)
            end = len(template) if end < 0 else end
            yield template[position:end]
            position = end
        elif template[position + 1 : position + 2] == "%":
            yield "%"
            position += 2
        else:
            if argument >= argument_count:
                raise EvaluationError(f"index {argument} out of range")
            clause, position = _clause(template, position + 1, argument)
            yield clause
            argument += 1


def _clause(template: str, position: int, argument: int) -> tuple[Clause, int]:
    if position >= len(template):
        raise EvaluationError("unexpected end of string")
    precision: int | None = None
    if template[position] == ".":
        start = position = position + 1
        while position < len(template) and template[position] in "0123456789":
            position += 1
        if position == len(template):
            raise _unparsed("error while parsing precision: could not find end of precision specifier")
        if start == position:
            raise _unparsed(
                'error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": '
                "invalid syntax"
            )
        precision = int(template[start:position])
    verb = template[position]
    if verb not in _COMPLAINTS:
        raise _unparsed(f'unrecognized formatting clause "{verb}"')
    return Clause(verb, precision, argument), position + 1


def _unparsed(why: str) -> EvaluationError:
    return EvaluationError(f"could not parse formatting clause: {why}")


def complaint(verb: str, given: str) -> EvaluationError:
    """The error of an argument of the wrong type."""
    return EvaluationError(f"error during formatting: {_COMPLAINTS[verb]}{given}")


def format_string(template: str, arguments: list[Any]) -> str:
    parts: list[str] = []
    for part in scan(template, len(arguments)):
        parts.append(part if isinstance(part, str) else _format(part, arguments[part.argument]))
    return "".join(parts)


def _format(clause: Clause, value: Any) -> str:
    formatted = _FORMATTERS[clause.verb](value, clause)
    if formatted is None:
        raise complaint(clause.verb, type_name(value))
    return formatted


def _text(value: Any, clause: Clause | None = None) -> str | None:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    if is_map(value):
        entries = sorted((_nested_key(key), _nested(find(value, key))) for key in value)
        return "{" + ", ".join(f"{key}:{content}" for key, content in entries) + "}"
    try:
        return to_string(value)
    except EvaluationError:
        return None


def _nested_key(key: Any) -> str:
    if key.__class__ not in (str, bool, int, UInt):
        raise EvaluationError(f"error during formatting: no formatting function for map key of type {type_name(key)}")
    return _nested(key)


def _nested(value: Any) -> str:
    """Format a value inside a list or map, with strings quoted."""
    if value.__class__ is str:
        return quote(value)
    if value.__class__ is bytes:
        return "b" + quote(value.decode(errors="replace"))
    if value.__class__ is float:
        return f"{value:.6f}" if math.isfinite(value) else quote(to_string(value))
    text = _text(value)
    if text is None:
        raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")
    if value.__class__ is Duration:
        return f'duration("{text}")'
    return f'timestamp("{text}")' if value.__class__ is Timestamp else text


def _decimal(value: Any, clause: Clause) -> str | None:
    return str(int(value)) if value.__class__ in (int, UInt) else None


def _double(value: Any) -> float | None:
    if value.__class__ is str and value in _NOT_NUMBERS:
        return string_to_double(value)
    return float(value) if value.__class__ is float else None


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "\u221e" if number > 0 else "-\u221e"


def _fixed(value: Any, clause: Clause) -> str | None:
    number = _double(value)
    if number is None:
        return None
    precision = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    return f"{number:,.{precision}f}" if math.isfinite(number) else _not_finite(number)


def _scientific(value: Any, clause: Clause) -> str | None:
    number = _double(value)
    if number is None:
        return None
    if not math.isfinite(number):
        return _not_finite(number)
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    power = exponent.removeprefix("+").translate(_SUPERSCRIPT)
    # The API server uses the precision as a width here.
    return f"{mantissa}\u00d710{power}".rjust(clause.precision or 0)


def _binary(value: Any, clause: Clause) -> str | None:
    if value.__class__ is bool:
        return "1" if value else "0"
    return f"{int(value):b}" if value.__class__ in (int, UInt) else None


def _octal(value: Any, clause: Clause) -> str | None:
    return f"{int(value):o}" if value.__class__ in (int, UInt) else None


def _hexadecimal(value: Any, clause: Clause) -> str | None:
    if value.__class__ in (int, UInt):
        text = f"{int(value):x}"
    elif value.__class__ in (str, bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
    else:
        return None
    return text.upper() if clause.verb == "X" else text


_FORMATTERS: dict[str, Callable[[Any, Clause], str | None]] = {
    "s": _text,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "X": _hexadecimal,
    "o": _octal,
}
