"""The image of `make image`: built twice, unpacked, and run without rights as in a pod, on the embedded server."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from tools import image, release

from nodeyard.process.version import VERSION
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.ports import free_port
from nodeyard.testing.rest import Rest

pytestmark = pytest.mark.timeout(600)  # building the layers fetches and unpacks wheels

ROOT = Path(__file__).parents[2]
CREATED = 1_700_000_000
EXAMPLE = ROOT / "examples" / "01-spares"
ENTER = """
mount --bind "$ROOT" "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount -t tmpfs tmpfs "$ROOT/tmp"
mount -t tmpfs tmpfs "$ROOT/run"
mount --rbind /dev "$ROOT/dev"
mkdir -p "$ROOT/run/secrets/kubernetes.io"
cp -rL "$ACCOUNT" "$ROOT/run/secrets/kubernetes.io/serviceaccount"
chmod -R a+rX "$ROOT/run"
exec env -i "$@"
"""
"""Script that starts the container as a kubelet does: read-only root, /tmp in memory, mounted account, no rights."""


@pytest.fixture(scope="module")
def layers(tmp_path_factory):
    return image.build_layers(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def archive(layers, tmp_path_factory):
    path = tmp_path_factory.mktemp("layout") / "image.tar"
    return path, image.write_layout(layers, path, created=CREATED, revision="abc")


@pytest.fixture(scope="module")
def blobs(archive):
    with tarfile.open(archive[0]) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


@pytest.fixture(scope="module")
def config(blobs):
    (entry,) = json.loads(blobs["index.json"])["manifests"]
    manifest = json.loads(blobs[path_of(entry["digest"])])
    return json.loads(blobs[path_of(manifest["config"]["digest"])])


@pytest.fixture(scope="module")
def server():
    with EmbeddedServer() as server:
        yield server


@pytest.fixture(scope="module")
def boxed(blobs, config, server, tmp_path_factory):
    """`boxed(command)` is the command line and environment that run it in the unpacked image."""
    (loaded,) = json.loads(blobs["manifest.json"])
    folder = tmp_path_factory.mktemp("unpacked")
    root, account = folder / "root", folder / "account"
    for layer in loaded["Layers"]:
        packed = folder / "layer.tar.gz"
        packed.write_bytes(blobs[layer])
        with tarfile.open(packed) as tar:
            tar.extractall(root, filter="tar")
    unshare = shutil.which("unshare") or "unshare"
    account.mkdir()
    (account / "token").write_text(server.admin_token)
    (account / "ca.crt").write_bytes(server.ca_file.read_bytes())
    host, port = server.url.removeprefix("https://").split(":")
    inside = dict(each.split("=", 1) for each in config["config"]["Env"])
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, **inside}
    outside = {"PATH": os.environ["PATH"], "ROOT": str(root), "ACCOUNT": str(account)}

    def box(*command):
        script = f"set -e\n{ENTER}"
        variables = [f"{name}={value}" for name, value in environment.items()]
        user = ("--map-user=65532", "--map-group=65532")
        entered = [*variables, unshare, "--user", *user, f"--root={root}", "--wd=/", "--", *command]
        return [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *entered], outside

    return box


@pytest.fixture(scope="module")
def run_boxed(boxed):
    def run(*command):
        line, environment = boxed(*command)
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=100)

    return run


def distributions(versions):
    """Return versions by normalized name."""
    return {name.lower().replace("_", "-").replace(".", "-"): version for name, version in versions.items()}


def expected_distributions():
    listed = [each for each in release.sbom()["components"] if each["purl"].startswith("pkg:pypi/")]
    return {"nodeyard": VERSION, **{each["name"]: each["version"] for each in listed}}


def path_of(digest):
    return f"blobs/{digest.replace(':', '/')}"


def test_two_builds_give_the_same_digest(layers, archive, tmp_path, monkeypatch):
    """Builds in another folder with another umask and hash seed, as on another machine."""
    elsewhere = tmp_path / "a-longer-name-of-a-folder"
    elsewhere.mkdir()
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    before = os.umask(0o077)
    try:
        again = image.build_layers(elsewhere)
    finally:
        os.umask(before)

    assert [layer.diff_id for layer in again] == [layer.diff_id for layer in layers]
    assert image.write_layout(again, tmp_path / "again.tar", created=CREATED, revision="abc") == archive[1]
    assert (tmp_path / "again.tar").read_bytes() == archive[0].read_bytes()


def test_it_is_an_oci_image_layout_whose_digests_are_right(archive, blobs):
    assert json.loads(blobs["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(blobs["index.json"])["manifests"]
    assert entry["digest"] == archive[1]
    manifest = json.loads(blobs[path_of(entry["digest"])])
    for each in (entry, manifest["config"], *manifest["layers"]):
        blob = blobs[path_of(each["digest"])]
        assert (each["size"], each["digest"]) == (len(blob), f"sha256:{hashlib.sha256(blob).hexdigest()}")
    (loaded,) = json.loads(blobs["manifest.json"])
    assert loaded["RepoTags"] == [f"nodeyard:{VERSION}"]
    assert loaded["Layers"] == [path_of(each["digest"]) for each in manifest["layers"]]


def test_its_config_names_version_user_and_command(config):
    labels = config["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == VERSION
    assert labels["org.opencontainers.image.revision"] == "abc"
    assert config["created"] == "2023-11-14T22:13:20Z"
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["Entrypoint"] == ["/usr/local/bin/nodeyard"]
    assert len(config["rootfs"]["diff_ids"]) == len(config["history"]) == 3


def test_it_contains_the_locked_versions_and_no_testbed(run_boxed):
    code = (
        "import importlib.metadata as m, pkgutil, nodeyard\n"
        "print({d.name: d.version for d in m.distributions()})\n"
        "print([found.name for found in pkgutil.iter_modules(nodeyard.__path__)])\n"
    )
    done = run_boxed("python3.11", "-c", code)
    assert done.returncode == 0, done.stderr
    versions, modules = map(yaml.safe_load, done.stdout.splitlines())
    installed = distributions(versions)
    assert installed == expected_distributions()
    locked = {each["name"]: each["version"] for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    assert installed.items() <= locked.items()
    assert {"aiohttp", "cryptography", "uvloop"} <= installed.keys()
    assert not {"apiserver", "demo", "sim", "testing"} & set(modules)


def test_the_dockerfile_installs_the_same_distributions(tmp_path, monkeypatch):
    """Its first stage, step by step in a folder."""
    _, stage, _ = (ROOT / "Dockerfile").read_text().split("\nFROM ")
    steps = re.findall(r"^(COPY|RUN) (.+)$", stage, re.M)
    installed, root = tmp_path / "opt", tmp_path / "src"
    root.mkdir()
    for name, value in re.findall(r"\b(UV_\w+)=(\S+)", stage):
        monkeypatch.setenv(name, value.replace("/opt/nodeyard", str(installed)))
    monkeypatch.delenv("UV_COMPILE_BYTECODE")  # takes long, and adds nothing
    for verb, text in steps:
        if verb == "COPY":
            *sources, target = text.split()
            for each in sources:
                path = root / (each if target == "./" else target)
                path.parent.mkdir(exist_ok=True)
                (shutil.copytree if (ROOT / each).is_dir() else shutil.copy)(ROOT / each, path)
        elif text.startswith("uv "):
            image.run_uv("--directory", root, *text.split()[1:])

    code = "import importlib.metadata as m; print({d.name: d.version for d in m.distributions()})"
    done = subprocess.run([installed / "bin/python", "-c", code], capture_output=True, text=True, check=True)
    assert distributions(yaml.safe_load(done.stdout)) == expected_distributions()
    assert (installed / "bin/nodeyard").exists()


def test_it_runs_without_rights_on_a_root_that_is_read_only(run_boxed):
    code = "import os; print(os.getuid(), os.getgid()); open('/tmp/x', 'w'); open('/etc/x', 'w')"
    done = run_boxed("python3.11", "-c", code)
    assert done.stdout == "65532 65532\n"
    assert "Read-only file system: '/etc/x'" in done.stderr


def test_every_module_of_the_operator_loads(run_boxed):
    """Covers modules that need a library of the system."""
    code = (
        "import pkgutil, nodeyard\n"
        "for found in pkgutil.walk_packages(nodeyard.__path__, 'nodeyard.'):\n"
        "    __import__(found.name)\n"
        "import sys, bz2, ctypes, lzma, ssl, uuid, zlib, zoneinfo\n"
        "zoneinfo.ZoneInfo('Europe/Berlin')\n"
        "assert ssl.create_default_context().get_ca_certs()\n"
        "assert 'nodeyard.app.operator' in sys.modules\n"
    )
    done = run_boxed("python3.11", "-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr


@contextmanager
def operating(boxed, *arguments):
    line, environment = boxed("nodeyard", "run", *arguments)
    process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_operator_runs_from_it_and_claims_nodes(boxed, server, eventually):
    rest = Rest(server.url, server.authority.pem, server.admin_token)
    health, metrics, webhooks = (f"127.0.0.1:{port}" for port in (free_port(), free_port(), free_port()))
    binds = (f"--health-bind={health}", f"--metrics-bind={metrics}", f"--webhook-bind={webhooks}")
    with operating(boxed, "--install-crds", *binds) as process:
        eventually(lambda: process.poll() is not None or answers(f"http://{health}/readyz"), "it is ready", 90)
        assert process.poll() is None, process.stdout.read()
        objects = [each for path in EXAMPLE.glob("*.yaml") for each in yaml.safe_load_all(path.read_text())]
        for each in sorted(objects, key=lambda each: each["kind"] != "Node"):
            rest.replace_or_create(each)
        (template,) = (each for each in objects if each["kind"] == "NodeTemplate")
        path = f"{rest.collection(template)}/{template['metadata']['name']}"
        wanted = template["spec"]["nodes"]
        eventually(lambda: rest.call("GET", path).get("status", {}).get("currentNodes") == wanted, "nodes are claimed")
        assert f'version="{VERSION}"' in text_of(f"http://{metrics}/metrics")
        process.terminate()
        assert process.wait(timeout=60) == 0


def answers(url):
    try:
        return bool(text_of(url))
    except OSError:
        return False


def text_of(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()
