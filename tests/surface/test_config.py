"""The generated parts of config/ and charts/ are what the capabilities declare today."""

from __future__ import annotations

from pathlib import Path

from nodeyard.app import manifests
from nodeyard.app.manifests import chart_files, config_files, main, schema_files

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
CHARTS = ROOT / manifests.CHARTS


def test_generated_manifests_have_not_drifted():
    wanted = dict(config_files())
    there = {str(path.relative_to(CONFIG)): path.read_text() for path in CONFIG.rglob("*.yaml")}

    assert there.keys() == wanted.keys(), "run `make crds`"
    assert there == wanted, "run `make crds`"


def test_generated_files_of_charts_have_not_drifted():
    wanted = dict(chart_files())
    there = {str(path.relative_to(CHARTS)): path.read_text() for path in CHARTS.glob("*/files/**/*.yaml")}

    assert there.keys() == wanted.keys(), "run `make crds`"
    assert there == wanted, "run `make crds`"


def test_published_schemas_have_not_drifted():
    there = {path.name: path.read_text() for path in (ROOT / manifests.SCHEMAS).iterdir()}

    assert there == dict(schema_files()), "run `make crds`"


def test_one_command_writes_them_all(tmp_path):
    assert main([str(tmp_path / "config")]) == 0

    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert written == {
        *(f"config/{path}" for path, _ in config_files()),
        *(f"{manifests.CHARTS}/{path}" for path, _ in chart_files()),
        *(f"{manifests.SCHEMAS}/{path}" for path, _ in schema_files()),
    }
