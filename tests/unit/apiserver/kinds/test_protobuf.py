"""Bodies in protocol buffers: what Go's clients send is read as the JSON they would have sent."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodeyard.apiserver.kinds import go_struct, protobuf, table
from nodeyard.apiserver.kinds.protobuf import ContentError, EnvelopeError, Kind, decode

from ....builders.protobuf import MAGIC, Sample, envelope, field, samples, tag

CONFIG_MAPS = Kind("", "v1", "ConfigMap")
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

# The request of kubectl 1.36.
CREATE_CONFIGMAP = "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEh4KFAoBYhIAGgNwYngiACoAMgA4AEIAEgYKAXgSATEaACIA"
AUTH_CAN_I = (
    "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSOgoQCgASABoAIgAqADIAOABCABIcChoKA3BieBIE"
    "bGlzdBoAIgAqBW5vZGVzMgA6ABoICAASABoAIAAaACIA"
)
CREATE_TOKEN = (
    "azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIyChAKABIAGgAiACoAMgA4AEIAEhgKAXgaEAoDUG9kEgJ2MRoBcCIC"
    "dTEgsAkaBAoAEgAaACIA"
)
# The output of Go's serializer.
EVICTION = (
    "azhzAAoVCglwb2xpY3kvdjESCEV2aWN0aW9uEjEKEwoBcBIAGgJucyIAKgAyADgAQgASGggHEgUKA3UtMSIKRm9yZWdyb3VuZCoDQWxsGgAiAA=="
)
DELETE_OPTIONS = "azhzAAoYCgdhcHBzL3YxEg1EZWxldGVPcHRpb25zEhoIBxIFCgN1LTEiCkZvcmVncm91bmQqA0FsbBoAIgA="
NEGATIVE_GRACE = "azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxILCPv//////////wEaACIA"
BINDING = "azhzAAoNCgJ2MRIHQmluZGluZxIoChEKAXASABoAIgAqADIAOABCABITCgROb2RlEgAaAW4iACoAMgA6ABoAIgA="


def read(api_version: str, kind: str, *fields: bytes) -> dict[str, Any]:
    return decode(envelope(api_version, kind, b"".join(fields)), Kind("", "", ""))


def in_go(obj: dict[str, Any]) -> dict[str, Any]:
    """The object as its Go type has it."""
    group, _, version = obj["apiVersion"].rpartition("/")
    definition = table.definition_of(group, version, obj["kind"]) or f"{META}{obj['kind']}"
    decoded = go_struct.decode(definition, obj)
    assert decoded.unknown == []
    return decoded.object


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_both_formats_of_an_object_say_the_same(sample: Sample) -> None:
    assert decode(sample.protobuf, Kind("", "", "")) == in_go(sample.json)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            CREATE_CONFIGMAP,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "b", "namespace": "pbx"},
                "data": {"x": "1"},
            },
            id="create configmap",
        ),
        pytest.param(
            AUTH_CAN_I,
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "metadata": {},
                "spec": {"resourceAttributes": {"namespace": "pbx", "verb": "list", "resource": "nodes"}},
                "status": {"allowed": False},
            },
            id="auth can-i",
        ),
        pytest.param(
            CREATE_TOKEN,
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "metadata": {},
                "spec": {
                    "audiences": ["x"],
                    "expirationSeconds": 1200,
                    "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u1"},
                },
                "status": {"token": "", "expirationTimestamp": None},
            },
            id="create token",
        ),
        pytest.param(
            EVICTION,
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "p", "namespace": "ns"},
                "deleteOptions": {
                    "gracePeriodSeconds": 7,
                    "preconditions": {"uid": "u-1"},
                    "propagationPolicy": "Foreground",
                    "dryRun": ["All"],
                },
            },
            id="eviction",
        ),
        pytest.param(
            DELETE_OPTIONS,
            {
                "apiVersion": "apps/v1",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": 7,
                "preconditions": {"uid": "u-1"},
                "propagationPolicy": "Foreground",
                "dryRun": ["All"],
            },
            id="delete options",
        ),
        pytest.param(
            NEGATIVE_GRACE,
            {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": -5},
            id="a negative number",
        ),
        pytest.param(
            BINDING,
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
            id="binding",
        ),
    ],
)
def test_requests_of_clients_are_decoded(body: str, expected: dict[str, Any]) -> None:
    assert decode(base64.b64decode(body), Kind("", "", "")) == expected


# the envelope


@pytest.mark.parametrize("api_version", ["", "a/b/c"])
def test_the_endpoint_gives_the_kind_that_the_envelope_omits(api_version: str) -> None:
    body = envelope(api_version, "", field(1, field(1, "a")))

    assert decode(body, CONFIG_MAPS) == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def test_an_envelope_without_an_object_holds_an_empty_one() -> None:
    body = MAGIC + field(1, field(1, "v1") + field(2, "ConfigMap"))

    assert decode(body, CONFIG_MAPS) == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}


def test_delete_options_come_under_any_group() -> None:
    assert read("example.dev/v7", "DeleteOptions", field(1, 3))["gracePeriodSeconds"] == 3


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "empty data"),
        (
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
        (MAGIC, "empty body"),
        (envelope("v1", "ConfigMap", b"")[:-1], "unexpected EOF"),
        (MAGIC + field(1, 5), "proto: wrong wireType = 0 for field TypeMeta"),
        (MAGIC + field(1, field(1, 5)), "proto: wrong wireType = 0 for field APIVersion"),
        (MAGIC + field(2, 5), "proto: wrong wireType = 0 for field Raw"),
    ],
)
def test_a_broken_envelope_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(EnvelopeError) as refused:
        decode(body, CONFIG_MAPS)

    assert str(refused.value) == why


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Foo"), ("foo/v1", "ConfigMap")])
def test_an_unknown_kind_is_refused_by_name(api_version: str, kind: str) -> None:
    with pytest.raises(ContentError) as refused:
        decode(envelope(api_version, kind, b""), CONFIG_MAPS)

    assert str(refused.value).startswith(f'no kind "{kind}" is registered for version "{api_version}"')
    assert refused.value.kind == Kind(api_version.rpartition("/")[0], "v1", kind)


# messages


def test_unknown_fields_are_passed_over() -> None:
    strange = [
        field(90, 7),
        field(91, b"abc"),
        tag(92, 1) + bytes(8),
        tag(93, 5) + bytes(4),
        tag(94, 3) + field(1, 1) + tag(2, 3) + tag(2, 4) + tag(94, 4),
    ]

    assert read("v1", "ConfigMap", field(1, field(1, "a")), *strange)["metadata"] == {"name": "a"}


def test_a_message_in_two_parts_is_one() -> None:
    found = read("v1", "ConfigMap", field(1, field(1, "a")), field(1, field(3, "default") + field(11, field(1, "k"))))

    assert found["metadata"] == {"name": "a", "namespace": "default", "labels": {"k": ""}}


def test_the_last_of_several_scalars_counts() -> None:
    assert read("v1", "DeleteOptions", field(1, 3), field(1, 4))["gracePeriodSeconds"] == 4


def test_a_map_entry_may_lack_key_or_value() -> None:
    found = read("v1", "ConfigMap", field(2, field(2, "value")), field(2, field(1, "key")), field(3, b""))

    assert found["data"] == {"": "value", "key": ""}
    assert found["binaryData"] == {"": ""}


def test_an_empty_quantity_is_zero() -> None:
    status = field(1, field(1, "cpu")) + field(1, field(1, "memory") + field(2, b""))

    assert read("v1", "Node", field(3, status))["status"]["capacity"] == {"cpu": "0", "memory": "0"}


def test_repeated_numbers_come_one_by_one_or_packed() -> None:
    security = field(4, 7) + field(4, b"\x01\xac\x02")

    spec = read("v1", "Pod", field(2, field(14, security)))["spec"]

    assert spec["securityContext"]["supplementalGroups"] == [7, 1, 300]


def test_numbers_are_cut_to_the_width_of_their_type() -> None:
    """Go's generated code does the same without an error."""
    spec = read("apps/v1", "Deployment", field(2, field(1, (1 << 32) + 5) + field(5, (1 << 32) - 2)))["spec"]

    assert (spec["replicas"], spec["minReadySeconds"]) == (5, -2)


