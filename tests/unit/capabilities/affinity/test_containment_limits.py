"""Limits on the work that one pod can cause in the webhook."""

from nodeyard.capabilities.affinity.planning.containment import (
    MAX_SIZE,
    Inside,
    Outside,
    TooComplex,
    compile_class,
    contains,
)

from ....builders.node_terms import expression, selector


def pairs(number):
    """Build a class whose terms contain `either(number)` only in combination: four for every pair of a left and a right
    key.

    The first term has all left keys, so that they are combined first and the right ones, which decide, last.
    """
    left = [f"left{place}" for place in range(number)]
    terms = [[expression(key, "In", "c") for key in left]]
    for place, key in enumerate(left):
        for one in "ab":
            terms.extend([expression(key, "In", one), expression(f"right{place}", "In", two)] for two in "ab")
    return selector(*terms)


def either(number, *more):
    keys = [f"{side}{place}" for side in ("left", "right") for place in range(number)]
    return selector([*(expression(key, "In", "a", "b") for key in keys), *more])


def test_a_few_keys_are_combined():
    assert contains(compile_class({}, pairs(8)), {}, either(8)) == Inside()


def test_too_many_are_not():
    assert contains(compile_class({}, pairs(16)), {}, either(16)) == TooComplex()


def test_a_simple_match_is_found_among_many_keys():
    plain = expression("left3", "In", "a"), expression("right3", "In", "b")
    assert contains(compile_class({}, pairs(16)), {}, either(16, *plain)) == Inside()


def test_a_simple_violation_is_found_among_many_keys():
    placement = compile_class({"zone": "dc1"}, pairs(16))
    containment = contains(placement, {}, either(16))
    assert isinstance(containment, Outside)
    assert containment.missing == ("zone", "dc1")


def test_keys_that_are_settled_each_on_its_own_need_no_combining():
    halves = [[expression(f"key{place}", "NotIn", value)] for place in range(40) for value in "ab"]
    assert contains(compile_class({}, selector(*halves)), {}, None) == Inside()


def test_the_effort_is_that_for_all_terms_of_a_pod_together():
    placement = compile_class({}, pairs(10))
    assert contains(placement, {}, either(10)) == Inside()
    assert contains(placement, {}, selector(*either(10).node_selector_terms * 20)) == TooComplex()


def test_a_pod_may_not_name_values_without_end():
    placement = compile_class({"zone": "dc1"}, None)
    zone, hosts = expression("zone", "In", "dc1"), [f"n{place}" for place in range(MAX_SIZE)]
    assert contains(placement, {}, selector([zone, expression("host", "In", *hosts[:-13])])) == Inside()
    assert contains(placement, {}, selector([zone, expression("host", "In", *hosts[:-12])])) == TooComplex()


def test_many_terms_exceed_the_limit_too():
    placement = compile_class({"zone": "dc1"}, None)
    term = [expression("zone", "In", "dc1")]
    assert contains(placement, {}, selector(*[term] * (MAX_SIZE // 12))) == Inside()
    assert contains(placement, {}, selector(*[term] * (MAX_SIZE // 12 + 1))) == TooComplex()


def test_a_deciding_node_selector_skips_the_terms():
    hosts = [f"n{place}" for place in range(MAX_SIZE)]
    required = selector([expression("host", "In", *hosts)])
    assert contains(compile_class({"zone": "dc1"}, None), {"zone": "dc1"}, required) == Inside()
