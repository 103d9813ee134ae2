"""The Dockerfile, checked without a build."""

import re
from pathlib import Path

from tools import debian, image

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
UV = re.compile(r"uv==([0-9.]+)")


def test_it_installs_with_the_uv_that_the_makefile_pins():
    assert UV.findall(DOCKERFILE) == UV.findall((ROOT / "Makefile").read_text())


def test_it_has_the_debian_and_the_user_of_the_image_that_is_built_without_docker():
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)

    assert bases == [f"python:3.11-slim-{debian.SUITE}"] * 2
    assert f"\nUSER {image.USER}\n" in DOCKERFILE


def test_versions_of_packages_sort_as_dpkg_sorts_them():
    in_order = ["0.1~~", "0.1a", "0.1+", "1.0~rc1", "1.0", "1.0-1~deb12u1", "1.0-1", "1.0-1+deb12u7", "1.0-1+deb12u13"]
    in_order += ["1.9", "1.10", "2026b-0", "2026f-0", "1:0.1"]

    shuffled = in_order[7:] + in_order[:7][::-1]
    assert sorted(shuffled, key=debian.version_key) == in_order


def test_it_copies_only_existing_files_that_are_not_ignored():
    copied = [path for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.M) for path in line.split()]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()

    assert {"pyproject.toml", "uv.lock", "src"} <= set(copied)
    assert all((ROOT / path).exists() for path in copied)
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == set(copied)


def test_it_runs_as_the_user_that_the_chart_names():
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.M)
    assert f"runAsUser: {user}\n" in (ROOT / "charts/nodeyard/templates/deployment.yaml").read_text()
