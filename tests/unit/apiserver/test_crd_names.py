"""Names of CRDs, and conflicts with those of other CRDs."""

from __future__ import annotations

from nodeyard.apiserver.crds.names import check_names

FOO = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
BAR = {"plural": "bars", "singular": "bar", "kind": "Bar", "listKind": "BarList"}
NONE = {"plural": "", "kind": ""}


def test_unused_names_are_accepted():
    check = check_names({**FOO, "shortNames": ["fo"], "categories": ["all"]}, NONE, [BAR])

    assert check.accepted == {**FOO, "shortNames": ["fo"], "categories": ["all"]}
    assert not check.has_conflict


def test_the_last_of_several_conflicts_is_reported_and_the_other_names_are_accepted():
    check = check_names({**BAR, "singular": "foo", "kind": "Foo"}, NONE, [FOO])

    assert (check.reason, check.message) == ("KindConflict", '"Foo" is already in use')
    assert check.accepted == {"plural": "bars", "kind": "", "listKind": "BarList"}


def test_every_short_name_that_is_taken_is_reported():
    check = check_names({**BAR, "shortNames": ["a", "b", "c"]}, BAR, [{**FOO, "shortNames": ["a", "c"]}])

    assert (check.reason, check.message) == (
        "ShortNamesConflict",
        '["a" is already in use, "c" is already in use]',
    )
    assert check.accepted == BAR


def test_names_that_are_ones_own_already_are_no_conflict():
    own = {**BAR, "shortNames": ["a", "b"]}

    assert not check_names({**BAR, "shortNames": ["a"]}, own, [{"shortNames": ["a"]}]).has_conflict


def test_kinds_and_resources_do_not_clash():
    assert not check_names({**BAR, "singular": "same"}, NONE, [{**FOO, "kind": "same"}]).has_conflict