def test_text_that_is_no_text_gets_replacement_characters() -> None:
    assert read("v1", "ConfigMap", field(2, field(1, "k") + field(2, b"\xff")))["data"] == {"k": "\ufffd"}


def moment(seconds: int, nanos: int) -> bytes:
    return field(1, seconds) + field(2, nanos)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", None),
        (moment(0, 0), "1970-01-01T00:00:00Z"),
        (moment(1767323045, 999_999_999), "2026-01-02T03:04:05Z"),
        (moment(-1, 0), "1969-12-31T23:59:59Z"),
    ],
)
def test_times_have_second_precision(sent: bytes, expected: str | None) -> None:
    assert read("v1", "ConfigMap", field(1, field(9, sent)))["metadata"].get("deletionTimestamp") == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", None),
        (moment(1767323045, 678_901_999), "2026-01-02T03:04:05.678901Z"),
        (moment(1767323045, -1_999), "2026-01-02T03:04:04.999999Z"),
    ],
)
def test_micro_times_have_microsecond_precision(sent: bytes, expected: str | None) -> None:
    lease = read("coordination.k8s.io/v1", "Lease", field(2, field(4, sent)))

    assert lease["spec"].get("renewTime") == expected


def schema(*fields: bytes) -> Any:
    """Return a schema as in a CRD."""
    version = field(4, field(1, b"".join(fields)))
    crd = read("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, version)))
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (field(8, field(1, b'{"a": [1, 2.5, null]}')), {"default": {"a": [1, 2.5, None]}}),
        (field(8, b""), {}),
        (field(24, field(1, field(5, "string"))), {"items": {"type": "string"}}),
        (field(24, field(2, field(5, "a")) + field(2, b"")), {"items": [{"type": "a"}, {}]}),
        (field(30, field(1, 1)), {"additionalProperties": True}),
        (field(30, b""), {"additionalProperties": False}),
        (field(30, field(1, 1) + field(2, b"")), {"additionalProperties": {}}),
        (field(32, field(1, "k") + field(2, field(2, "a"))), {"dependencies": {"k": ["a"]}}),
        (tag(9, 1) + struct.pack("<d", 3.0), {"maximum": 3}),
        (tag(9, 1) + struct.pack("<d", 2.5), {"maximum": 2.5}),
        (field(2, "s") + field(3, "r"), {"$schema": "s", "$ref": "r"}),
        (field(42, "map"), {"x-kubernetes-list-type": "map"}),
    ],
)
def test_schemas_have_the_form_they_have_in_json(sent: bytes, expected: Any) -> None:
    assert schema(sent) == expected


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (field(1, field(1, "a"))[:-1], "unexpected EOF"),
        (b"\x80", "unexpected EOF"),
        (tag(94, 3) + field(1, 1), "unexpected EOF"),
        (tag(94, 1) + bytes(7), "unexpected EOF"),
        (b"\xff" * 11, "proto: integer overflow"),
        (field(1, 1), "proto: wrong wireType = 0 for field ObjectMeta"),
        (field(1, field(1, 1)), "proto: wrong wireType = 0 for field Name"),
        (field(2, 1), "proto: wrong wireType = 0 for field Data"),
        (tag(2, 3) + tag(2, 4), "proto: wrong wireType = 3 for field Data"),
        (field(0, b"a"), "proto: ConfigMap: illegal tag 0 (wire type 2)"),
        (tag(94, 4), "proto: ConfigMap: wiretype end group for non-group"),
        (tag(94, 6), "proto: illegal wireType 6"),
        (tag(1, 2) + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
    ],
)
def test_a_broken_message_is_refused_with_the_message_of_go(raw: bytes, why: str) -> None:
    with pytest.raises(ContentError) as refused:
        read("v1", "ConfigMap", raw)

    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("api_version", "kind", "raw"),
    [
        pytest.param("v1", "ConfigMap", field(1, field(8, moment(1 << 60, 0))), id="a time after the end of times"),
        pytest.param("policy/v1", "PodDisruptionBudget", field(2, field(1, field(1, 2))), id="neither int nor string"),
        pytest.param("apps/v1", "ControllerRevision", field(2, field(1, b"{")), id="JSON that is none"),
        pytest.param("apps/v1", "ControllerRevision", field(2, field(1, b"[" * 100_000)), id="bottomless JSON"),
    ],
)
def test_a_value_that_has_no_json_form_is_refused(api_version: str, kind: str, raw: bytes) -> None:
    with pytest.raises(ContentError):
        read(api_version, kind, raw)


