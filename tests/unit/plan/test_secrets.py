"""Secret contents are never shown; changes of them always are."""

import base64

import msgspec

from nodeyard.plan.diff import diff
from nodeyard.plan.secrets import LAST_APPLIED, conceal, fingerprint, is_fingerprint


def secret(data=None, **more):
    return {"kind": "Secret", "metadata": {"name": "s"}, "data": data or {}, **more}


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def test_a_fingerprint_distinguishes_contents_and_reveals_nothing():
    assert fingerprint("hunter2") == fingerprint(b"hunter2")
    assert fingerprint("hunter2") != fingerprint("hunter3")
    assert is_fingerprint(fingerprint({"any": "value"}))
    assert "hunter2" not in fingerprint("hunter2")


def test_a_diff_of_secrets_shows_hashes():
    (change,) = diff(secret({"password": encoded("old")}), secret({"password": encoded("new")}))
    assert change.path == "data[password]"
    assert (change.from_, change.to) == (fingerprint("old"), fingerprint("new"))


def test_the_same_content_is_the_same_however_it_is_written():
    assert diff(secret({"a": encoded("x")}), secret(stringData={"a": "x"})) == ()


def test_the_copy_that_kubectl_keeps_is_hidden_too():
    annotated = secret(metadata={"annotations": {LAST_APPLIED: '{"data":{"password":"aHVudGVyMg=="}}'}})
    assert b"aHVudGVyMg" not in msgspec.json.encode(conceal(annotated))


def test_named_fields_of_any_kind_are_hidden():
    old, new = ({"kind": "Cluster", "spec": {"kubeconfig": encoded(text)}} for text in ("a", "b"))
    (change,) = diff(old, new, secrets=["spec.kubeconfig"])
    assert (change.path, change.from_, change.to) == ("spec.kubeconfig", fingerprint("a"), fingerprint("b"))


def test_a_missing_named_field_is_no_matter():
    cluster = {"kind": "Cluster", "spec": "odd"}
    assert conceal(cluster, ["spec.kubeconfig", "status.secret"]) == cluster


def test_concealing_twice_is_concealing_once():
    once = conceal(secret({"a": encoded("x")}), ["spec.token"])
    assert conceal(once, ["spec.token"]) == once


def test_arguments_are_not_changed():
    given = secret({"a": encoded("x")})
    conceal(given)
    assert given == secret({"a": encoded("x")})
