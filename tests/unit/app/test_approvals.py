"""What `nodeyard approve` leaves in the annotation."""

import pytest

from nodeyard.app.approvals import REMEMBERED, with_approval


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
    assert with_approval(given, "new") == then


def test_only_the_latest_are_kept():
    given = ",".join(f"id{number}" for number in range(REMEMBERED))
    assert with_approval(given, "new") == ",".join([*(f"id{number}" for number in range(1, REMEMBERED)), "new"])
