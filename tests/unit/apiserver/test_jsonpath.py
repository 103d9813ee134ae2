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


@pytest.mark.parametrize("path", [".a[", ".a[?(@.b==)]", ".a[x]", ".a..b"])
def test_a_path_that_cannot_be_read_is_refused(path):
    with pytest.raises(JsonPathError):
        JsonPath(path)
