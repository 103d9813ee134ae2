"""docs/architecture.md: the files and functions of the trace, and the packages of the tables, exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
STEP = re.compile(r"^\| \d+ \| `([\w/.]+)` \| (`[^|]+`) \|", re.M)
PACKAGE = re.compile(r"^\| `(\w+)/` \|", re.M)


def test_every_package_is_listed():
    folders = [ROOT / "src" / "nodeyard", ROOT / "testbed" / "src" / "nodeyard"]
    packages = {path.name for folder in folders for path in folder.iterdir() if (path / "__init__.py").exists()}

    assert set(PACKAGE.findall(PAGE)) == packages


@pytest.mark.parametrize(("file", "names"), STEP.findall(PAGE))
def test_every_step_of_the_trace_names_what_exists(file, names):
    text = (ROOT / "src" / "nodeyard" / file).read_text()

    for name in re.findall(r"[\w.]+", names):
        for part in name.split("."):
            assert re.search(rf"(def|class) {part}\b|^{part}\b.* = ", text, re.M), f"{file}: {name} is missing"


def test_the_trace_has_all_its_steps():
    assert len(STEP.findall(PAGE)) > 20
