"""Kubeconfig files are read as kubectl reads them."""

import base64
import time
from pathlib import Path

import pytest
import yaml

from nodeyard.client.config import Credentials
from nodeyard.client.errors import ConfigError, NoCluster
from nodeyard.client.kubeconfig import load_config, load_kubeconfig, parse_kubeconfig

PEM = b"-----BEGIN CERTIFICATE-----\n"


def b64(data):
    return base64.b64encode(data).decode()


def kubeconfig(cluster=None, user=None, *, context="here", current="here", namespace=""):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": "c", "cluster": {"server": "https://one:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": context, "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
    }


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def load(tmp_path, document, **options):
    return load_kubeconfig([write(tmp_path / "kc", document)], **options)


def parse(document):
    return parse_kubeconfig(yaml.safe_dump(document).encode(), source="Secret a/b")


def test_the_current_context_names_cluster_user_and_namespace(tmp_path):
    config = load(tmp_path, kubeconfig(user={"token": "t"}, namespace="prod"))
    assert (config.server, config.namespace, config.credentials) == ("https://one:6443", "prod", Credentials(token="t"))
    assert config.source == f"{tmp_path}/kc, context here"


def test_embedded_data_wins_over_a_file(tmp_path):
    cluster = {"certificate-authority": "ca.pem", "certificate-authority-data": b64(PEM)}
    assert load(tmp_path, kubeconfig(cluster)).authority.read() == PEM


def test_relative_files_are_beside_the_kubeconfig(tmp_path):
    (tmp_path / "ca.pem").write_bytes(PEM)
    config = load(tmp_path, kubeconfig({"certificate-authority": "ca.pem"}, {"tokenFile": "token"}))
    assert config.authority.read() == PEM
    assert config.credentials.token_file == tmp_path / "token"


def test_a_client_certificate_comes_with_its_key(tmp_path):
    config = load(tmp_path, kubeconfig(user={"client-certificate-data": b64(PEM), "client-key-data": b64(b"key")}))
    assert config.credentials.certificate.read() == PEM
    assert config.credentials.key.read() == b"key"
    with pytest.raises(ConfigError, match="user u: client-key: is missing"):
        load(tmp_path, kubeconfig(user={"client-certificate-data": b64(PEM)}))


def test_tls_server_name_proxy_and_skipping_verification_are_kept(tmp_path):
    cluster = {"tls-server-name": "kube", "proxy-url": "http://proxy:3128", "insecure-skip-tls-verify": True}
    config = load(tmp_path, kubeconfig(cluster))
    assert (config.server_name, config.proxy, config.verify) == ("kube", "http://proxy:3128", False)


def test_skipping_verification_and_a_ca_contradict_each_other(tmp_path):
    with pytest.raises(ConfigError, match="contradicts certificate-authority"):
        load(tmp_path, kubeconfig({"insecure-skip-tls-verify": True, "certificate-authority-data": b64(PEM)}))


def test_a_socks_proxy_is_refused_with_the_reason(tmp_path):
    with pytest.raises(ConfigError, match='cluster c: proxy-url: "socks5://p" is not supported'):
        load(tmp_path, kubeconfig({"proxy-url": "socks5://p"}))


def test_a_server_without_a_scheme_gets_one(tmp_path):
    assert load(tmp_path, kubeconfig({"server": "one:8080"})).server == "http://one:8080"
    assert (
        load(tmp_path, kubeconfig({"server": "one:6443", "insecure-skip-tls-verify": True})).server
        == "https://one:6443"
    )


def test_impersonation_is_read(tmp_path):
    user = {"as": "bob", "as-groups": ["dev"], "as-uid": "7", "as-user-extra": {"scopes": ["view"]}}
    who = load(tmp_path, kubeconfig(user=user)).credentials.impersonate
    assert (who.user, who.groups, who.uid, who.extra) == ("bob", ("dev",), "7", (("scopes", ("view",)),))


def test_impersonating_groups_without_a_user_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="as: is missing"):
        load(tmp_path, kubeconfig(user={"as-groups": ["dev"]}))


EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "get-token",
    "args": ["--cluster", "c"],
    "env": [{"name": "REGION", "value": "eu"}],
    "interactiveMode": "IfAvailable",
    "provideClusterInfo": True,
}


def test_an_exec_plugin_gets_the_cluster(tmp_path):
    config = load(tmp_path, kubeconfig({"certificate-authority-data": b64(PEM)}, {"exec": EXEC}))
    plugin = config.credentials.plugin
    assert (plugin.command, plugin.args, plugin.env) == ("get-token", ("--cluster", "c"), (("REGION", "eu"),))
    assert plugin.cluster_info == {"server": "https://one:6443", "certificate-authority-data": b64(PEM)}


