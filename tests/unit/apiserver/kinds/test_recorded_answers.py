"""Recorded responses of the real server to writes of built-in kinds, compared with the strategies alone."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.errors import ApiError
from nodeyard.kube.json import Object
from nodeyard.kube.patch import merge_patch

from ....conformance.cases.built_in_kinds import CASES, PLACE, Case, Reply, reduce
from .pipeline import create, located, update


def is_about_expressions(case: Case) -> bool:
    """Return whether the case is about compiling an expression, which only admission does."""
    return any("compilation failed" in fault or "must evaluate to" in fault for fault in case.reply.faults)


def answer(case: Case) -> Reply:
    resource, namespace = located(case.path)
    try:
        if case.given is None:
            return reduce(201, create(resource, namespace, case.body, is_strict="Strict" in case.query))
        old = create(resource, namespace, case.given)
        body: Object = merge_patch(old, case.body) if case.method == "PATCH" else case.body
        return reduce(200, update(resource, old, body, is_status=case.subresource == "status"))
    except ApiError as refusal:
        return reduce(refusal.code, refusal.status())


@pytest.mark.parametrize("case", [case for case in CASES if not is_about_expressions(case)], ids=lambda case: case.id)
def test_the_strategies_answer_as_the_real_server_does(case: Case) -> None:
    assert answer(case.in_namespace(PLACE)) == case.reply
