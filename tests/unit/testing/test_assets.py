"""Location of the assets, which are never incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeyard.testing import assets


def test_nodeyard_assets_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NODEYARD_ASSETS", str(tmp_path))
    assert assets.folder("etcd", "v3.6.16") == tmp_path / "etcd-v3.6.16"


def test_else_it_is_the_users_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NODEYARD_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert assets.root() == tmp_path / "nodeyard"


def test_else_it_is_dot_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NODEYARD_ASSETS", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert assets.root() == tmp_path / ".cache" / "nodeyard"


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "place"

    def fail_half_way() -> None:
        with assets.scratch(place) as made:
            (made / "half").write_text("half")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way()
    assert list(place.parent.iterdir()) == []


def test_a_published_folder_is_complete(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "place"
    with assets.scratch(place) as made:
        (made / "file").write_text("whole")
        assets.publish(made / "file", place)
    assert [path.read_text() for path in place.parent.iterdir()] == ["whole"]


def test_the_first_of_two_builders_of_a_folder_wins(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for builder in ("first", "second"):
        with assets.scratch(place) as made:
            (made / "folder").mkdir()
            (made / "folder" / "who").write_text(builder)
            assets.publish(made / "folder", place)
    assert (place / "who").read_text() == "first"
