"""Credentials are read again when they may have changed, and not otherwise."""

import asyncio
import base64
import os
import sys
from datetime import timedelta

import pytest

from nodeyard.client.config import Config, Credentials, ExecPlugin, Impersonation, Material
from nodeyard.client.credentials import CredentialCache
from nodeyard.client.errors import ConfigError
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import VirtualClock

V1 = "client.authentication.k8s.io/v1"


@pytest.fixture
def clock():
    return VirtualClock()


def credentials_of(clock, **credentials):
    return CredentialCache(Config("https://x", credentials=Credentials(**credentials)), clock)


async def authorization(ring):
    return dict((await ring.current()).headers).get("Authorization")


async def test_a_token_is_a_bearer_header(clock):
    assert await authorization(credentials_of(clock, token="t")) == "Bearer t"


async def test_no_credentials_send_no_header(clock):
    assert (await credentials_of(clock).current()).headers == ()


async def test_name_and_password_are_basic(clock):
    expected = f"Basic {base64.b64encode(b'me:pw').decode()}"
    assert await authorization(credentials_of(clock, username="me", password="pw")) == expected


async def test_impersonation_repeats_a_header_per_group(clock):
    ring = credentials_of(clock, token="t", impersonate=Impersonation("bob", "7", ("a", "b"), (("scopes", ("view",)),)))
    assert (await ring.current()).headers[1:] == (
        ("Impersonate-User", "bob"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes", "view"),
    )


async def test_a_rotated_token_file_is_seen_within_a_minute(clock, tmp_path):
    path = tmp_path / "token"
    path.write_text("old\n")
    ring = credentials_of(clock, token_file=path)
    assert await authorization(ring) == "Bearer old"
    path.write_text("new\n")
    assert await authorization(ring) == "Bearer old"
    await clock.advance(61)
    assert await authorization(ring) == "Bearer new"


async def test_a_refused_token_is_read_again_at_once(clock, tmp_path):
    path = tmp_path / "token"
    path.write_text("old")
    ring = credentials_of(clock, token_file=path)
    refused = await ring.current()
    path.write_text("new")
    ring.invalidate(refused)
    renewed = await ring.current()
    ring.invalidate(refused)
    assert await ring.current() is renewed
    assert dict(renewed.headers)["Authorization"] == "Bearer new"


async def test_a_file_that_is_gone_for_a_moment_does_not_hurt(clock, tmp_path):
    path = tmp_path / "token"
    path.write_text("t")
    ring = credentials_of(clock, token_file=path)
    await ring.current()
    path.unlink()
    await clock.advance(61)
    assert await authorization(ring) == "Bearer t"
    ring.invalidate(await ring.current())
    with pytest.raises(ConfigError, match="cannot be read"):
        await ring.current()


async def test_an_empty_token_file_is_an_error(clock, tmp_path):
    (tmp_path / "token").touch()
    with pytest.raises(ConfigError, match="token file is empty"):
        await credentials_of(clock, token_file=tmp_path / "token").current()


async def test_a_certificate_from_files_is_renewed_with_them(clock, tmp_path):
    cert, key = tmp_path / "c", tmp_path / "k"
    cert.write_bytes(b"c1")
    key.write_bytes(b"k1")
    ring = credentials_of(clock, certificate=Material(path=cert), key=Material(path=key))
    assert (await ring.current()).identity.certificate == b"c1"
    cert.write_bytes(b"c2")
    await clock.advance(61)
    assert (await ring.current()).identity.certificate == b"c2"


def plugin(tmp_path, body, **options):
    script = tmp_path / "plugin.py"
    script.write_text(body)
    return ExecPlugin(sys.executable, V1, (str(script),), (("COUNT", str(tmp_path / "count")),), **options)


ISSUING = """
import json, os, pathlib
count = pathlib.Path(os.environ["COUNT"])
n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert info["kind"] == "ExecCredential" and info["spec"]["interactive"] is False
status = {"token": f"t{n}"}
if os.environ.get("EXPIRES"):
    status["expirationTimestamp"] = os.environ["EXPIRES"]
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


async def test_a_plugin_runs_once_for_all_who_ask(clock, tmp_path):
    ring = credentials_of(clock, plugin=plugin(tmp_path, ISSUING))
    keys = await asyncio.gather(*(ring.current() for _ in range(5)))
    assert {dict(one.headers)["Authorization"] for one in keys} == {"Bearer t1"}


async def test_a_plugin_runs_again_before_its_credentials_expire(clock, tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "EXPIRES", format_rfc3339(clock.now() + timedelta(minutes=10)))
    ring = credentials_of(clock, plugin=plugin(tmp_path, ISSUING))
    assert await authorization(ring) == "Bearer t1"
    await clock.advance(580)
    assert await authorization(ring) == "Bearer t1"
    await clock.advance(11)
    assert await authorization(ring) == "Bearer t2"


async def test_a_plugin_may_issue_a_certificate(clock, tmp_path):
    status = {"clientCertificateData": "cert", "clientKeyData": "key"}
    body = f"import json; print(json.dumps({{'apiVersion': '{V1}', 'kind': 'ExecCredential', 'status': {status}}}))"
    keys = await credentials_of(clock, plugin=plugin(tmp_path, body)).current()
    assert (keys.identity.certificate, keys.identity.key, keys.headers) == (b"cert", b"key", ())


async def test_a_plugin_that_fails_is_quoted_with_its_hint(clock, tmp_path):
    body = "import sys; sys.exit('please log in')"
    ring = credentials_of(clock, plugin=plugin(tmp_path, body, install_hint="see the manual"))
    with pytest.raises(ConfigError, match=r"exit code 1: please log in \(see the manual\)"):
        await ring.current()


async def test_a_plugin_that_is_not_installed_is_named(clock):
    with pytest.raises(ConfigError, match="exec plugin no-such-thing cannot be run: No such file"):
        await credentials_of(clock, plugin=ExecPlugin("no-such-thing", V1)).current()


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("nonsense", "did not print an ExecCredential"),
        (
            '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential"}',
            "instead of client.authentication.k8s.io/v1 ExecCredential",
        ),
        ('{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {}}', "neither"),
        (
            '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
            '"status": {"clientCertificateData": "x"}}',
            "without its key",
        ),
    ],
)
async def test_a_plugin_that_prints_something_else_is_refused(clock, tmp_path, printed, words):
    with pytest.raises(ConfigError, match=words):
        await credentials_of(clock, plugin=plugin(tmp_path, f"print({printed!r})")).current()
