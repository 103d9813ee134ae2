"""Matching of RBAC rules, and the part of some rules that others do not cover."""

import pytest

from nodeyard.apiserver.rbac.rules import Permissions, Rule, compact, uncovered
from nodeyard.apiserver.request_info import RequestInfo


def asked(verb: str, resource: str, *, group: str = "", name: str = "") -> RequestInfo:
    plural, _, subresource = resource.partition("/")
    return RequestInfo("", verb, True, group=group, resource=plural, subresource=subresource, name=name)


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> Rule:
    return Rule(
        tuple(verbs.split()),
        tuple(groups.split(",")),
        tuple(resources.split()),
        tuple(names.split()),
    )


def urls(verbs: str, *paths: str) -> Rule:
    return Rule(tuple(verbs.split()), non_resource_urls=paths)


@pytest.mark.parametrize(
    ("given", "request_", "expected"),
    [
        (rule("get list", "pods"), asked("list", "pods"), True),
        (rule("get list", "pods"), asked("delete", "pods"), False),
        (rule("get", "pods"), asked("get", "pods", group="apps"), False),
        (rule("get", "deployments", "apps,batch"), asked("get", "deployments", group="batch"), True),
        (rule("*", "*", "*"), asked("deletecollection", "leases", group="coordination.k8s.io"), True),
        (rule("create", "pods"), asked("create", "pods/eviction"), False),
        (rule("create", "pods/eviction"), asked("create", "pods/eviction", name="p"), True),
        (rule("update", "*/scale", "*"), asked("update", "deployments/scale", group="apps"), True),
        (rule("update", "*/scale", "*"), asked("update", "deployments/status", group="apps"), False),
        (rule("update", "*", "*"), asked("update", "deployments/status", group="apps"), True),
        (rule("get", "secrets", names="s1 s2"), asked("get", "secrets", name="s2"), True),
        (rule("get", "secrets", names="s1 s2"), asked("get", "secrets", name="s3"), False),
        (rule("list", "secrets", names="s1"), asked("list", "secrets"), False),
        (urls("get", "/healthz", "/metrics/*"), RequestInfo("/healthz", "get"), True),
        (urls("get", "/healthz", "/metrics/*"), RequestInfo("/metrics/slis", "get"), True),
        (urls("get", "/healthz", "/metrics/*"), RequestInfo("/metrics", "get"), False),
        (urls("get", "/healthz"), RequestInfo("/healthz", "post"), False),
        (urls("*", "*"), RequestInfo("/anything", "put"), True),
        (rule("*", "*", "*"), RequestInfo("/healthz", "get"), False),
    ],
)
def test_a_rule_allows_exactly_its_requests(given: Rule, request_: RequestInfo, expected: bool) -> None:
    assert Permissions((given,)).allow(request_) is expected


def test_names_of_several_rules_add_up_and_a_rule_without_names_wins() -> None:
    named = Permissions((rule("get", "secrets", names="a"), rule("get", "secrets", names="b")))
    assert [named.allow(asked("get", "secrets", name=name)) for name in "abc"] == [True, True, False]
    every = Permissions((rule("get", "secrets"), rule("get", "secrets", names="a")))
    assert every.allow(asked("get", "secrets", name="c"))


MANY = " ".join(f"x{number}" for number in range(2000))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asked("x1", "x2", group="x3"), True),
        (asked("x1", "x2/x4", group="x3"), False),
        (asked("x1", "deployments/scale", group="x3"), True),
        (asked("get", "x2", group="x3"), False),
        (asked("x1", "x2", group="apps"), False),
        (asked("x1", "pods", group="x3"), False),
    ],
)
@pytest.mark.timeout(10)
def test_a_rule_with_billions_of_combinations_is_not_multiplied_out(request_: RequestInfo, expected: bool) -> None:
    assert Permissions((rule(MANY, f"{MANY} */scale", MANY.replace(" ", ",")),)).allow(request_) is expected


@pytest.mark.timeout(10)
def test_a_rule_with_billions_of_combinations_grants_its_names_alone() -> None:
    named = Permissions((rule(MANY, MANY, MANY.replace(" ", ","), names="a"),))

    assert named.allow(asked("x1", "x2", group="x3", name="a"))
    assert not named.allow(asked("x1", "x2", group="x3", name="b"))


def test_covered_rules_are_not_missing() -> None:
    assert uncovered([rule("*", "*", "*")], [rule("get list", "pods secrets", names="a b")]) == []
    assert uncovered([rule("update", "*/scale")], [rule("update", "deployments/scale")]) == []
    assert uncovered([urls("get", "/metrics/*")], [urls("get", "/metrics/slis")]) == []


def test_a_right_on_one_name_does_not_cover_all_names() -> None:
    assert uncovered([rule("get", "secrets", names="a")], [rule("get", "secrets")]) == [rule("get", "secrets")]
    assert uncovered([rule("get", "secrets", names="a")], [rule("get", "secrets", names="a")]) == []


def test_missing_rights_are_reported_by_resource_with_their_verbs_together() -> None:
    missing = uncovered(
        [rule("get list", "pods")],
        [rule("get delete list", "pods nodes"), urls("get", "/metrics"), rule("get list", "secrets", names="s1")],
    )
    assert sorted(map(str, compact(missing))) == [
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "delete" "list"]}',
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["s1"], Verbs:["get" "list"]}',
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
    ]
