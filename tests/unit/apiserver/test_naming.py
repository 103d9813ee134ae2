"""Names of definitions: which are accepted beside those of others."""

from __future__ import annotations

from nodeyard.apiserver.crds.naming import judge

FOO = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
BAR = {"plural": "bars", "singular": "bar", "kind": "Bar", "listKind": "BarList"}
NONE = {"plural": "", "kind": ""}


def test_what_nobody_else_has_is_accepted():
    verdict = judge({**FOO, "shortNames": ["fo"], "categories": ["all"]}, NONE, [BAR])

    assert verdict.accepted == {**FOO, "shortNames": ["fo"], "categories": ["all"]}
    assert not verdict.has_conflict


def test_of_several_conflicts_the_last_is_told_and_the_other_names_are_accepted():
    verdict = judge({**BAR, "singular": "foo", "kind": "Foo"}, NONE, [FOO])

    assert (verdict.reason, verdict.message) == ("KindConflict", '"Foo" is already in use')
    assert verdict.accepted == {"plural": "bars", "kind": "", "listKind": "BarList"}


def test_every_short_name_that_is_taken_is_told():
    verdict = judge({**BAR, "shortNames": ["a", "b", "c"]}, BAR, [{**FOO, "shortNames": ["a", "c"]}])

    assert (verdict.reason, verdict.message) == (
        "ShortNamesConflict",
        '["a" is already in use, "c" is already in use]',
    )
    assert verdict.accepted == BAR


def test_names_that_are_ones_own_already_are_no_conflict():
    own = {**BAR, "shortNames": ["a", "b"]}

    assert not judge({**BAR, "shortNames": ["a"]}, own, [{"shortNames": ["a"]}]).has_conflict


def test_kinds_and_resources_do_not_clash():
    assert not judge({**BAR, "singular": "same"}, NONE, [{**FOO, "kind": "same"}]).has_conflict
