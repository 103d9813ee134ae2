"""Files that `make release` writes; the image itself is tested in tests/integration/test_image.py."""

import hashlib
import json
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.builders.charts import read_all, run
from tools import debian, image, krew, release

from nodeyard.kube.names import NAMESPACE
from nodeyard.process.version import VERSION

ROOT = Path(__file__).parents[2]
EXPECTED = {
    f"nodeyard-{VERSION}-py3-none-any.whl",
    f"nodeyard-{VERSION}.tar.gz",
    f"nodeyard_testbed-{VERSION}-py3-none-any.whl",
    f"nodeyard_testbed-{VERSION}.tar.gz",
    f"charts/nodeyard-{VERSION}.tgz",
    f"charts/nodeyard-crds-{VERSION}.tgz",
    f"nodeyard-image-{VERSION}.tar",
    f"nodeyard-{VERSION}-crds.yaml",
    f"nodeyard-{VERSION}-operator.yaml",
    f"nodeyard-{VERSION}.cdx.json",
    krew.ARCHIVE,
    krew.MANIFEST,
    "SHA256SUMS",
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(image, "build", lambda output: output.write_bytes(b"image"))
        release.write(folder)
    return folder


def test_everything_is_there(dist):
    scheduling = read_all((ROOT / "charts/nodeyard-scheduling/Chart.yaml").read_text())[0]["version"]
    files = {str(path.relative_to(dist)) for path in dist.rglob("*") if path.is_file()}
    assert files == EXPECTED | {f"charts/nodeyard-scheduling-{scheduling}.tgz"}


def test_checksums_are_right_and_cover_every_other_file(dist):
    sums = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums.keys() == {
        str(path.relative_to(dist)) for path in dist.rglob("*") if path.is_file() and path.name != "SHA256SUMS"
    }
    assert all(hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())


@pytest.mark.parametrize("name", ["nodeyard", "nodeyard_testbed"])
def test_a_source_distribution_has_the_modules_of_its_wheel(dist, name):
    with zipfile.ZipFile(dist / f"{name}-{VERSION}-py3-none-any.whl") as opened:
        modules = {path for path in opened.namelist() if path.endswith(".py")}
    with tarfile.open(dist / f"{name}-{VERSION}.tar.gz") as opened:
        sources = {path.partition("/src/")[2] for path in opened.getnames()}
    assert modules <= sources


def test_packed_charts_render_as_those_of_the_checkout(dist):
    for name in ("nodeyard", "nodeyard-crds"):
        packed = run("template", "x", dist / "charts" / f"{name}-{VERSION}.tgz", "--namespace", NAMESPACE)
        assert packed == run("template", "x", ROOT / "charts" / name, "--namespace", NAMESPACE)


def test_the_sbom_lists_locked_versions_of_wheels_and_packages(dist):
    sbom = json.loads((dist / f"nodeyard-{VERSION}.cdx.json").read_text())
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    listed = {each["name"]: each for each in sbom["components"]}
    assert len(listed) == len(sbom["components"])
    assert len({each["bom-ref"] for each in sbom["components"]}) == len(listed)
    wheels = {each["name"]: each["version"] for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    packages = debian.locked()
    for name, component in listed.items():
        if component["purl"].startswith("pkg:deb/"):
            assert component["version"] == packages[name].version
            assert component["hashes"] == [{"alg": "SHA-256", "content": packages[name].sha256}]
        else:
            assert component["version"] == wheels[name]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {each.partition(">")[0] for each in declared} | {"libc6", "python3.11-minimal"} <= listed.keys()
    assert not {"colorama", "pytest", "nodeyard-testbed", "prometheus"} & listed.keys()
