"""Eviction and disruption budgets: the whole table of answers."""

from __future__ import annotations

import pytest


@pytest.fixture
def pods(namespace) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture
def budgets(namespace) -> str:
    return f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"


def run(http, pods: str, name: str, *, ready: bool = True) -> None:
    body = {
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]},
    }
    assert http.post(pods, body).status == 201
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    http.patch(f"{pods}/{name}/status", {"status": {"phase": "Running", "conditions": [condition]}})


def budget(http, budgets: str, eventually, name: str = "b", *, allowed: int, **spec) -> None:
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec}}
    assert http.post(budgets, body).status == 201
    eventually(
        lambda: (
            http.get(f"{budgets}/{name}").json.get("status", {}).get("disruptionsAllowed") == allowed
            and http.get(f"{budgets}/{name}").json["status"].get("observedGeneration") == 1
        ),
        f"{name} allows {allowed}",
    )


def evict(http, pods: str, name: str, **more):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return http.post(f"{pods}/{name}/eviction", body)


def test_a_pod_without_a_budget_is_evicted(http, pods):
    run(http, pods, "a")

    answer = evict(http, pods, "a")

    assert (answer.status, answer.json["status"]) == (201, "Success")
    assert http.get(f"{pods}/a").status == 404


def test_a_budget_with_room_allows_an_eviction(http, pods, budgets, eventually):
    run(http, pods, "a")
    run(http, pods, "b")
    budget(http, budgets, eventually, allowed=1, minAvailable=1)

    assert evict(http, pods, "a").status == 201


def test_a_budget_that_is_used_up_refuses(http, pods, budgets, eventually):
    run(http, pods, "a")
    budget(http, budgets, eventually, allowed=0, minAvailable=1)
    eventually(lambda: http.get(f"{budgets}/b").json["status"]["currentHealthy"] == 1, "the pod is counted")

    answer = evict(http, pods, "a")

    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.causes == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
        }
    ]
    assert http.get(f"{pods}/a").status == 200


def test_two_budgets_for_one_pod_are_an_error(http, pods, budgets, eventually):
    run(http, pods, "a")
    for name in ("b", "c"):
        budget(http, budgets, eventually, name, allowed=1, minAvailable=0)

    answer = evict(http, pods, "a")

    assert answer.status == 500
    assert "more than one PodDisruptionBudget" in answer.message


def test_a_pod_that_does_not_run_is_evicted_whatever_the_budget(http, pods, budgets, eventually):
    body = {"metadata": {"name": "p", "labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    http.post(pods, body)
    budget(http, budgets, eventually, allowed=0, minAvailable=1)

    assert evict(http, pods, "p").status == 201


def test_a_pod_that_is_not_ready_waits_for_a_healthy_budget(http, pods, budgets, eventually):
    run(http, pods, "sick", ready=False)
    budget(http, budgets, eventually, allowed=0, minAvailable=1)

    assert evict(http, pods, "sick").status == 429


def test_a_pod_that_is_not_ready_is_evicted_where_the_budget_allows_it(http, pods, budgets, eventually):
    run(http, pods, "sick", ready=False)
    budget(http, budgets, eventually, allowed=0, minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")

    assert evict(http, pods, "sick").status == 201


def test_a_dry_run_evicts_nothing(http, pods):
    run(http, pods, "a")

    assert evict(http, pods, "a", deleteOptions={"dryRun": ["All"]}).status == 201
    assert http.get(f"{pods}/a").status == 200


def test_a_pod_that_is_gone_cannot_be_evicted(http, pods):
    assert evict(http, pods, "nope").status == 404


def test_an_evicted_pod_says_why_while_it_ends(http, pods):
    body = {
        "metadata": {"name": "slow"},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 60, "containers": [{"name": "c", "image": "i"}]},
    }
    http.post(pods, body)
    http.patch(f"{pods}/slow/status", {"status": {"phase": "Running"}})

    evict(http, pods, "slow")

    shown = http.get(f"{pods}/slow").json
    assert shown["metadata"]["deletionGracePeriodSeconds"] == 60
    conditions = [(c["type"], c["reason"]) for c in shown["status"]["conditions"]]
    assert ("DisruptionTarget", "EvictionByEvictionAPI") in conditions
    http.delete(f"{pods}/slow", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("spec", "healthy", "expected"),
    [
        (
            {"minAvailable": 2},
            3,
            {"desiredHealthy": 2, "currentHealthy": 3, "expectedPods": 3, "disruptionsAllowed": 1},
        ),
        ({"minAvailable": 5}, 3, {"desiredHealthy": 5, "currentHealthy": 3, "disruptionsAllowed": 0}),
        ({"minAvailable": "0%"}, 0, {"desiredHealthy": 0, "expectedPods": 0, "disruptionsAllowed": 0}),
    ],
    ids=["room", "short", "empty"],
)
def test_a_budget_counts_its_pods(http, pods, budgets, eventually, spec, healthy, expected):
    for number in range(healthy):
        run(http, pods, f"p{number}")
    http.post(budgets, {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec}})

    eventually(
        lambda: expected.items() <= http.get(f"{budgets}/b").json.get("status", {}).items(), f"the status is {expected}"
    )
    for number in range(healthy):
        http.delete(f"{pods}/p{number}", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    "spec",
    [{"minAvailable": 1, "maxUnavailable": 1}, {"minAvailable": -1}, {"minAvailable": "110%"}, {"maxUnavailable": "x"}],
    ids=["both", "negative", "above 100", "no number"],
)
def test_a_faulty_budget_is_invalid(http, budgets, spec):
    answer = http.post(budgets, {"metadata": {"name": "b"}, "spec": {"selector": {}, **spec}})

    assert (answer.status, answer.reason) == (422, "Invalid")