def test_an_invalid_number_is_refused() -> None:
    with pytest.raises(ContentError, match="json: unsupported value"):
        schema(tag(9, 1) + struct.pack("<d", float("nan")))


def test_messages_nest_only_so_deep() -> None:
    nested = b""
    for _ in range(90):
        nested = field(28, nested)
    assert schema(nested)["not"]["not"]

    for _ in range(10_000):
        nested = field(28, nested)
    with pytest.raises(ContentError, match="nested deeper than 100 messages"):
        schema(nested)


# arbitrary input


KINDS = sorted(
    Kind(kind["group"], kind["version"], kind["kind"])
    for facts in table.definitions().values()
    for kind in facts.get("x-kubernetes-group-version-kind", ())
)


@given(body=st.binary(max_size=200), is_magic=st.booleans())
@example(body=b"", is_magic=True)
def test_random_bytes_are_refused_or_become_json(body: bytes, is_magic: bool) -> None:
    refuse_or_read(MAGIC + body if is_magic else body)


@given(kind=st.sampled_from(KINDS), raw=st.binary(max_size=200))
def test_random_messages_are_refused_or_become_json(kind: Kind, raw: bytes) -> None:
    refuse_or_read(envelope(kind.api_version, kind.kind, raw))


@given(data=st.data(), sample=st.sampled_from(samples()))
def test_damaged_objects_are_refused_or_become_json(data: st.DataObject, sample: Sample) -> None:
    place = data.draw(st.integers(0, len(sample.protobuf) - 1))
    damaged = bytearray(sample.protobuf)
    damaged[place] ^= data.draw(st.integers(1, 255))

    refuse_or_read(bytes(damaged[: data.draw(st.integers(place, len(damaged)))]))


