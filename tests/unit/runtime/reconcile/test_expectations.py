"""Watch events during a pass: expected and foreign ones."""

from contextlib import contextmanager

from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.reconcile.expectations import Expectations

N1, N2 = (("Node.core", "", name) for name in ("n1", "n2"))
REF = ObjectRef(api_version="v1", kind="Node", name="n1")


@contextmanager
def following(expectations, key):
    """Observe events for the duration of a pass."""
    expectations.begin(key)
    try:
        yield
    finally:
        expectations.end(key)


def test_a_change_while_the_key_is_planned_is_unexpected():
    expectations = Expectations()
    with following(expectations, "a"):
        assert not expectations.is_outdated("a")
        expectations.observe("a", N1)
        assert expectations.is_outdated("a")
    assert not expectations.is_outdated("a")


def test_the_writes_of_the_plan_are_expected():
    expectations = Expectations()
    with following(expectations, "a"):
        expectations.expect_writes("a", [REF])
        expectations.observe("a", N1)
        assert not expectations.is_outdated("a")
        expectations.observe("a", N2)
        assert expectations.is_outdated("a")


def test_an_idle_key_has_no_changes_and_changes_of_other_keys_do_not_count():
    expectations = Expectations()
    expectations.observe("a", N1)
    with following(expectations, "a"):
        expectations.observe("b", N1)
        assert not expectations.is_outdated("a")
        assert not expectations.is_outdated("b")


def due():
    told = []
    return told, Expectations(told.append)


def test_an_expected_write_enqueues_nothing():
    told, expectations = due()
    with following(expectations, "a"):
        expectations.expect_writes("a", [REF], expected=[REF])
        assert expectations.observe("a", N1, "7") is False
        expectations.confirm("a", {N1: {"7"}})
    assert told == []


def test_a_change_after_the_expected_write_enqueues_the_key_when_the_pass_ends():
    told, expectations = due()
    with following(expectations, "a"):
        expectations.expect_writes("a", [REF], expected=[REF])
        expectations.observe("a", N1, "7")
        expectations.confirm("a", {N1: {"7"}})
        expectations.observe("a", N1, "8")
        assert told == []
    assert told == ["a"]


def test_an_expected_write_without_an_answer_enqueues_the_key():
    told, expectations = due()
    with following(expectations, "a"):
        expectations.expect_writes("a", [REF], expected=[REF])
        expectations.observe("a", N1, "7")
    assert told == ["a"]


def test_a_pass_that_fails_loses_no_change():
    told, expectations = due()
    expectations.begin("a")
    expectations.expect_writes("a", [REF], expected=[REF])
    expectations.observe("a", N1, "7")
    expectations.end("a")
    assert told == ["a"]


def test_a_write_without_an_expected_outcome_counts_as_a_change():
    told, expectations = due()
    with following(expectations, "a"):
        expectations.expect_writes("a", [REF])
        assert expectations.observe("a", N1, "7") is True
    assert told == []
