"""Protocol buffers written by the real API server are read as the JSON that it writes.

With NODEYARD_RECORD=1 its answers become the records that the unit tests read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nodeyard.apiserver.kinds import go_struct, protobuf, table
from nodeyard.apiserver.request_body import PROTOBUF
from nodeyard.testing import ControlPlane, generate_protobuf_table, versions
from nodeyard.testing.session import JSON, Response, Session
from nodeyard.testing.wait import until

from ..builders.protobuf import Sample, record, samples

pytestmark = pytest.mark.real

Formats = tuple[bytes, dict[str, Any]]
"""One object as protocol buffers and as JSON."""

NOWHERE = protobuf.Kind("", "", "")


@pytest.fixture(scope="module")
def http() -> Iterator[Session]:
    with ControlPlane() as plane:
        yield Session(plane.url, plane.authority.pem, plane.admin_token)


@pytest.fixture(scope="module")
def answers(http: Session) -> dict[str, Formats]:
    found = {sample.name: both_formats(http, sample) for sample in samples()}
    if os.environ.get("NODEYARD_RECORD"):
        record(found)
    return found


def both_formats(http: Session, sample: Sample) -> Formats:
    made = http.post(sample.path, sample.sent)
    assert made.status == 201, made.content
    if "name" not in made.json["metadata"]:
        return same_answer(lambda accept: http.post(sample.path, sample.sent, accept=accept))
    return read_twice(http, f"{sample.path}/{made.json['metadata']['name']}")


def read_twice(http: Session, path: str) -> Formats:
    return same_answer(lambda accept: http.get(path, accept=accept))


def same_answer(ask: Callable[[str], Response]) -> Formats:
    """Read both formats of one version, since the server itself writes some objects."""

    def answers() -> Formats | None:
        before, raw, after = (ask(accept) for accept in (JSON, PROTOBUF, JSON))
        return (raw.content, after.json) if before.json == after.json else None

    return until(answers, "the object to stand still")


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_both_formats_say_the_same(answers: dict[str, Formats], name: str) -> None:
    raw, shown = answers[name]

    assert protobuf.decode(raw, NOWHERE) == in_go(shown)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces",
        "/api/v1/services",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/coordination.k8s.io/v1/leases",
    ],
)
def test_everything_a_fresh_server_has_can_be_read(http: Session, path: str) -> None:
    found = http.get(path).json["items"]

    assert found
    for each in found:
        namespace = each["metadata"].get("namespace")
        head, _, plural = path.rpartition("/")
        where = f"{head}/namespaces/{namespace}/{plural}" if namespace else path
        raw, shown = read_twice(http, f"{where}/{each['metadata']['name']}")
        assert protobuf.decode(raw, NOWHERE) == in_go(shown)


def in_go(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object as its Go type encodes it."""
    group, _, version = obj["apiVersion"].rpartition("/")
    definition = table.definition_of(group, version, obj["kind"])
    assert definition is not None
    decoded = go_struct.decode(definition, obj)
    assert decoded.unknown == []
    return decoded.object


def test_the_message_table_equals_the_modules() -> None:
    derived = generate_protobuf_table.derive(
        table.definitions(), generate_protobuf_table.go_protos(generate_protobuf_table.folders(versions.KUBERNETES))
    )

    assert generate_protobuf_table.render(derived, versions.KUBERNETES) == protobuf.PATH.read_text()
