"""The parser: source text to syntax tree.

It descends through the grammar, with one method per rule. Errors have the API server's position and text, but only the
first one is reported.
"""

from __future__ import annotations

import re
from functools import lru_cache

from nodeyard.apiserver.cel.errors import CompileError, Issue, compile_error
from nodeyard.apiserver.cel.identifiers import RESERVED
from nodeyard.apiserver.cel.lexer import LexicalError, Token, literal_value, tokenize
from nodeyard.apiserver.cel.macros import MacroError, expand
from nodeyard.apiserver.cel.syntax import Call, Entry, Ident, ListNode, Literal, MapNode, Node, Select, Struct, depth
from nodeyard.apiserver.cel.values import INT_MAX

_CONSTANTS = {"true": True, "false": False, "null": None}
_LITERALS = {"int", "uint", "float", "string", "bytes"}
# Functions and precedence of operators.
_BINARY = {
    **{sign: (f"_{sign}_", 0) for sign in ("<", "<=", ">", ">=", "==", "!=")},
    "in": ("@in", 0),
    **{sign: (f"_{sign}_", 1) for sign in ("+", "-")},
    **{sign: (f"_{sign}_", 2) for sign in ("*", "/", "%")},
}
_PREFIXES = {"!": "!_", "-": "-_"}

# The API server's limit is 250. Here each level takes several frames of Python's stack of a thousand.
_DEEPEST = 120
_MOST_BRACKETS = 50

_EXPECTED = {"end": "<EOF>", "name": "IDENTIFIER"}
# The first tokens of an expression, in the order of the grammar.
_STARTS = (
    *("'['", "'{'", "'('", "')'", "'.'", "'-'", "'!'", "'?'", "'true'", "'false'", "'null'"),
    *("NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"),
)
_SOMETIMES = ("')'", "'?'")


@lru_cache(maxsize=1024)
def parse(source: str) -> Node:
    """Parse an expression; raises CompileError."""
    if "`" in source:
        _refuse_quoted_names(source)
    try:
        root = _Parser(source).parse()
        if depth(root) > _DEEPEST:
            raise _NestingError
        return root
    except MacroError as error:
        raise compile_error(source, [Issue(error.offset, str(error))]) from None
    except (_SyntaxError, LexicalError) as error:
        raise compile_error(source, [Issue(error.offset, f"Syntax error: {error}")]) from None
    except _NestingError:
        raise CompileError(f"ERROR: <input>:-1:0: expression recursion limit exceeded: {_DEEPEST}") from None


def _refuse_quoted_names(source: str) -> None:
    """Refuse a.`b-c`, which is in the grammar but not allowed by the API server."""
    quoted = re.search(r"\.\s*(`[A-Za-z0-9_./ -]+`)", source)
    if quoted:
        raise compile_error(source, [Issue(quoted.start(1), "unsupported syntax: '`'")])


class _SyntaxError(Exception):
    """Return the error of an unexpected token."""

    def __init__(self, token: Token, expected: str = "", *, after: str = "") -> None:
        """Return the error with the expected tokens, or with the input that has no alternative."""
        found = "<EOF>" if token.kind == "end" else token.text
        says = f"mismatched input '{found}' expecting {expected}" if expected else f"mismatched input '{found}'"
        super().__init__(f"no viable alternative at input '{after}{token.text}'" if after else says)
        self.offset = token.offset


