"""Identity of an object, and order of two resourceVersions."""

import pytest

from nodeyard.kube.object_key import identity_of, is_at_least
from nodeyard.kube.objects import Node

from ..watch.builders import node, wire


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [
        ("5", "5", True),
        ("10", "9", True),
        ("9", "10", False),
        ("x", "x", True),
        ("x", "5", False),
        ("", "5", False),
        ("5", "", False),
        ("", "", False),
    ],
)
def test_versions_are_compared_as_numbers_where_they_are(version, other, expected):
    assert is_at_least(version, other) is expected


def test_a_struct_and_a_dict_say_the_same_of_themselves():
    obj = node("a", 5, uid="u", zone="x")
    struct, plain = identity_of(Node), identity_of(dict)
    for read in ("key", "version", "uid", "labels"):
        assert getattr(struct, read)(obj) == getattr(plain, read)(wire(obj))
