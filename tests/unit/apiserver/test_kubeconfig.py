"""The written kubeconfig, read by our client and by kubectl."""

import stat

import pytest

from nodeyard.apiserver.kubeconfig import write_kubeconfig
from nodeyard.cli.failures import Failure
from nodeyard.client.kubeconfig import load_config


def test_a_written_kubeconfig_can_be_read(tmp_path):
    path = tmp_path / "deep" / "kubeconfig"
    write_kubeconfig(path, "https://127.0.0.1:6443", b"pem", "secret")
    config = load_config(path)
    assert (config.server, config.credentials.token, config.authority.read()) == (
        "https://127.0.0.1:6443",
        "secret",
        b"pem",
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(Failure, match="kubeconfig: cannot be written"):
        write_kubeconfig(blocked / "kubeconfig", "https://x", b"", "")