def test_a_relative_plugin_path_is_beside_the_kubeconfig(tmp_path):
    config = load(tmp_path, kubeconfig(user={"exec": {**EXEC, "command": "bin/get-token"}}))
    assert config.credentials.plugin.command == str(tmp_path / "bin/get-token")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "exec.apiVersion"),
        ({"command": ""}, "exec.command: is missing"),
        ({"interactiveMode": "Always"}, "there is no terminal"),
    ],
)
def test_a_plugin_that_cannot_work_is_refused(tmp_path, change, words):
    with pytest.raises(ConfigError, match=words):
        load(tmp_path, kubeconfig(user={"exec": {**EXEC, **change}}))


def test_auth_providers_are_gone(tmp_path):
    with pytest.raises(ConfigError, match="auth-provider: is no longer supported"):
        load(tmp_path, kubeconfig(user={"auth-provider": {"name": "gcp"}}))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (kubeconfig(current=""), "current-context is not set"),
        (kubeconfig(current="elsewhere"), 'context "elsewhere" not found; available: here'),
        (kubeconfig({"server": ""}), "cluster c: server: is missing"),
        (kubeconfig({"server": "ftp://one"}), "neither an https nor an http URL"),
        (kubeconfig({"server": "https:///me:s3cret@one"}), "server: has no host$"),
        (kubeconfig({"server": "https://[one"}), "server: has no host$"),
        (kubeconfig({"server": "https://xn--"}), "server: has no host$"),
        (kubeconfig({"server": "https://one:999999"}), "server: the port is not a number from 1 to 65535$"),
        (kubeconfig({"server": "https://one:s3cret"}), "server: the port is not a number from 1 to 65535$"),
        (
            kubeconfig(user={"token": "one\ntwo"}),
            "user u: token: contains a line break or characters",
        ),
        (kubeconfig({"certificate-authority-data": "%%%"}), "certificate-authority-data: is not base64"),
        ({"clusters": "many"}, "not a kubeconfig"),
        (["list"], "not a kubeconfig"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path, document, words):
    with pytest.raises(ConfigError, match=words):
        load(tmp_path, document)


@pytest.mark.parametrize("url", ["ftp://me:s3cret@one", "ftp://me:s3@cret@one/path"])
@pytest.mark.parametrize("field", ["server", "proxy-url"])
def test_a_url_is_quoted_without_the_login_in_it(tmp_path, field, url):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, kubeconfig({"server": "https://one", field: url}))
    assert '"ftp://one' in str(caught.value)
    assert "cret" not in str(caught.value)


def test_broken_yaml_is_named_with_its_line(tmp_path):
    path = tmp_path / "kc"
    path.write_text("a: 1\nb: [")
    with pytest.raises(ConfigError, match=r"kc, line \d: not valid YAML"):
        load_kubeconfig([path])


@pytest.mark.parametrize(
    "value",
    ["2026-99-99", "9" * 5000, "!!bool s3cret", '!!int ""', ".inf"],
    ids=["date", "number", "bool", "int", "inf"],
)
def test_a_value_that_yaml_cannot_read_is_a_fault_of_the_file(tmp_path, value):
    path = tmp_path / "kc"
    path.write_text(f"users: {value}")
    with pytest.raises(ConfigError, match="kc: not a kubeconfig") as caught:
        load_kubeconfig([path])
    assert value not in str(caught.value)


@pytest.mark.parametrize(
    ("user", "credentials"),
    [
        ({}, Credentials(username="me", password="s3@cret")),
        ({"token": "t"}, Credentials(token="t", username="me", password="s3@cret")),
        ({"username": "you", "password": "p"}, Credentials(username="you", password="p")),
    ],
    ids=["alone", "beside a token", "beside another login"],
)
def test_a_login_in_the_servers_url_is_taken_out_of_it(tmp_path, user, credentials):
    document = kubeconfig({"server": "https://me:s3%40cret@one:6443/a@b"}, user={"token": "", **user})
    config = load(tmp_path, document)
    assert (config.server, config.credentials) == ("https://one:6443/a@b", credentials)


def test_of_several_files_the_first_to_say_something_wins(tmp_path):
    first = kubeconfig({"server": "https://first"})
    second = kubeconfig({"server": "https://second"}, current="there")
    second["contexts"].append({"name": "there", "context": {"cluster": "d", "user": "u"}})
    second["clusters"].append({"name": "d", "cluster": {"server": "https://d", "certificate-authority": "ca"}})
    paths = [write(tmp_path / "a/kc", first), write(tmp_path / "b/kc", second)]
    assert load_kubeconfig(paths).server == "https://first"
    other = load_kubeconfig(paths, context="there")
    assert (other.server, other.authority.path) == ("https://d", tmp_path / "b/ca")


def test_missing_files_of_the_list_are_passed_over(tmp_path):
    here = write(tmp_path / "kc", kubeconfig())
    config = load_config(env={"KUBECONFIG": f"{tmp_path}/none:{here}"})
    assert config.server == "https://one:6443"


def test_a_file_that_is_named_must_be_there(tmp_path):
    with pytest.raises(ConfigError, match="nowhere: cannot be read"):
        load_config(tmp_path / "nowhere", env={})


