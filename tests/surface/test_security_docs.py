"""docs/security.md: every threat names tests, and the tests that it names are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"tests/[\w/]+\.py(?:::\w+)?")


def rows():
    """Of the table of threats: what is named in the first column, and the tests in the last."""
    text = (ROOT / "docs/security.md").read_text().partition("## Threats")[2]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(cells[0], TEST.findall(cells[-1])) for cells in lines if not cells[0].startswith(("threat", "---"))]


def test_there_are_threats():
    assert len(rows()) > 40


@pytest.mark.parametrize(("threat", "tests"), rows(), ids=[f"row-{number}" for number in range(len(rows()))])
def test_each_threat_names_tests_that_exist(threat, tests):
    assert tests, f"{threat}: no test is named"
    for named in tests:
        path, _, function = named.partition("::")
        assert (ROOT / path).is_file(), f"{threat}: {path} is missing"
        if function:
            assert re.search(rf"def {function}\b", (ROOT / path).read_text()), f"{threat}: {named} is missing"
