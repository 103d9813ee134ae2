"""Generated objects of the example clusters. `GOLDEN=write` rewrites the files; read the diff."""

import json
import os
from pathlib import Path

import pytest

from nodeyard.kube.manifests import dump_all

from . import clusters
from .clusters import GOLDEN
from .replacements import announced, unannounced

HERE = Path(__file__).parent
HASHES = HERE / "hashes.json"
CHANGELOG = HERE.parents[2] / "CHANGELOG.md"
IS_WRITING = os.environ.get("GOLDEN") == "write"


def names(golden):
    """Return the template names by owner and kind."""
    return {f"{each.pool or 'control plane'}, {each.kind}": each.name for each in golden.templates()}


def plain(value):
    """Copy the object without shared values: YAML would write aliases."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", GOLDEN)
def test_a_cluster_is_generated_as_it_should_be(name):
    path = HERE / f"{name}.yaml"
    text = dump_all([plain(each) for each in GOLDEN[name].objects()])
    if IS_WRITING:
        path.write_text(text)
    assert text == path.read_text()


def test_no_golden_file_is_left_over():
    assert {path.stem for path in HERE.glob("*.yaml")} == set(GOLDEN)


def test_template_names_change_only_where_the_changelog_says_that_nodes_are_replaced():
    generated = {name: names(golden) for name, golden in GOLDEN.items()}
    stored = json.loads(HASHES.read_text()) if HASHES.exists() else {}
    changed = unannounced(stored, generated, CHANGELOG.read_text())
    assert changed == [], 'list these in CHANGELOG.md, "Unreleased", under "### Replaces nodes", or undo the change'
    if IS_WRITING:
        HASHES.write_text(json.dumps(generated, indent=2) + "\n")
    assert set(json.loads(HASHES.read_text())) == set(generated), "GOLDEN=write stores the names of a new cluster"


CHANGES = """# Changelog

## Unreleased

### Added
- proxmox

### Replaces nodes
- aws-plain, aws-classes - the root volume is encrypted
- docker-seed - another image

### Fixed
- forced

## 0.1.0

### Replaces nodes
- dual-stack - long ago
"""


def test_only_the_unreleased_lines_under_their_heading_announce_a_replacement():
    assert announced(CHANGES) == {"aws-plain", "aws-classes", "docker-seed"}
    assert announced("# Changelog\n\n## Unreleased\n\n### Added\n- aws-plain\n") == set()


def test_a_changed_name_is_noticed_unless_it_is_announced():
    stored = {"aws-plain": {"a": "a-1"}, "dual-stack": {"a": "a-1"}, "forced": {"a": "a-1"}}
    generated = {"aws-plain": {"a": "a-2"}, "dual-stack": {"a": "a-2"}, "forced": {"a": "a-1"}, "new": {"a": "a-1"}}
    assert unannounced(stored, generated, CHANGES) == ["dual-stack"]
    assert unannounced(stored, {}, CHANGES) == ["dual-stack", "forced"]


def test_the_golden_clusters_cover_every_kind_that_can_be_generated():
    kinds = {obj["kind"] for golden in GOLDEN.values() for obj in golden.objects()}
    assert {*clusters.SERVED.versions, "Cluster", "KubeadmControlPlane", "MachineDeployment"} <= kinds


def empties(value, at=""):
    if value is None or value in ({}, []):
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from empties(item, f"{at}.{key}")


def test_no_empty_fields_are_sent_unless_the_kind_requires_them():
    """Cluster API rejects most empty objects and lists; the Docker backend without settings is allowed."""
    found = {at for golden in GOLDEN.values() for obj in golden.objects() for at in empties(obj)}
    assert found == {".spec", ".spec.backend.docker", ".spec.template.spec", ".spec.template.spec.backend.docker"}
