"""Parser: grammar, expansion of macros, and comparison with the reference engine."""

from __future__ import annotations

import pytest
from cel_expr_python import cel
from cel_expr_python.ext import ext_optional
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.apiserver.cel import CompileError
from nodeyard.apiserver.cel.parser import parse
from nodeyard.apiserver.cel.syntax import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select, Struct, depth
from nodeyard.apiserver.cel.values import UInt

ENGINE = cel.NewEnv(extensions=[ext_optional.ExtOptional()])


def shown(node: Node) -> str:
    """Render the tree with all parentheses."""
    match node:
        case Literal():
            return repr(node.value)
        case Ident():
            return node.name
        case Select():
            return f"{'has ' if node.is_test else ''}{shown(node.operand)}.{node.field}"
        case Call():
            parts = ", ".join(map(shown, node.arguments))
            return f"{shown(node.target)}.{node.function}({parts})" if node.target else f"{node.function}({parts})"
        case ListNode():
            return f"[{', '.join(map(shown, node.elements))}]"
        case MapNode():
            return "{" + ", ".join(f"{shown(e.key)}: {shown(e.value)}" for e in node.entries) + "}"
        case Struct():
            return f"{node.name}{{}}"
        case Fold():
            return f"fold({node.variable}{node.second_variable and ',' + node.second_variable})"


@pytest.mark.parametrize(
    ("source", "tree"),
    [
        ("1 + 2 * 3 - 4", "_-_(_+_(1, _*_(2, 3)), 4)"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("a || b && c", "_||_(a, _&&_(b, c))"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("!!!a", "!_(a)"),
        ("--a", "a"),
        ("-1", "-1"),
        ("- 1.5", "-1.5"),
        ("-a.b", "-_(a.b)"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("a.b.c(1)[2]", "_[_](a.b.c(1), 2)"),
        ("a.?b[?c]", "_[?_](_?._(a, 'b'), c)"),
        ("[?a, 1,]", "[a, 1]"),
        ("{'a': 1, ?'b': c}", "{'a': 1, 'b': c}"),
        ("a.b.C{d: 1}", "a.b.C{}"),
        (".a.b", ".a.b"),
        ("has(a.b)", "has a.b"),
        ("a.package", "a.package"),
        ("a in b", "@in(a, b)"),
        ("a.map(x, x)", "fold(x)"),
        ("a.all(k, v, true)", "fold(k,v)"),
        ("a // the rest is a remark", "a"),
        ("null", "None"),
    ],
)
def test_operators_bind_as_in_the_grammar(source: str, tree: str) -> None:
    assert shown(parse(source)) == tree


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("0x1F", 31),
        ("7u", UInt(7)),
        ("1e3", 1000.0),
        (".5", 0.5),
        (r"'a\n\x41\u00e9\U0001F600\101'", "a\nA\u00e9\U0001f600A"),
        (r"r'\n'", "\\n"),
        ('"""a\n"b"""', 'a\n"b'),
        ("'''it's'''", "it's"),
        (r"b'\xff\101é'", b"\xffA\xc3\xa9"),
        (r"br'\x'", b"\\x"),
        (r"'\?\"\''", "?\"'"),
    ],
)
def test_literals_have_their_value(source: str, value: object) -> None:
    node = parse(source)

    assert isinstance(node, Literal)
    assert (node.value.__class__, node.value) == (value.__class__, value)


@pytest.mark.parametrize(
    "source",
    ["a b", "'a", "9223372036854775808", r"'\q'", "1.2.3", "a.", "a[", "{1}", "if", "a ? b", "@", "a.`b-c`", "f(", ""],
)
def test_an_invalid_expression_is_refused_with_its_position(source: str) -> None:
    with pytest.raises(CompileError, match=r"^ERROR: <input>:\d+:\d+: \S"):
        parse(source)


def test_a_long_chain_makes_a_shallow_tree() -> None:
    assert depth(parse(" || ".join(["a"] * 1000))) <= 12


def test_a_long_sum_is_no_deeper_than_allowed() -> None:
    assert depth(parse(" + ".join(["1"] * 100))) == 100


@pytest.mark.parametrize("source", [" + ".join(["1"] * 200), "(" * 60 + "1" + ")" * 60, "[" * 500], ids=lambda s: s[:4])
def test_too_deep_expressions_are_refused(source: str) -> None:
    with pytest.raises(CompileError, match="recursion limit exceeded"):
        parse(source)


FRAGMENTS = st.sampled_from(
    [
        "a",
        "1",
        "'s'",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        "?",
        ":",
        ",",
        "-",
        "!",
        "+",
        "==",
        "&&",
        "in",
        "true",
        " ",
        "x.y",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAGMENTS, min_size=1, max_size=8).map("".join))
def test_the_engine_has_the_same_grammar(source: str) -> None:
    try:
        ENGINE.compile(source, disable_check=True)
        is_expression = True
    except RuntimeError:
        is_expression = False

    try:
        parse(source)
    except CompileError:
        assert not is_expression, source
    else:
        assert is_expression, source
