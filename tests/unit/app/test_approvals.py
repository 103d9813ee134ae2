"""The annotation that `nodeyard approve` writes."""

import pytest

from nodeyard.app.approvals import REMEMBERED, with_approval
from nodeyard.kube.names import APPROVE
from nodeyard.runtime.annotations import approval_ids


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("", "new"),
        ("old", "old,new"),
        (" a , b,", "a,b,new"),
        ("new,a", "a,new"),
    ],
)
def test_an_approval_is_added_to_those_there_are(given, then):
    root = {"metadata": {"annotations": {APPROVE: given}}}
    assert with_approval(approval_ids(root), "new") == then


def test_only_the_latest_are_kept():
    given = [f"id{number}" for number in range(REMEMBERED)]
    assert with_approval(given, "new") == ",".join([*given[1:], "new"])
