"""Canonical and printed forms of path elements."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.managed_fields import paths


def test_keys_are_sorted_and_values_are_json() -> None:
    assert paths.key([("protocol", "TCP"), ("containerPort", 80)]) == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert paths.value("a") == 'v:"a"'
    assert paths.value(1.0) == "v:1"
    assert paths.value(True) == "v:true"
    assert paths.value("<a&b>") == 'v:"\\u003ca\\u0026b\\u003e"'


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (["f:spec", "f:replicas"], ".spec.replicas"),
        (["f:containers", 'k:{"name":"c"}', "f:image"], '.containers[name="c"].image'),
        (["f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'], '.ports[containerPort=80,protocol="TCP"]'),
        (["f:finalizers", 'v:"x/y"'], '.finalizers[="x/y"]'),
        (["f:numbers", "v:1.5"], ".numbers[=1.5]"),
        (["f:flags", "v:true", "i:3"], ".flags[=true][3]"),
        (["f:odd", "v:null"], ".odd[=null]"),
    ],
)
def test_a_path_is_shown_as_conflicts_show_it(path: list[str], text: str) -> None:
    assert paths.render(path) == text


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("f:a", "f:a"),
        ("f:", "f:"),
        ('k:{"b": 2, "a": 1.0}', 'k:{"a":1,"b":2}'),
        ('v: "x"', 'v:"x"'),
        ("i:07", "i:7"),
        ("z:new kind", None),
    ],
)
def test_every_spelling_of_an_element_becomes_canonical(text: str, element: Any) -> None:
    assert paths.canonical(text) == element


@pytest.mark.parametrize("text", ["", "f", "name", "k:[]", "k:{", "v:", "i:x"])
def test_invalid_elements_are_refused(text: str) -> None:
    with pytest.raises(paths.PathElementError):
        paths.canonical(text)
