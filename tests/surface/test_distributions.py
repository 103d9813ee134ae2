"""The two distributions: contents of each wheel, and an operator without the testbed."""

import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from nodeyard.process.version import VERSION
from nodeyard.testing import third_party_crds
from nodeyard.testing.tools import all_tools

ROOT = Path(__file__).parents[2]
TESTBED_PACKAGES = {"apiserver", "demo", "rehearsal", "sim", "testing"}
INSTALL = "pip install 'nodeyard[testbed]'"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    return {
        name: Path(next(WheelBuilder(str(root)).build(directory=str(folder), versions=["standard"])))
        for name, root in {"nodeyard": ROOT, "nodeyard-testbed": ROOT / "testbed"}.items()
    }


@pytest.fixture(scope="module")
def operator_only(wheels, tmp_path_factory):
    """Runs Python with the wheel of nodeyard and its dependencies, and without the testbed."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheels["nodeyard"]) as wheel:
        wheel.extractall(folder)
    # -S leaves out the .pth files that put this checkout on the path.
    paths = [str(folder), sysconfig.get_path("purelib")]

    def run(code, stdin=""):
        script = f"import sys; sys.path[:0] = {paths!r}\n{code}"
        command = [sys.executable, "-I", "-S", "-c", script]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)

    return run


def packages(wheel):
    with zipfile.ZipFile(wheel) as opened:
        parts = [Path(name).parts for name in opened.namelist() if name.startswith("nodeyard/")]
    return {part[1] for part in parts}


def test_the_wheel_of_the_operator_contains_nothing_of_the_testbed(wheels):
    assert packages(wheels["nodeyard"]) == {
        each.name for each in (ROOT / "src" / "nodeyard").iterdir() if each.is_dir()
    }
    assert not packages(wheels["nodeyard"]) & TESTBED_PACKAGES


def test_the_wheel_of_the_testbed_contains_the_examples_and_the_control_plane_modules(wheels):
    with zipfile.ZipFile(wheels["nodeyard-testbed"]) as opened:
        names = set(opened.namelist())

    assert packages(wheels["nodeyard-testbed"]) == TESTBED_PACKAGES | {"examples"}
    assert {
        f"nodeyard/testing/go/{tool}/go.sum" for tool in ("etcd", "kubernetes", "clusterapi", "kwok", "helm")
    } <= names
    assert "nodeyard/examples/01-spares/nodetemplate.yaml" in names


@pytest.mark.parametrize(("name", "root"), [("nodeyard", ROOT), ("nodeyard-testbed", ROOT / "testbed")])
def test_a_wheel_contains_every_file_of_its_packages(wheels, name, root):
    source = root / "src"
    files = [path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    with zipfile.ZipFile(wheels[name]) as opened:
        assert {str(path) for path in files} <= set(opened.namelist())


GO = """#!{python}
# A Go toolchain that compiles nothing, but only inside a module with checksums.
import sys
from pathlib import Path

if sys.argv[1] == "version":
    print("go version go1.26.8 linux/amd64")
    sys.exit()
assert sys.argv[1] == "build", sys.argv
assert Path("go.mod").is_file() and Path("go.sum").is_file(), Path.cwd()
assert Path.cwd().is_relative_to({installed!r}), Path.cwd()
output = Path(next(each[3:] for each in sys.argv if each.startswith("-o=")))
output.write_text("")
output.chmod(0o755)
"""


def test_the_control_plane_is_built_from_the_installed_wheels(wheels, tmp_path):
    installed, assets, tools = (tmp_path / name for name in ("installed", "assets", "bin"))
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(installed)
    tools.mkdir()
    (tools / "go").write_text(GO.format(python=sys.executable, installed=str(installed)))
    (tools / "go").chmod(0o755)
    for source in third_party_crds.SOURCES.values():
        (assets / "foreign").mkdir(parents=True, exist_ok=True)
        (assets / "foreign" / f"{source.name}-{source.version}.json").write_text("[]")
    code = (
        f"import sys; sys.path[:0] = {[str(installed), sysconfig.get_path('purelib')]!r}\n"
        "from nodeyard.testing import build\n"
        "sys.exit(build.main())\n"
    )
    environment = {"NODEYARD_ASSETS": str(assets), "PATH": str(tools)}

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"the control plane is complete in {assets}")
    assert all((tool.folder.name, binary) in built(assets) for tool in all_tools() for binary in tool.packages)


def built(assets):
    return {(path.parent.name, path.name) for path in assets.glob("*/*")}


def test_neither_distribution_makes_nodeyard_a_package_of_its_own(wheels):
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as opened:
            assert "nodeyard/__init__.py" not in opened.namelist()


def test_every_module_of_the_operator_loads_without_the_testbed_and_without_cel(operator_only):
    done = operator_only(
        "import pkgutil, nodeyard\n"
        "for found in pkgutil.walk_packages(nodeyard.__path__, 'nodeyard.'):\n"
        "    __import__(found.name)\n"
        "print(*sorted(name for name in sys.modules if name.startswith('nodeyard.') or 'cel' in name.split('.')))\n"
    )

    loaded = done.stdout.split()
    assert done.returncode == 0, done.stderr
    assert "nodeyard.app.operator" in loaded
    assert [name for name in loaded if "cel" in name.split(".") or name.split(".")[1] in TESTBED_PACKAGES] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--once"],
        ["apiserver", "--port", "0", "--kubeconfig-out", "kc"],
        ["rehearse", "--scenario", "zone-loss.yaml"],
        ["plan", "-f", "-"],
    ],
)
def test_without_the_testbed_a_command_names_in_one_line_what_to_install(operator_only, arguments):
    namespace = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}'
    done = operator_only(
        "import os\n"
        "os.environ['KUBECONFIG'] = '/dev/null'\n"
        f"sys.argv = ['nodeyard', *{arguments!r}]\n"
        "from nodeyard.cli import main\n"
        "main()\n",
        namespace,
    )

    assert done.returncode == 1
    assert INSTALL in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_the_description_of_a_package_has_absolute_links_and_the_metadata_says_where_to_look(wheels):
    for name, wheel in wheels.items():
        with zipfile.ZipFile(wheel) as opened:
            path = next(each for each in opened.namelist() if each.endswith(".dist-info/METADATA"))
            metadata = opened.read(path).decode()
        links = re.findall(r"\]\(([^)]*)\)", metadata)
        assert all(link.startswith(("https://", "#")) for link in links), (name, links)
        assert {"Homepage", "Documentation", "Changelog"} <= set(re.findall(r"^Project-URL: (\w+),", metadata, re.M))
        assert "Author: The Nodeyard authors" in metadata
        assert metadata.count("Classifier: ") > 5


def test_both_distributions_have_the_version_that_the_commands_print():
    for path in (ROOT / "pyproject.toml", ROOT / "testbed" / "pyproject.toml"):
        assert f'\nversion = "{VERSION}"\n' in path.read_text()
    assert f'"nodeyard=={VERSION}"' in (ROOT / "testbed" / "pyproject.toml").read_text()
    assert f'"nodeyard-testbed=={VERSION}"' in (ROOT / "pyproject.toml").read_text()
