"""The folders of the capabilities have the same modules, in the order of docs/architecture.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {path.name: path for path in (ROOT / "src" / "nodeyard" / "capabilities").iterdir() if path.is_dir()}
CAPABILITIES = sorted(name for name, path in FOLDERS.items() if (path / "__init__.py").exists())
PAGE = (ROOT / "docs" / "architecture.md").read_text()
SECTION = PAGE[PAGE.index("## A capability") : PAGE.index("## Remote clusters")]

LAYOUT = [
    "names",
    "types",
    "reasons",
    "definition",
    "validation",
    "messages",
    "watched",
    "snapshot",
    "collect",
    "plan",
    "planning",
    "report",
    "webhook",
    "surface",
    "controller",
]
EXTRA = {"affinity": {"reviews"}, "profiles": {"reviews"}, "clustertree": {"leases"}}
MISSING = {"clustertree": {"webhook"}}
REPORT = {"status", "events", "metrics"}


def modules(folder: Path) -> list[str]:
    """Return the names of the modules and packages in a folder, once for each file or package."""
    packages = [path.parent.name for path in folder.glob("*/__init__.py")]
    return packages + [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]


def test_there_are_five_capabilities():
    assert CAPABILITIES == ["affinity", "clustertree", "pools", "profiles", "spares"]


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_capability_has_every_module_of_the_layout_and_no_unlisted_one(capability):
    expected = (set(LAYOUT) | EXTRA.get(capability, set())) - MISSING.get(capability, set())

    assert sorted(modules(FOLDERS[capability])) == sorted(expected)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_report_has_status_events_and_metrics(capability):
    assert set(modules(FOLDERS[capability] / "report")) >= REPORT


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_explanations_are_in_the_decisions_of_planning(capability):
    assert "decisions" in modules(FOLDERS[capability] / "planning")


def test_the_page_lists_the_layout_in_order():
    rows = re.findall(r"^\| `(\w+)` \|", SECTION, re.M)

    assert rows == LAYOUT


def test_the_page_gives_a_reason_for_every_exception():
    extra = {f"`{capability}/{module}`" for capability, names in EXTRA.items() for module in names}
    missing = {f"`{capability}` has no `{module}`" for capability, names in MISSING.items() for module in names}

    rows = SECTION[SECTION.index("| exception |") :]
    listed = re.findall(r"`\w+/\w+`|`\w+` has no `\w+`", rows)
    assert sorted(listed) == sorted(extra | missing)


def test_the_page_for_authors_lists_the_modules():
    page = (ROOT / "docs" / "write-a-capability.md").read_text()
    (listed,) = [line for line in page.splitlines() if line.startswith("1. Make a folder")]

    assert [name for name in re.findall(r"`(\w+)`", listed) if name in LAYOUT] == LAYOUT