def refuse_or_read(body: bytes) -> None:
    """Any input decodes or raises ValueError."""
    try:
        obj = decode(body, CONFIG_MAPS)
    except ValueError:
        return
    assert json.loads(json.dumps(obj, allow_nan=False)) == obj


# the table


def test_the_table_is_of_the_same_kubernetes_as_the_types() -> None:
    assert protobuf.messages().kubernetes == table.table().kubernetes


def test_every_message_that_a_field_holds_is_in_the_table() -> None:
    known = protobuf.messages().messages
    held = {row.type for rows in known.values() for row in rows if "." in row.type}

    assert held - known.keys() == set()


def test_every_field_of_a_definition_is_in_its_message() -> None:
    known = protobuf.messages().messages

    def names(definition: str) -> set[str]:
        inlined = [names(row.type) for row in known[definition] if row.shape == "inline"]
        return {row.name for row in known[definition] if row.shape != "inline"}.union(*inlined)

    missing = {
        f"{definition}.{name}"
        for definition, facts in table.definitions().items()
        for name in set(facts.get("properties", ())) - names(definition)
        if name not in ("apiVersion", "kind")
    }
    assert missing == set()


def test_maps_hold_only_what_has_a_length() -> None:
    """An entry without a value is then read as an empty one."""
    held = {row.type for rows in protobuf.messages().messages.values() for row in rows if row.shape == "map"}

    assert {kind for kind in held if "." not in kind} <= {"string", "bytes"}
