"""`nodeyard crds` prints what the capabilities define."""

import pytest
import yaml

from nodeyard.app import capabilities
from nodeyard.cli.crds import crds


class Gadgets:
    name = "gadgets"

    def definitions(self):
        names = ("gadgets.example.com", "widgets.example.com")
        return [{"kind": "CustomResourceDefinition", "metadata": {"name": name}} for name in names]


@pytest.fixture
def gadgets(monkeypatch):
    monkeypatch.setattr(capabilities, "CAPABILITIES", (Gadgets(),))


def test_without_kinds_a_comment_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(capabilities, "CAPABILITIES", ())
    crds()
    assert capsys.readouterr().out == "# no capability defines a CRD\n"


@pytest.mark.usefixtures("gadgets")
def test_definitions_are_printed_as_one_stream(capsys):
    crds()
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [document["metadata"]["name"] for document in documents] == ["gadgets.example.com", "widgets.example.com"]


@pytest.mark.usefixtures("gadgets")
def test_definitions_are_written_each_to_its_file(tmp_path, capsys):
    crds(tmp_path / "crd")
    assert sorted(path.name for path in (tmp_path / "crd").iterdir()) == [
        "gadgets.example.com.yaml",
        "widgets.example.com.yaml",
    ]
    assert "wrote 2 files to" in capsys.readouterr().err