class _NestingError(Exception):
    """Raise the error of an expression that is nested too deeply."""


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens = list(tokenize(source))
        self._position = 0
        self._nesting = 0
        self._may_follow = ""
        """The tokens that are allowed here beside an expression."""

    def parse(self) -> Node:
        node = self._expression()
        self._expect("end")
        return node

    # tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._tokens[self._position]
        self._position += 1
        self._may_follow = ""
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._next.kind == kind else None

    def _expect(self, kind: str) -> Token:
        if self._next.kind != kind:
            raise _SyntaxError(self._next, _EXPECTED.get(kind, f"'{kind}'"))
        return self._take()

    def _follows(self, kind: str) -> bool:
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)].kind == kind

    # operators by precedence

    def _expression(self) -> Node:
        self._nesting += 1
        if self._nesting > _MOST_BRACKETS:
            raise _NestingError
        node = self._conditional()
        self._nesting -= 1
        return node

    def _conditional(self) -> Node:
        condition = self._logical("||", "_||_")
        question = self._accept("?")
        if question is None:
            return condition
        then = self._logical("||", "_||_")
        self._expect(":")
        return Call(question.offset, "_?_:_", (condition, then, self._expression()))

    def _logical(self, sign: str, function: str) -> Node:
        """Parse a chain of one operator to a balanced tree, so that a long chain is not deep."""
        terms, offsets = [self._conjunct(sign)], []
        while operator := self._accept(sign):
            offsets.append(operator.offset)
            terms.append(self._conjunct(sign))
        return _balanced(function, terms, offsets)

    def _conjunct(self, sign: str) -> Node:
        return self._logical("&&", "_&&_") if sign == "||" else self._binary(0)

    def _binary(self, loosest: int) -> Node:
        """Parse relations, sums and products of at least this precedence."""
        node = self._unary()
        while (operator := _BINARY.get(self._next.kind)) and operator[1] >= loosest:
            function, tightness = operator
            node = Call(self._take().offset, function, (node, self._binary(tightness + 1)))
        return node

    def _unary(self) -> Node:
        sign = self._next
        if sign.kind not in _PREFIXES or self._is_negative_literal():
            return self._member()
        count = 0
        while self._next.kind == sign.kind and not self._is_negative_literal():
            self._take()
            count += 1
        operand = self._member()
        return operand if count % 2 == 0 else Call(sign.offset, _PREFIXES[sign.kind], (operand,))

    def _is_negative_literal(self) -> bool:
        return self._next.kind == "-" and (self._follows("int") or self._follows("float"))

    # members

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if dot := self._accept("."):
                node = self._field(node, dot)
            elif bracket := self._accept("["):
                function = "_[?_]" if self._accept("?") else "_[_]"
                self._may_follow = "'?'" if function == "_[_]" else ""
                node = Call(bracket.offset, function, (node, self._expression()))
                self._expect("]")
            else:
                return node

    def _field(self, operand: Node, dot: Token) -> Node:
        if self._accept("?"):
            name = self._expect("name")
            return Call(dot.offset, "_?._", (operand, Literal(name.offset, name.text)))
        if self._next.kind != "name":
            raise _SyntaxError(self._next, after=".")
        name = self._take()
        if opening := self._accept("("):
            return expand(Call(opening.offset, name.text, self._arguments(), operand))
        return Select(dot.offset, operand, name.text)

    def _arguments(self) -> tuple[Node, ...]:
        if self._accept(")"):
            return ()
        self._may_follow = "')'"
        arguments = [self._expression()]
        while self._accept(","):
            arguments.append(self._expression())
        self._expect(")")
        return tuple(arguments)

    # primaries

    def _primary(self) -> Node:
        may_follow = self._may_follow
        token = self._take()
        if token.kind in _LITERALS:
            return self._literal(token)
        if token.kind in _CONSTANTS:
            return Literal(token.offset, _CONSTANTS[token.kind])
        if token.kind == "-":
            return self._literal(self._take(), minus=token)
        if token.kind == "(":
            node = self._expression()
            self._expect(")")
            return node
        if token.kind == "[":
            return self._list(token)
        if token.kind == "{":
            return self._map(token)
        if token.kind == ".":
            return self._named(self._expect("name"), ".")
        if token.kind == "name":
            return self._named(token, "")
        starts = [start for start in _STARTS if start not in _SOMETIMES or start == may_follow]
        raise _SyntaxError(token, f"{{{', '.join(starts)}}}")

    def _literal(self, token: Token, minus: Token | None = None) -> Node:
        try:
            value = literal_value(token)
        except LexicalError:
            raise MacroError(token.offset, f"invalid {token.kind} literal") from None
        if minus is not None:
            return Literal(minus.offset, -value)
        if token.kind == "int" and value > INT_MAX:
            raise MacroError(token.offset, "invalid int literal")
        return Literal(token.offset, value)

    def _named(self, name: Token, dot: str) -> Node:
        if name.text in RESERVED:
            raise MacroError(name.offset, f"reserved identifier: {name.text}")
        if opening := self._accept("("):
            return expand(Call(opening.offset, dot + name.text, self._arguments()))
        struct = self._struct(dot + name.text)
        return struct if struct is not None else Ident(name.offset, dot + name.text)

    def _struct(self, name: str) -> Node | None:
        """Parse `a.b.Name{field: value}`; anything else consumes no token."""
        start = self._position
        while self._next.kind == "." and self._follows("name"):
            self._take()
            name += f".{self._take().text}"
        opening = self._accept("{")
        if opening is None:
            self._position = start
            return None
        while not self._accept("}"):
            self._accept("?")
            self._expect("name")
            self._expect(":")
            self._expression()
            if not self._accept(","):
                self._expect("}")
                break
        return Struct(opening.offset, name)

    def _list(self, opening: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._accept("]"):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._accept(","):
                self._expect("]")
                break
        return ListNode(opening.offset, tuple(elements), frozenset(optional))

    def _map(self, opening: Token) -> Node:
        entries: list[Entry] = []
        while not self._accept("}"):
            is_optional = self._accept("?") is not None
            key = self._expression()
            colon = self._expect(":")
            entries.append(Entry(colon.offset, key, self._expression(), is_optional))
            if not self._accept(","):
                self._expect("}")
                break
        return MapNode(opening.offset, tuple(entries))


def _balanced(function: str, terms: list[Node], offsets: list[int]) -> Node:
    if len(terms) == 1:
        return terms[0]
    middle = len(offsets) // 2
    left = _balanced(function, terms[: middle + 1], offsets[:middle])
    right = _balanced(function, terms[middle + 1 :], offsets[middle + 1 :])
    return Call(offsets[middle], function, (left, right))
