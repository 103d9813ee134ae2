"""JSONPaths of printer columns."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.jsonpath import JsonPath, JsonPathError

OBJECT = {
    "metadata": {"name": "a", "labels": {"app.example/tier": "web"}},
    "spec": {"replicas": 3, "ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}]},
    "status": {"conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.replicas", [3]),
        ("{.metadata.name}", ["a"]),
        ("metadata.name", ["a"]),
        (".metadata.labels['app.example/tier']", ["web"]),
        (r".metadata.labels.app\.example/tier", ["web"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type!='Ready')].status", ["False"]),
        (".spec.ports[?(@.port>100)].name", ["https"]),
        (".spec.ports[?(@.port<=80)].name", ["http"]),
        (".spec.ports[0].port", [80]),
        (".spec.ports[-1].port", [443]),
        (".spec.ports[*].port", [80, 443]),
        (".spec.ports[0:1].name", ["http"]),
        (".spec.nothing.here", []),
        (".spec.ports[7]", []),
        (".spec.replicas.deeper", []),
        (".status.conditions[?(@.missing)].type", []),
    ],
)
def test_a_path_finds_what_it_leads_to(path, expected):
    assert JsonPath(path).find(OBJECT) == expected


def test_the_first_element_of_an_empty_list_is_missing():
    assert JsonPath(".spec.nothing").first(OBJECT) is None


@pytest.mark.parametrize("path", [".a[", ".a[?(@.b==)]", ".a[x]", ".a..b", ".a[-:]", f".a[{'1' * 5000}]"])
def test_a_path_that_cannot_be_read_is_refused(path):
    with pytest.raises(JsonPathError):
        JsonPath(path)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(".a[?(@.b" + r"\a" * 30_000 + " ", id="escapes"),
        pytest.param(".a[?(@.b==" + " " * 60_000, id="spaces before a value"),
        pytest.param(".a[?(" + " " * 60_000, id="spaces before an operand"),
        pytest.param(".a['" + "\\" * 60_001, id="quoted"),
    ],
)
@pytest.mark.timeout(10)
def test_a_path_that_cannot_be_read_is_refused_in_linear_time(path):
    with pytest.raises(JsonPathError):
        JsonPath(path)


@pytest.mark.parametrize(
    ("literal", "names"), [("1", ["number"]), ("1.0", ["number"]), ("true", ["boolean"]), ("'1'", ["text"])]
)
def test_a_filter_does_not_take_a_boolean_for_a_number(literal, names):
    items = [{"name": "number", "on": 1}, {"name": "boolean", "on": True}, {"name": "text", "on": "1"}]

    assert JsonPath(f".items[?(@.on=={literal})].name").find({"items": items}) == names
