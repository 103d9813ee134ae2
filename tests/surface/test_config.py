"""The generated part of config/ is what the capabilities declare today."""

from __future__ import annotations

from pathlib import Path

from nodeyard.app.manifests import files

CONFIG = Path(__file__).parents[2] / "config"


def test_generated_manifests_have_not_drifted():
    wanted = dict(files())
    there = {str(path.relative_to(CONFIG)): path.read_text() for path in CONFIG.rglob("*.yaml")}

    assert there.keys() == wanted.keys(), "run `make crds`"
    assert there == wanted, "run `make crds`"