def test_without_any_configuration_the_error_says_what_to_do(tmp_path):
    with pytest.raises(NoCluster, match="pass --kubeconfig or set KUBECONFIG"):
        load_config(env={"KUBECONFIG": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("cluster", "user", "words"),
    [
        ({}, {"exec": EXEC}, "exec: commands are not allowed"),
        ({}, {"tokenFile": "/etc/passwd"}, "tokenFile: files are not allowed"),
        ({}, {"client-certificate": "/c", "client-key": "/k"}, "client-certificate: files are not allowed"),
        ({"certificate-authority": "/ca"}, {}, "certificate-authority: files are not allowed"),
        ({"proxy-url": "http://evil"}, {}, "proxy-url: is not allowed"),
        ({}, {"auth-provider": {"name": "x"}}, "auth-provider"),
    ],
)
def test_a_restricted_kubeconfig_can_touch_nothing_here(cluster, user, words):
    with pytest.raises(ConfigError, match=words):
        parse(kubeconfig(cluster, user))


@pytest.mark.parametrize(
    "server",
    [
        "http://x/path?q=",
        "https://x?",
        "https://x/#frag",
        "https://x/#",
        "https://user:s3cret@x:6443",
        "https://x/a/../b",
        "https://x/./b",
        "https://x//b",
        "https://x/a%2e%2e/b",
        "https://x/a b",
    ],
)
def test_the_server_of_a_restricted_kubeconfig_is_scheme_host_port_and_a_plain_path(server):
    with pytest.raises(ConfigError, match="server: contains ") as caught:
        parse(kubeconfig({"server": server}, {}))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("server", ["https://x:6443", "https://x/k8s/clusters/c-m_1.a~", "https://[fd00::1]:6443/"])
def test_a_plain_path_is_kept(server):
    assert parse(kubeconfig({"server": server}, {})).server == server.rstrip("/")


BREAKS = ["a\nb", "a\r\nHost: evil", "a\tb", "a\x00b", "a\u2028b"]


@pytest.mark.parametrize("text", BREAKS)
@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"server": "https://x"}, {}),
        ({"tls-server-name": ""}, {}),
        ({}, {"as": ""}),
        ({}, {"as": "u", "as-uid": ""}),
        ({}, {"as": "u", "as-groups": ["system:masters", ""]}),
        ({}, {"as": "u", "as-user-extra": {"scopes": [""]}}),
        ({}, {"username": "", "password": "p"}),
    ],
)
def test_control_characters_in_what_becomes_a_head_are_refused(cluster, user, text):
    def broken(value):
        if isinstance(value, dict):
            return {key: broken(each) for key, each in value.items()}
        if isinstance(value, list):
            return [broken(each) for each in value]
        return value + text if value in ("", "https://x") else value

    with pytest.raises(ConfigError, match="contains a line break or another control character") as caught:
        parse(kubeconfig(broken(cluster), broken(user)))
    assert "evil" not in str(caught.value)


def test_a_restricted_kubeconfig_with_embedded_data_is_fine():
    config = parse(kubeconfig({"certificate-authority-data": b64(PEM)}, {"token": "t"}))
    assert config.source == "Secret a/b, context here"


def test_a_kubeconfig_of_one_long_number_takes_no_time():
    """Parsing it as a number of base 60 would take seconds."""
    begun = time.thread_time()
    with pytest.raises(ConfigError, match="not a kubeconfig"):
        parse_kubeconfig(b"users: 9:" + b"59:" * 85_000 + b"59", source="Secret a/b")
    assert time.thread_time() - begun < 0.5


def test_a_restricted_kubeconfig_may_not_expand_yaml_aliases():
    with pytest.raises(ConfigError, match="aliases"):
        parse_kubeconfig(b"a: &a [x]\nb: [*a, *a]\n", source="Secret a/b")
    with pytest.raises(ConfigError, match="larger than"):
        parse_kubeconfig(b" " * 300_000, source="Secret a/b")
    for nested in (b"[" * 100_000, b"- " * 100_000, b"{a: " * 50_000):
        with pytest.raises(ConfigError, match="levels deep"):
            parse_kubeconfig(nested, source="Secret a/b")


def test_secrets_do_not_show_when_printed(tmp_path):
    config = load(
        tmp_path,
        kubeconfig(
            user={
                "token": "hush",
                "password": "hush",
                "client-key-data": b64(b"hush"),
                "client-certificate-data": b64(PEM),
            }
        ),
    )
    assert "hush" not in repr(config)


def test_paths_are_absolute_even_when_the_kubeconfig_was_named_relatively(tmp_path, monkeypatch):
    write(tmp_path / "kc", kubeconfig({"certificate-authority": "ca"}))
    monkeypatch.chdir(tmp_path)
    assert load_kubeconfig([Path("kc")]).authority.path == tmp_path / "ca"
