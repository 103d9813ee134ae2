"""The krew manifest follows krew's rules and belongs to its archive, whose launcher runs this version.

Rules: https://github.com/kubernetes-sigs/krew/blob/master/internal/index/validation/validate.go
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from nodeyard.process.version import VERSION

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("krew", ROOT / "tools/krew.py")
krew = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(krew)


@pytest.fixture
def built(tmp_path):
    krew.build(tmp_path / "dist", "https://example.org/nodeyard/")
    return tmp_path / "dist"


@pytest.fixture
def manifest(built):
    return yaml.safe_load((built / krew.MANIFEST).read_text())


def test_the_manifest_follows_the_rules_of_krew(manifest):
    assert manifest.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert manifest["kind"] == "Plugin"
    assert f"{manifest['metadata']['name']}.yaml" == krew.MANIFEST
    spec = manifest["spec"]
    assert spec.keys() == {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
    assert len(spec["shortDescription"]) <= 50
    assert not re.search(r"[\r\n]", spec["shortDescription"])
    (platform,) = spec["platforms"]
    assert platform.keys() == {"selector", "uri", "sha256", "files", "bin"}
    assert re.fullmatch("[a-f0-9]{64}", platform["sha256"])
    (expression,) = platform["selector"]["matchExpressions"]
    assert expression == {"key": "os", "operator": "In", "values": ["linux", "darwin"]}
    for moved in platform["files"]:
        assert moved.keys() == {"from", "to"}
        assert not any(part.startswith("/") or ".." in part for part in moved.values())


def test_no_placeholder_is_left(built):
    assert not re.search(r"@[A-Z0-9]+@", (built / krew.MANIFEST).read_text())


def test_the_manifest_belongs_to_the_archive(built, manifest):
    (platform,) = manifest["spec"]["platforms"]
    assert platform["uri"] == f"https://example.org/nodeyard/{krew.ARCHIVE}"
    assert platform["sha256"] == hashlib.sha256((built / krew.ARCHIVE).read_bytes()).hexdigest()
    with tarfile.open(built / krew.ARCHIVE) as archive:
        assert {each["from"] for each in platform["files"]} == set(archive.getnames())
        assert archive.getmember(platform["bin"]).mode == 0o755


def test_equal_sources_give_an_equal_archive(built, tmp_path):
    krew.build(tmp_path / "again")
    assert (tmp_path / "again" / krew.ARCHIVE).read_bytes() == (built / krew.ARCHIVE).read_bytes()


@pytest.mark.parametrize(
    ("program", "command"),
    [("uv", f"tool run --from nodeyard=={VERSION}"), ("pipx", f"run --spec nodeyard=={VERSION}")],
)
def test_the_launcher_runs_this_version(built, tmp_path, program, command):
    stub = tmp_path / "bin" / program
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    stub.chmod(0o755)
    done = launch(built, tmp_path, str(stub.parent))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "|".join([*command.split(), "kubectl-nodeyard", "why", "node/a b", ""])


def test_the_launcher_names_its_requirements(built, tmp_path):
    done = launch(built, tmp_path, str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "uv or pipx is needed" in done.stderr


def launch(built, tmp_path, path):
    with tarfile.open(built / krew.ARCHIVE) as archive:
        archive.extractall(tmp_path / "plugin", filter="data")
    plugin = tmp_path / "plugin/kubectl-nodeyard"
    assert os.access(plugin, os.X_OK)
    return subprocess.run(
        ["/bin/sh", plugin, "why", "node/a b"], env={"PATH": path}, capture_output=True, text=True, check=False
    )
